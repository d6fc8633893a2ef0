"""Batch learners, which read all rows in each round."""
