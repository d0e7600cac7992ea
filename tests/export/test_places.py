"""One numbering: the place of a token is, wherever a person reads it, the number that stands on the axis before it."""

from html import unescape

import pytest

from tests.sentences import step_sentence
from transformer_viz import figures
from transformer_viz.export.content import content
from transformer_viz.export.strips import output_strip, source_strip
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.terms import Kind
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace


def on_axes(trace: Trace, kind: Kind) -> tuple[list[str], list[str]]:
    """What the rows and the columns of a kind's map are called."""
    layout = figures.attention(trace, kind).layout
    rows, columns = ([unescape(label) for label in axis.ticktext] for axis in (layout.yaxis, layout.xaxis))
    return rows, columns


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_a_step_and_its_key_have_the_numbers_of_row_and_column(trace: Trace, kind: Kind) -> None:
    rows, columns = on_axes(trace, kind)
    for step in range(trace.n_steps):
        said = plain(step_sentence(trace, kind, 1, 3, step))
        number = columns[int(trace.attentions[kind].head(1, 3)[step].argmax())].split("·")[0]
        assert said.startswith(f"Step {step + 1} of ") and f"` (token {number})" in said
        assert rows[step].startswith(f"{step + 1}·")


def test_the_strips_count_as_the_axes_do(trace: Trace) -> None:
    _, columns = on_axes(trace, "cross")
    for label, cell, token in zip(columns, source_strip(trace), trace.source_tokens, strict=True):
        assert cell["title"] == f"token {label.split('·')[0]}: {display_token(token)}"
    rows, _ = on_axes(trace, "decoder")
    for label, cell in zip(rows, output_strip(trace), strict=True):
        assert cell["title"].startswith(f"step {label.split('·')[0]}: ")


def test_the_page_has_the_labels_of_the_axes(trace: Trace) -> None:
    page = content(trace, theme="light", large=False, with_answer=True)
    for kind in trace.kinds:
        rows, columns = on_axes(trace, kind)
        linked = page["kinds"][kind]["linked"]
        seen = [[label.replace("\u202e", "\\u202e") for label in linked[side]] for side in ("rows", "keys")]
        assert seen == [rows, columns]
        assert page["kinds"][kind]["mosaic"]["data"][-1]["text"] == list(figures.mosaic(trace, kind).data[-1].text)
