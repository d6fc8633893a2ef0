"""Echo cancellation: Widrow-Hoff predicts the echo of the far end in the microphone, and it is subtracted."""

from .canceller import EchoCanceller
from .result import Cancelled, cancel

__all__ = ["Cancelled", "EchoCanceller", "cancel"]
