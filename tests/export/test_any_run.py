"""Every export of runs with less, or more, in them than those of a task: a prompt, an encoder alone, a search after one."""

import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import transformer_viz as tv
from tests.export.test_pages import array, data_of
from tests.figures.conftest import build
from tests.sentences import step_sentence
from tests.trace import planted
from tests.trace.conftest import is_same
from transformer_viz.export.drawings import WHATS, figure_of
from transformer_viz.export.pages import html
from transformer_viz.export.saving import render_bytes
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace

RUNS = {
    "a prompt": planted.run((1, 5, 6)),
    "a source": planted.run((1, 2), has_source=True),
    "an encoder alone": planted.filled(),
    "a search": planted.search(is_windowed=True),
    "tokens like markup": build(),
}


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Trace:
    return RUNS[request.param]


def test_the_page_has_every_sentence_and_number(run: Trace) -> None:
    page = data_of(html(run, plotlyjs=False))
    assert [cell["text"] for cell in page["source"]] == ([display_token(t) for t in run.source_tokens] if run.writes else [])
    assert [cell["text"] for cell in page["output"]] == [display_token(t) for t in run.output_tokens or run.source_tokens]
    assert ("→" in page["title"]) == run.writes
    assert (page["first"], page["grows"]) == (run.n_given, run.writes)
    for kind in run.kinds:
        np.testing.assert_array_equal(array(page["kinds"][kind]["weights"]), run.attentions[kind].weights)
        n_layers, n_heads = run.attentions[kind].weights.shape[:2]
        for layer in range(n_layers):
            for place, head in enumerate([*range(n_heads), "mean", "max"]):
                stored = page["kinds"][kind]["sentences"]
                row = stored[layer][place] if run.is_stepped(kind) else stored[0][0]
                said = [tuple(tuple(page["pieces"][number]) for number in sentence) for sentence in row]
                own: Any = run.attentions[kind].layers[layer], head
                assert said == [step_sentence(run, kind, *own, t) for t in range(len(run.rows))]
    assert len({tuple(piece) for piece in page["pieces"]}) == len(page["pieces"])


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_table_is_the_tidy_frame(run: Trace, format: str) -> None:
    data = io.BytesIO(tv.export.table(run, format))
    read = pd.read_csv(data, keep_default_na=False) if format == "csv" else pd.read_parquet(data)
    pd.testing.assert_frame_equal(read, run.to_frame(), check_dtype=False)


@pytest.mark.parametrize("what", WHATS)
def test_every_figure_of_a_run_is_drawn(run: Trace, what: str) -> None:
    if what == "search" and run.search is None:
        with pytest.raises(tv.TransformerVizError, match="no beam search"):
            figure_of(run, what)
        return
    figure = figure_of(run, what)
    page = data_of(render_bytes(run, "html", what, plotlyjs=False).decode())
    assert what == "player" or page["figure"]["data"] == json.loads(figure.to_json())["data"] != []
    assert is_same(tv.load_trace(render_bytes(run, "npz")), run)
