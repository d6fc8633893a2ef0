"""Learners that read all rows in each round."""
