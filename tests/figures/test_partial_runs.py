"""Runs that somebody else made: one kind alone, no outputs, no probabilities. Pictures and sentences say what is known."""

import json
from typing import Any

import numpy as np
import pytest

from tests.figures.sent import numbers, spec
from tests.sentences import step_sentence
from transformer_viz import Trace, figures
from transformer_viz.analysis.mask_parts import mask_parts
from transformer_viz.export.strips import output_strip
from transformer_viz.figures import masks
from transformer_viz.figures.theme import Style
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.terms import REASON_WORDS, Reason

SOURCE = ["<b>", "$x$", "l", "l", "</s>", "f", "g"]
TARGET = ["<s>", "l", "<i>", " ", "e"]
OUTPUT = ["l", "<i>", " ", "e", "</s>"]
CROSS = np.full((2, 3, 5, 7), 1 / 7)
UNKNOWN = np.zeros((5, 7), bool)
UNKNOWN[1, 2] = UNKNOWN[4] = True


def cross(**fields: Any) -> Trace:
    return Trace.from_arrays(cross=CROSS, source_tokens=SOURCE, target_tokens=TARGET, **fields)


def masked() -> Trace:
    weights = np.where(UNKNOWN, 0, 1.0) / np.maximum((~UNKNOWN).sum(-1, keepdims=True), 1)
    fields: dict[str, Any] = {"source_tokens": SOURCE, "target_tokens": TARGET}
    return Trace.from_arrays(cross=weights, masks={"cross": UNKNOWN}, **fields)


RUNS: dict[str, Trace] = {
    "encoder": Trace.from_arrays(encoder=np.full((7, 7), 1 / 7), source_tokens=SOURCE),
    "decoder": Trace.from_arrays(
        decoder=np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None], target_tokens=TARGET, masks={"decoder": "causal"}
    ),
    "cross": cross(),
    "outputs": cross(output_tokens=OUTPUT),
    "probabilities": cross(output_tokens=OUTPUT, probabilities=[0.5, 0.25, 0, 1, 0.125], alignment=[0, None, 6, 2, 1]),
    "masked": masked(),
}
runs = pytest.mark.parametrize("trace", RUNS.values(), ids=RUNS)


@runs
def test_every_picture_draws_every_kind(trace: Trace) -> None:
    for kind in trace.kinds:
        weights = trace.attentions[kind].weights
        for figure in (figures.attention(trace, f"{kind}.1.1"), figures.player(trace, kind, step=max(0, trace.n_steps - 1))):
            drawn = numbers(spec(figure)["data"][0]["z"])
            np.testing.assert_array_equal(drawn, np.where(trace.attentions[kind].mask, np.float32(np.nan), weights[0, 0]))
        spec(figures.mosaic(trace, kind, (0, 0)))
        spec(figures.mask(trace, kind))
        for narrow in (False, True):
            spec(figures.player(trace, kind, style=Style("dark", large=True, narrow=narrow)))
    spec(figures.mask_grid([mask_parts(trace)], ["a run"]))
    assert set(trace.to_frame()["kind"]) == set(trace.kinds)


@runs
def test_every_step_has_a_valid_frame(trace: Trace) -> None:
    """Frames are unchecked when a figure is made; here Plotly checks them, and each fits the traces of the figure."""
    for kind in trace.kinds:
        figure = figures.player(trace, kind)
        frames = figure.frames
        assert len(frames) == len(trace.rows) == figure.layout.meta["steps"]
        for frame in frames:
            assert [update.type for update in frame.data] == [drawn.type for drawn in figure.data]


def test_candidates_are_drawn_only_where_they_are_known() -> None:
    for name, trace in RUNS.items():
        for kind in trace.kinds:
            drawn = spec(figures.player(trace, kind))
            kinds = [data["type"] for data in drawn["data"]]
            assert ("bar" in kinds) == (name == "probabilities")
            assert ("xaxis2" in drawn["layout"]) == (name == "probabilities")
            wide = drawn["layout"]["xaxis"]["domain"] == [0, 1]
            assert wide == (name != "probabilities"), "the map has the candidates' place"


LOOKS = "layer 1 head 1 looks 14 % at `<b>` (token 1)"
SAID = {
    "cross": f"having read `l`, {LOOKS}; what it writes is not recorded.",
    "outputs": f"having written `l`, {LOOKS} and what is written is `<i>`, its probability not recorded.",
    "probabilities": f"having written `l`, {LOOKS} and the model writes `<i>` (probability 25 %).",
}


def test_sentences_claim_nothing_that_is_not_known() -> None:
    for name, words in SAID.items():
        assert plain(step_sentence(RUNS[name], "cross", 0, 0, 1)) == f"Step 2 of 5: {words}"
    assert output_strip(RUNS["cross"])[1]["title"] == "row 2: has read l"
    alone = "The encoder alone, token 1 of 7: layer 1 head 1, `<b>` looks 14 % at `<b>` (token 1)."
    assert plain(step_sentence(RUNS["encoder"], "encoder", 0, 0, 0)) == alone


def test_a_mask_without_a_known_reason_has_a_colour_and_words_of_its_own() -> None:
    drawn = spec(figures.mask(RUNS["masked"], "cross"))
    assert "why was not recorded" in json.dumps(drawn["data"][0]["text"])
    assert REASON_WORDS[Reason.UNKNOWN] in [data.get("name") for data in drawn["data"]]
    cells = drawn["data"][0]
    low, high = cells["zmin"], cells["zmax"]
    for code in REASON_WORDS:
        at = (code - low) / (high - low)
        below = [shade for place, shade in cells["colorscale"] if place <= at]
        assert below[-1] == masks.LOOKS[code][0], "each code falls into its own band of the scale"
