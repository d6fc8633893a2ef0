"""Echo cancellation: the echo of the far end in the microphone's signal is predicted and subtracted."""

from .canceller import EchoCanceller
from .kalman import KalmanCanceller
from .result import Cancelled, cancel

__all__ = ["Cancelled", "EchoCanceller", "KalmanCanceller", "cancel"]
