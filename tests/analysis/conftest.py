"""Runs made by hand, of any sizes, with planted weights."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.attentions import chosen
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
    looks_back = np.tril(np.ones((1, 2, t, t)))
    run = Trace.from_arrays(
        encoder=np.full((1, 2, s, s), 1 / s),
        decoder=looks_back / looks_back.sum(-1, keepdims=True),
        cross=np.full((1, 2, t, s), 1 / s),
        masks={"decoder": "causal"},
        source_tokens=(START, *"x" * n_letters, END),
        target_tokens=(START, *output[:-1]),
        output_tokens=output,
        candidates=[[(token, 0.5)] for token in output],
        text="".join(output[:-1]),
    )
    known: dict[str, Any] = {"finished": "end", "source_letters": (None, *range(n_letters), None), "made_by": {}}
    known |= {"alignment": (None,) * t if alignment is None else tuple(alignment), "source": "x" * n_letters}
    return replace(run, **{**known, "attentions": chosen(run.attentions, changes), **changes})


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Trace]:
    """`make_run(n_letters, n_steps, alignment, **fields)`."""
    return build


@pytest.fixture(scope="session")
def on() -> Callable[..., np.ndarray]:
    """`on(keys, n_keys)`: rows with all their weight on one key."""
    return rows_on
