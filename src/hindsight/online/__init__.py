"""Online learners: the table, runs and their facts."""
