"""Somebody's code in float64: equal to the same code made of float64, and without a trace afterwards."""

import pytest
import torch
from torch import nn

from tests.mask_checks.zoo.parts import Tiny, V
from transformer_viz.mask_checks.callable_check import CallableAnswers
from transformer_viz.mask_checks.changes import Rows
from transformer_viz.mask_checks.float64_mode import Float64Mode

SOURCE, TARGET = torch.randint(1, V, (2, 3, 5), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_computes_what_its_copy_in_float64_does(dtype):
    model = Tiny(2).to(dtype)
    with Float64Mode() as mode:
        found = model(SOURCE, TARGET)
    assert (found.dtype, mode.coarsest) == (torch.float64, dtype)
    torch.testing.assert_close(found, model.double()(SOURCE, TARGET), rtol=1e-13, atol=0)


def test_what_is_written_into_a_buffer_stays_and_seeded_random_numbers_are_the_same():
    cache, want = torch.zeros(2, 3), torch.randn(4, generator=torch.Generator().manual_seed(2))
    with Float64Mode():
        cache[0][1] = torch.tensor(0.5)
        cache[1:].add_(1)
        found = torch.randn(4, generator=torch.Generator().manual_seed(2))
    assert cache.dtype == torch.float32 and cache.tolist() == [[0, 0.5, 0], [1, 1, 1]]
    assert torch.equal(found, want.double())


def test_casts_and_types_are_those_of_float64():
    x = torch.ones(3, dtype=torch.bfloat16)
    with Float64Mode():
        casts = (x, x.float(), x.half(), x.to(torch.float32), torch.arange(3).float(), torch.zeros(2, dtype=torch.float16))
        with torch.autocast("cpu", torch.bfloat16):
            casts += (nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)), torch.arange(3) / 2)
        assert {each.dtype for each in casts} == {torch.float64} and torch.arange(3).dtype == torch.int64


def test_afterwards_all_is_as_before():
    before = torch.get_default_dtype()
    with pytest.raises(ZeroDivisionError), Float64Mode():
        1 / 0  # noqa: B018
    assert torch.get_default_dtype() == torch.ones(1).dtype == before


def answers(f) -> CallableAnswers:
    asked = CallableAnswers(f)
    own = asked.own_answer(SOURCE, TARGET)
    asked.detect_computation_outside_torch((SOURCE, TARGET), (SOURCE % (V - 1) + 1, TARGET % (V - 1) + 1))
    asked.compare(own, Rows.of(asked(SOURCE, TARGET)))
    return asked


def test_what_cannot_be_computed_in_float64_is_said():
    weight = torch.randn(V, 4)

    def by_numpy(source, target):
        return torch.from_numpy(weight.numpy()[target.numpy()].astype("float32")).log_softmax(-1)

    def another(source, target):
        return weight[target] * (2 if torch.get_default_dtype() == torch.float64 else 1)

    def in_float32_only(source, target):
        if torch.get_default_dtype() == torch.float64:
            raise TypeError("float32 is needed")
        return weight[target]

    assert answers(lambda source, target: weight[target]).precision.computed_in == "float64"
    for f, words in ((by_numpy, "outside of torch"), (another, "something else"), (in_float32_only, "float32 is needed")):
        precision = answers(f).precision
        assert precision.computed_in == "float32"
        assert words in precision.why_coarser
        assert words in str(precision)
