"""A run with all-different prime sizes and tokens that would act as markup."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.attentions import chosen
from transformer_viz.figures.figure_data import PlainFigure
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.trace.trace import Trace

SOURCE = ("<start>", "<b>", "$x$", " ", "&amp;", "l", "l", "</s>", "e\u0301", "\u202e", "<end>")
OUTPUT = ("l", "<i>", "l", " ", "$", "&", "<end>")


def softmax_rows(shape: tuple[int, ...], masked: np.ndarray, seed: int) -> np.ndarray:
    """Random rows that sum to 1 over allowed keys and are exactly 0 on masked ones."""
    raw = np.random.default_rng(seed).random(shape) + 0.01
    raw = np.where(masked, 0.0, raw)
    return (raw / raw.sum(-1, keepdims=True)).astype(np.float32)


def build(**changes: Any) -> Trace:
    s, t = len(SOURCE), len(OUTPUT)
    padding = np.zeros(s, dtype=np.uint8)
    padding[3] = Reason.PADDING
    future = np.triu(np.full((t, t), int(Reason.FUTURE), dtype=np.uint8), 1)
    reasons = {"encoder": np.tile(padding, (s, 1)), "decoder": future, "cross": np.tile(padding, (t, 1))}
    shapes: dict[Kind, tuple[int, ...]] = {"encoder": (2, 5, s, s), "decoder": (3, 5, t, t), "cross": (3, 5, t, s)}
    attentions = {
        kind: Attention(weights=softmax_rows(shape, reasons[kind] > 0, seed), reasons=reasons[kind])
        for seed, (kind, shape) in enumerate(shapes.items(), 1)
    }
    rng = np.random.default_rng(7)
    steps = []
    for token in OUTPUT:
        p = np.sort(rng.dirichlet(np.full(8, 0.3)))[::-1]
        others = [x for x in ("a", "b", "<u>", "$", "c", "d", "f", "g", "h") if x != token][:7]
        candidates = tuple(zip((token, *others), p.tolist(), strict=True))
        steps.append(
            Step(token=token, probability=float(p[0]), log_probability=float(np.log(p[0])), rank=0, candidates=candidates)
        )
    fields: dict[str, Any] = {
        "source": "".join(SOURCE[1:-1]),
        "text": "".join(OUTPUT[:-1]),
        "source_tokens": SOURCE,
        "target_tokens": ("<start>", *OUTPUT[:-1]),
        "output_tokens": OUTPUT,
        "steps": tuple(steps),
        "attentions": chosen(attentions, changes),
        "finished": "end",
        "alignment": (6, 5, 6, 4, 2, 1, None),
        "source_letters": (None, *range(s - 2), None),
    }
    return Trace(**{**fields, **changes})


@pytest.fixture(scope="session")
def make_trace() -> Callable[..., Trace]:
    return build


@pytest.fixture(scope="session")
def trace() -> Trace:
    return build()


def same(sent: PlainFigure, figure: go.Figure) -> None:
    ours, theirs = json.loads(sent.to_json()), json.loads(figure.to_json())
    del theirs["layout"]["template"]
    assert numbers(ours) == numbers(theirs)


def numbers(value: Any) -> Any:
    """With every typed array as the bytes of its numbers, and its shape; what is an empty list Plotly leaves out."""
    if isinstance(value, dict):
        if "bdata" in value:
            flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            shape = [int(n) for n in str(value.get("shape", flat.size)).split(",")]
            return flat.astype(np.float64).tobytes(), shape
        return {key: numbers(entry) for key, entry in value.items() if entry != []}
    return [numbers(entry) for entry in value] if isinstance(value, list) else value


@pytest.fixture(autouse=True, scope="module")
def every_plain_figure_is_what_plotly_makes_of_it() -> Iterator[None]:
    """The app sends plain figures unchecked: for all that these tests make, what is sent is what Plotly makes of it.

    Plotly does not only check, it also mends: a list of colours becomes a scale. What it would mend, the browser cannot read.
    """
    made = PlainFigure.to_plotly

    def compared(self: PlainFigure) -> go.Figure:
        figure = made(self)
        same(self, figure)
        return figure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainFigure, "to_plotly", compared)
        yield
