"""The pytest plugin: a fixture `assert_masks`, so that a test of a port's masks is one line.

def test_masks(assert_masks):
    assert_masks(MyModel())
"""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def assert_masks() -> Callable[..., Any]:
    """`tv.assert_masks`: fails with the first wrong query and key, and what it would be."""
    from transformer_viz.mask_checks.assert_masks import assert_masks

    return assert_masks
