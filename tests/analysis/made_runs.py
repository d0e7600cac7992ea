"""Runs of any sizes with random weights and masks, for hypothesis."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace

LETTERS = "abcdefg<&$*"


def run(seed: int, n_layers: int, n_heads: int, n_source: int, n_target: int, kinds: tuple[str, ...] = KINDS) -> Trace:
    """Rows of random weights, some cells masked; the masks differ by head now and then."""
    random = np.random.default_rng(seed)
    sizes = {"encoder": (n_source, n_source), "decoder": (n_target, n_target), "cross": (n_target, n_source)}
    arrays: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    for kind in kinds:
        shape = (n_layers, n_heads, *sizes[kind])
        masked = random.random(shape if random.random() < 0.3 else sizes[kind]) < 0.3
        weights = np.where(masked, 0, random.random(shape, np.float32))
        total = weights.sum(-1, keepdims=True)
        arrays[kind] = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        masks[kind] = masked
    source, target = (list(random.choice(list(LETTERS), n)) for n in (n_source, n_target))
    labels = {"source_tokens": source} if {"encoder", "cross"} & set(kinds) else {}
    if {"decoder", "cross"} & set(kinds):
        labels["target_tokens"] = target
        if seed % 2:
            labels["output_tokens"] = [*target[1:], "."]
    return Trace.from_arrays(**arrays, masks=masks, normalised=False, **labels)


@st.composite
def runs(draw: st.DrawFn) -> Trace:
    """Any run."""
    sizes = [draw(st.integers(1, most)) for most in (3, 3, 7, 7)]
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    return run(draw(st.integers(0, 999)), *sizes, kinds=tuple(kinds))
