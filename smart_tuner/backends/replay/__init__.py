"""A compiler that answers from a description beside the model: simulated or recorded trials."""

from smart_tuner.backends.replay.backend import ReplayBackend

__all__ = ["ReplayBackend"]
