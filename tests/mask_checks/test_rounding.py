"""What the numbers hold, whatever type the last step has: directed rounding shows it, and no leak hides behind it."""

import numpy as np
import pytest
import torch
from torch import Tensor

import transformer_viz as tv
from transformer_viz.mask_checks.float64_mode import rounded


@pytest.mark.parametrize(("dtype", "apart"), [("float32", 2**-24), ("float64", 2**-53)])
def test_directed_rounding_shows_what_a_type_holds(dtype, apart):
    """1/3 is between two numbers of the type, which are `2 * apart / 3` to `2 * apart` of it apart."""
    one, three = np.ones(3, dtype), np.full(3, 3, dtype)
    with rounded("up"):
        up = one / three
        with rounded("nearest"):
            nearest = one / three
    with rounded("down"):
        down = one / three
    assert (up > down).all() and (nearest == one / three).all() and np.isin(nearest, [up[0], down[0]]).all()
    assert ((up - down) / down <= 2 * apart * 1.01).all() and ((up - down) / down > apart).all()
    with pytest.raises(ZeroDivisionError), rounded("up"):
        1 / 0  # noqa: B018
    assert (one / three == nearest).all(), "to the nearest again, even after an error"


def of_numpy(computed_in: type, vocabulary_size: int, width: int, leak: str = "", size: float = 0.0):
    """A decoder of numpy whose last step is in float64, whatever the others are in."""
    generator = np.random.default_rng(width)
    shapes = ((vocabulary_size, width), (vocabulary_size, width), (width, vocabulary_size))
    source_table, table, output = (generator.normal(size=shape).astype(computed_in) for shape in shapes)
    direction = generator.normal(size=vocabulary_size)

    def leaked(source: np.ndarray, target: np.ndarray) -> np.ndarray | float:
        n, after = target.shape[1], np.roll(target, -1, 1)[..., None]
        has_next = (np.arange(n) < n - 1)[:, None]
        return {
            "": 0.0,
            "future": after * has_next,
            "target length": n,
            "batch invariance": source.mean(),
            "batch size": len(source),
            "source padding": (source == 0).sum(1)[:, None, None],
            "target padding": (after == 0) * has_next,
        }[leak] * direction

    def f(source: Tensor, target: Tensor) -> Tensor:
        read, written = source.numpy(), target.numpy()
        is_real = (read != 0)[..., None].astype(computed_in)
        mean = (source_table[read] * is_real).sum(1, keepdims=True) / np.maximum(is_real.sum(1, keepdims=True), 1)
        counts = np.arange(1, written.shape[1] + 1).astype(computed_in)[:, None]
        hidden = np.tanh(table[written].cumsum(1, dtype=computed_in) / counts + mean)
        assert hidden.dtype == computed_in
        logits = (hidden @ output).astype(np.float64) + size * leaked(read, written)
        logits = logits - logits.max(-1, keepdims=True)
        return torch.from_numpy(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))

    return f


LEAKS = ["future", "target length", "batch invariance", "batch size", "source padding", "target padding"]


@pytest.mark.parametrize(("vocabulary_size", "width", "longest"), [(101, 67, 7), (211, 131, 5)])
@pytest.mark.parametrize("computed_in", [np.float32, np.float64])
def test_a_sound_model_of_numpy_is_sound_whatever_it_computes_in(computed_in, vocabulary_size, width, longest):
    """From some width on a matrix product adds in another order where the shape is another."""
    f = of_numpy(computed_in, vocabulary_size, width)
    report = tv.check_masks(f, vocabulary_size=vocabulary_size, pad_id=0, max_length=longest)
    assert report.sound and report.precision is not None, str(report)
    assert (report.precision.own, report.precision.computed_in) == ("float64", np.dtype(computed_in).name)


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize(("computed_in", "size"), [(np.float64, 1e-7), pytest.param(np.float32, 1e-2, marks=pytest.mark.slow)])
def test_what_the_numbers_hold_is_no_hole_for_leaks(computed_in, size, leak):
    report = tv.check_masks(
        of_numpy(computed_in, 101, 67, leak, size), vocabulary_size=101, pad_id=0, max_length=7, replacements=1
    )
    assert report.verdict == "leaking"
    assert report.precision is not None and report.precision.computed_in == np.dtype(computed_in).name
    assert {finding.rule for finding in report.findings} >= {"batch invariance" if leak == "batch size" else leak}
