"""What is imported is looked at once by the garbage collector, not after every run of a page."""

import gc
import sys
from types import ModuleType

import pytest

from transformer_viz.views.parts import settle


@pytest.fixture(autouse=True)
def unfrozen():
    """Nothing that this file freezes stays frozen."""
    yield
    gc.unfreeze()


def test_it_freezes_once_and_again_after_an_import(monkeypatch):
    """Guards a collector that looks at every object of torch after each run, and one that is run at each of them."""
    gc.unfreeze()
    settle.settle()
    gc.unfreeze()
    settle.settle()
    assert gc.get_freeze_count() == 0, "nothing was imported since"
    monkeypatch.setitem(sys.modules, "something_new", ModuleType("something_new"))
    settle.settle()
    assert gc.get_freeze_count() > 1000


def test_garbage_is_not_frozen():
    class Cycle:
        freed = 0

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            Cycle.freed += 1

    settle._n_modules = 0
    Cycle()
    settle.settle()
    assert Cycle.freed == 1
