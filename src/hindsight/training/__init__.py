"""Training: the plan, the preparation of rows, the state of a run, and its certificates."""
