"""From a run and its rows to a certificate."""
