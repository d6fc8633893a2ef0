"""Rows: arrays, sparse matrices and chunks as the learners read them, and labels."""
