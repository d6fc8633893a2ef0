"""The service: a learner that stays up, loses no acknowledged row, and shows its regret while it learns."""
