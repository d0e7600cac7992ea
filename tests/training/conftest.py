"""The runs of the figures' tests, for the figures of a training."""

from tests.figures.conftest import make_trace

__all__ = ["make_trace"]
