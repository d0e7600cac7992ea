"""Open through AppTest: files of every kind are drawn without a model, what is no trace is said and does no harm."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.attentions import with_parts
from tests.figures.conftest import build
from tests.views.drawn import drop, said
from tests.views.viewer import content, has_viewer, viewer, weights
from tests.views.widgets import link_of
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.explore.tables import OF_A_FILE

HOSTILE = ("<img src=x onerror=alert(1)>", "</script>", "<s>", "**b**", "$x$")


def by_arrays(**fields: Any) -> tv.Trace:
    tokens = [*HOSTILE]
    weights = np.full((2, 3, 5, 5), 0.2)
    return tv.Trace.from_arrays(cross=weights, source_tokens=tokens, target_tokens=tokens, output_tokens=tokens, **fields)


def test_the_example_is_a_run_of_the_checkpoint(start, model):
    at = start(checkpoint="trace file")
    assert not has_viewer(at) and "python -m transformer_viz trace hello -o hello.npz" in [code.value for code in at.code]
    at.button(key="open-example").click().run()
    (found,) = at.session_state["opened"].values()
    assert found.trace.output_tokens == tv.decode(model, "hello").output_tokens
    assert [*content(at)["kinds"]] == ["encoder", "decoder", "cross"]
    np.testing.assert_allclose(weights(at, "cross"), found.trace.cross.weights, atol=1e-6)


def test_where_the_example_cannot_be_made_it_says_why(start, own_folder):
    at = start(checkpoint="trace file")
    (own_folder / "reverse" / "config.json").write_text("{")
    assert len(at.button(key="open-example").click().run().error) == 1


RUNS: dict[str, Callable[[], tv.Trace]] = {
    "all three kinds, padding": build,
    "encoder alone": lambda: tv.Trace.from_arrays(encoder=np.full((2, 3, 3), 1 / 3), source_tokens=["a", "a", "<b>"]),
    "decoder alone": lambda: tv.Trace.from_arrays(decoder=np.eye(5), target_tokens=[*HOSTILE], masks={"decoder": "causal"}),
    "no probabilities": by_arrays,
    "probabilities without candidates": lambda: by_arrays(probabilities=[0.5] * 5, made_by={"a": {"b": [1, None]}}),
    "scores and edits": lambda: build(
        attentions=with_parts(build(), "cross", scores=np.ones((3, 5, 7, 11), np.float32)),
        edits=("cross.1.1:zero",),
        finished="length",
    ),
    "masks by head": lambda: build(attentions=with_parts(build(), "cross", reasons=np.zeros((3, 5, 7, 11), np.uint8))),
    "a mistake without numbers": lambda: build(mistake="no mask", cross=np.full((3, 5, 7, 11), np.nan, dtype=np.float32)),
    "odd notes": lambda: build(made_by={"seconds": 10**400, "checkpoint": ["x"], "<i>": "y" * 5000}),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_is_drawn_in_every_tab(start, name):
    trace = RUNS[name]()
    at = drop(start(checkpoint="trace file"), ("run.npz", to_bytes(trace)))
    assert not at.error
    sent = content(at)
    assert [*sent["kinds"]] == [*trace.kinds]
    for kind, attention in trace.attentions.items():
        np.testing.assert_allclose(weights(at, kind), attention.weights, atol=1e-6)
    strip = sent["output"]
    assert len(strip) == len(trace.rows)
    if not trace.steps:
        assert not any("tint" in cell or "p =" in cell["title"] for cell in strip), "nothing is claimed that nobody knows"
    for tab in OF_A_FILE:
        at.session_state["explore_tab"] = tab
        at.run()


GOOD = to_bytes(build())


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        ("notes.txt", b"dear diary", "notes.txt is damaged or not a trace file"),
        ("cut.npz", GOOD[: len(GOOD) // 2], "cut.npz is damaged"),
        ("**<img src=x onerror=alert(1)>**.npz", b"no", "**<img src=x onerror=alert(1)>**.npz is damaged"),
    ],
)
def test_what_is_no_trace_is_said_in_words(start, file, data, words):
    at = drop(start(checkpoint="trace file"), (file, data))
    assert words in said(at)
    assert all(sign not in at.error[0].value.replace(f"\\{sign}", "") for sign in "<*["), "nothing in it acts as markup"
    # The next file is read as if nothing had been.
    at = drop(at, ("good.npz", GOOD))
    assert not at.error and [*content(at)["kinds"]] == ["encoder", "decoder", "cross"]


def test_markup_in_a_file_is_text(start):
    trace = by_arrays(probabilities=[0.5] * 5, made_by={"checkpoint": "<b>me</b>", "<i>k</i>": "<u>v</u>"})
    at = drop(start(checkpoint="trace file"), ("<b>x.npz", to_bytes(trace)))
    assert all("<" not in str(element.value).replace("\\<", "") for element in [*at.markdown, *at.caption])
    assert "<b>me</b>" in list(at.dataframe[0].value["as the file says"])
    assert at.selectbox(key="open_name").value == "<b>x"
    layout = content(at)["kinds"]["cross"]["picture"]["wide"]["layout"]
    ticks = [tick for axis, about in layout.items() if "axis" in axis for tick in about.get("ticktext", [])]
    assert any("&lt;" in tick for tick in ticks) and not any("<" in re.sub("</?(b|sup)>|<br>", "", tick) for tick in ticks)


def test_the_link_has_the_place_and_not_the_file(start):
    query = {"kind": "decoder", "layer": "3", "head": "2", "step": "4", "explore_tab": "Heads", "tint": "score"}
    at = start(checkpoint="trace file", **query)
    assert "A link cannot hold a file" in said(at)
    assert link_of(at)["step"] == "4", "a link that waits for its file stays"
    at = drop(at, ("mine.npz", GOOD))
    state = at.session_state
    assert [state[key] for key in query] == ["decoder", 2, 1, "4", "Heads", "score"]
    assert set(query) - {"explore_tab", "tint"} <= set(link_of(at))
    assert "cannot hold a file" not in said(at)


def test_what_a_link_says_and_the_file_does_not_have_is_said(start):
    at = drop(start(checkpoint="trace file", layer="7", explore_tab="What if", step="99"), ("a.npz", GOOD))
    assert all(words in said(at) for words in ("layer=7", "explore_tab=What if", "step=99"))


def test_two_runs_of_the_same_words_are_told_apart(start):
    """The browser keeps a drawn figure as long as the run's name is the same."""
    weights = np.eye(5, dtype=np.float32)[None, None].repeat(2, 1)
    first, second = by_arrays(), replace(by_arrays(), attentions=with_parts(by_arrays(), "cross", weights=weights, layers=(0,)))
    at = drop(start(checkpoint="trace file"), ("a.npz", to_bytes(first)))
    before = viewer(at)
    after = viewer(drop(at, ("b.npz", to_bytes(second))))
    assert after["run"] != before["run"] and after["content"] != before["content"]
