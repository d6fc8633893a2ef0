"""scikit-learn estimators, one idea per module; what they share is in `mixins`."""
