"""Certificates: what a run lost, what its theorem guarantees, and whether the theorem applies to its rows."""
