"""Parts that estimators share, one idea per module; an estimator inherits those that it needs."""
