"""Training: what was asked for, rows prepared one way for all, the state as it goes, and its certificates."""
