"""Runs made by hand, of any sizes, with planted weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from transformer_viz.trace.trace import Step, Trace
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
    fields: dict[str, Any] = {
        "source": "x" * n_letters,
        "text": "".join(output[:-1]),
        "source_tokens": (START, *"x" * n_letters, END),
        "target_tokens": (START, *output[:-1]),
        "output_tokens": output,
        "steps": tuple(Step(token=o, probability=0.5, log_probability=-0.7, rank=0, candidates=((o, 0.5),)) for o in output),
        "encoder_attentions": np.full((1, 2, s, s), 1 / s, dtype=np.float32),
        "decoder_attentions": np.broadcast_to(allowed / allowed.sum(-1, keepdims=True), (1, 2, t, t)).copy(),
        "cross_attentions": np.full((1, 2, t, s), 1 / s, dtype=np.float32),
        "mask_reasons": {
            "encoder": np.zeros((s, s), dtype=np.uint8),
            "decoder": future,
            "cross": np.zeros((t, s), dtype=np.uint8),
        },
        "finished": "end",
        "alignment": tuple(alignment) if alignment is not None else (None,) * t,
        "source_letters": (None, *range(n_letters), None),
    }
    fields |= changes
    for kind in ("encoder", "decoder", "cross"):  # a kind without attention has no mask
        if fields[f"{kind}_attentions"] is None:
            fields["mask_reasons"] = {k: v for k, v in fields["mask_reasons"].items() if k != kind}
    return Trace(**fields)


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Trace]:
    """`make_run(n_letters, n_steps, alignment, **fields)`."""
    return build


@pytest.fixture(scope="session")
def on() -> Callable[..., np.ndarray]:
    """`on(keys, n_keys)`: rows with all their weight on one key."""
    return rows_on
