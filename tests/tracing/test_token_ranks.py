"""Probabilities, ranks and candidates against a plain sort, ties and numbers that are none included."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_viz.tracing.token_ranks import steps_of

# Few different numbers, so that ties are common: at the top, at the last candidate, below all of them.
NUMBERS = st.sampled_from([-math.inf, -1e30, -2.0, -1.0, 0.0, 0.5, 0.5 + 2**-24, 1e-30, 2e-30, 3.0, 60.0])


@st.composite
def runs(draw):
    """Logits, what was written, and how many candidates."""
    size, n_steps = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    row = st.lists(NUMBERS, min_size=size, max_size=size).filter(lambda row: max(row) > -math.inf)
    logits = draw(st.lists(row, min_size=n_steps, max_size=n_steps))
    written = draw(st.lists(st.integers(0, size - 1), min_size=n_steps, max_size=n_steps))
    return torch.tensor(logits), written, draw(st.integers(1, 11))


@given(runs())
@example((torch.tensor([[1.0, 2.0, 2.0, 0.0]]), [2], 1))
@example((torch.tensor([[0.0, 1e-30, 2e-30, 5.0]]), [1], 3))
def test_steps_are_what_a_plain_sort_says(run):
    logits, written, n = run
    steps = steps_of(logits, written, n, str)
    assert [step.token for step in steps] == [str(number) for number in written]
    for row, number, step in zip(logits.numpy(), written, steps, strict=True):
        exact = row.astype(float)
        log_p = exact - exact.max() - math.log(math.fsum(np.exp(exact - exact.max())))
        order = sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))
        assert step.rank == order.index(number)
        assert step.log_probability == pytest.approx(log_p[number], abs=1e-12)
        assert step.probability == pytest.approx(math.exp(log_p[number]), abs=1e-12)
        possible = [i for i in order[:n] if row[i] > -math.inf]
        assert [token for token, _ in step.candidates] == [str(i) for i in possible]
        assert [p for _, p in step.candidates] == pytest.approx([math.exp(log_p[i]) for i in possible], abs=1e-12)


def test_a_row_without_numbers_keeps_the_order_of_decoding():
    """A mistake with masks makes such rows. argmax takes the first of what is no number, and so does the order here."""
    logits = torch.tensor([[0.0, math.nan, 2.0, math.nan, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0]])
    steps = steps_of(logits, [int(row.argmax()) for row in logits], 4, str)
    assert [step.rank for step in steps] == [0, 0]
    assert [[token for token, _ in step.candidates] for step in steps] == [["1", "3", "2", "4"], ["4", "3", "2", "1"]]
    assert math.isnan(steps[0].probability)
    assert steps[0].sampling_probability is None
