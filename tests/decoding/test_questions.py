"""How often a decoding asks its device for a number, which on a GPU means waiting for everything before it."""

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from transformer_viz.decoding.greedy import greedy
from transformer_viz.decoding.sampling import Sampling, sampler
from transformer_viz.decoding.stepwise import stepwise
from transformer_viz.trace.recorder import Recorder
from transformer_viz.vocabulary import END_ID

# What makes a number of a tensor, and what has as many entries as the data say.
ASKING = {
    *("item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__"),
    *("nonzero", "masked_select", "unique"),
}


class Questions(TorchFunctionMode):
    """Counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        picks = name == "__getitem__" and isinstance(args[1], torch.Tensor) and args[1].dtype == torch.bool
        self.n += name in ASKING or picks
        return func(*args, **(kwargs or {}))


def greedily(model, source, padding, n, tap):
    return greedy(model, source, padding, max_length=n, ban=(END_ID,), tap=tap)


def by_chance(model, source, padding, n, tap):
    choose = sampler(Sampling(top_p=0.9, seed=1), source, ban=(END_ID,))
    return stepwise(model, source, padding, choose, max_length=n, tap=tap)


@pytest.mark.parametrize("way", [greedily, by_chance])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("is_traced", [False, True])
def test_a_step_asks_once(make_model, ids, way, batch, is_traced):
    """Whether every sentence has ended, and nothing else; a traced step no more than another."""
    model, source = make_model(3), ids(1, batch, 6)
    padding = None if batch == 1 else torch.arange(6) >= torch.tensor([[6], [4], [5]])

    def asked(n: int) -> int:
        with Questions() as questions:
            decoded = way(model, source, padding, n, Recorder() if is_traced else None)
        assert decoded.ids.shape == (batch, n)
        return questions.n

    assert asked(12) - asked(5) == 12 - 5
    assert asked(5) - 5 <= 2


def test_the_counter_counts():
    with Questions() as questions:
        x = torch.arange(4)
        int(x.sum())
        bool((x > 1).all())
        x[x > 1]
    assert questions.n == 3
