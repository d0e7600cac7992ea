"""The run of the figures' tests: all-different prime sizes, and tokens that would act as markup."""

from collections.abc import Callable

import pytest

from tests.figures.conftest import build
from transformer_viz.trace.trace import Trace


@pytest.fixture(scope="session")
def make_trace() -> Callable[..., Trace]:
    return build


@pytest.fixture(scope="session")
def trace() -> Trace:
    return build()
