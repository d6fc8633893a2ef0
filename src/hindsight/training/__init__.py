"""Learning from a source."""
