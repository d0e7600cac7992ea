"""Runs made by hand, of any sizes, with planted weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.attentions import chosen, unmasked
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END, START


def rows_on(keys: Sequence[int | None], n_keys: int) -> np.ndarray:
    """(query, key) with all weight of row q on keys[q]; None spreads it evenly."""
    rows = np.full((len(keys), n_keys), 1 / n_keys, dtype=np.float32)
    for q, key in enumerate(keys):
        if key is not None:
            rows[q] = 0
            rows[q, key] = 1
    return rows


def build(n_letters: int, n_steps: int, alignment: Sequence[int | None] | None = None, **changes: Any) -> Trace:
    """A run of `<start>`, letters, `<end>` with `n_steps` steps, uniform where nothing else is given; nothing is masked
    but the decoder's future.
    """
    s, t = n_letters + 2, n_steps
    output = (*"abcdefghijklmnopqrstuvw"[: t - 1], END)
    future = np.triu(np.full((t, t), 2, dtype=np.uint8), 1)
    allowed = np.tril(np.ones((t, t), dtype=np.float32))
    looks_back = np.broadcast_to(allowed / allowed.sum(-1, keepdims=True), (1, 2, t, t)).copy()
    attentions: dict[Kind, Attention] = {
        "encoder": unmasked(np.full((1, 2, s, s), 1 / s, dtype=np.float32)),
        "decoder": Attention(weights=looks_back, reasons=future),
        "cross": unmasked(np.full((1, 2, t, s), 1 / s, dtype=np.float32)),
    }
    fields: dict[str, Any] = {
        "source": "x" * n_letters,
        "text": "".join(output[:-1]),
        "source_tokens": (START, *"x" * n_letters, END),
        "target_tokens": (START, *output[:-1]),
        "output_tokens": output,
        "steps": tuple(Step(token=o, probability=0.5, log_probability=-0.7, rank=0, candidates=((o, 0.5),)) for o in output),
        "attentions": chosen(attentions, changes),
        "finished": "end",
        "alignment": tuple(alignment) if alignment is not None else (None,) * t,
        "source_letters": (None, *range(n_letters), None),
    }
    return Trace(**{**fields, **changes})


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Trace]:
    """`make_run(n_letters, n_steps, alignment, **fields)`."""
    return build


@pytest.fixture(scope="session")
def on() -> Callable[..., np.ndarray]:
    """`on(keys, n_keys)`: rows with all their weight on one key."""
    return rows_on
