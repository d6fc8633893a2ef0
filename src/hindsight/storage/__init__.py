"""Files: a sealed container, a codec without pickle, models and checkpoints."""
