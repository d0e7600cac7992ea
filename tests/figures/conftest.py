"""A run with all-different prime sizes and tokens that would act as markup."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.utils import PlotlyJSONEncoder

from transformer_viz.figures.bare import BareFigure
from transformer_viz.terms import Reason
from transformer_viz.trace.trace import Step, Trace

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
        "encoder_attentions": softmax_rows((2, 5, s, s), reasons["encoder"] > 0, 1),
        "decoder_attentions": softmax_rows((3, 5, t, t), reasons["decoder"] > 0, 2),
        "cross_attentions": softmax_rows((3, 5, t, s), reasons["cross"] > 0, 3),
        "mask_reasons": reasons,
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


@pytest.fixture(autouse=True, scope="module")
def every_plain_figure_is_valid() -> Iterator[None]:
    """What a `BareFigure` is made of is not checked when it is made: for all that these tests make, it is here.

    Plotly does not only check, it also mends: a list of colours becomes a scale. What it would mend, the browser cannot read.
    """
    made = BareFigure.__init__

    def checked(self: BareFigure, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        plain = BareFigure.to_dict(self)
        mended = go.Figure(plain).to_dict()
        del mended["layout"]["template"]
        assert _as_sent(mended) == _as_sent(plain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BareFigure, "__init__", checked)
        yield


def _as_sent(figure: dict[str, Any]) -> dict[str, Any]:
    sent = json.loads(PlotlyJSONEncoder().encode({name: figure[name] for name in ("data", "layout")}))
    return sent
