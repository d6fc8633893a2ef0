"""One file per family of theorems: how the theorem of a learner is applied to its run."""
