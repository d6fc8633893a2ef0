"""Online learners: the table of learners, runs over rows, and the facts of a run."""
