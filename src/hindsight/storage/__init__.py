"""Files: a sealed container, a codec without pickle, a registry of classes, models and checkpoints."""
