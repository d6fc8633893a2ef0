"""`label_text` under its first address; import it from `hindsight.sources` instead."""

from __future__ import annotations

from .base import label_text

__all__ = ["label_text"]
