"""The service: a long-running learner that loses no acknowledged row and shows its regret while it learns."""
