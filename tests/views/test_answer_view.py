"""Beside every output stands whether it is right; with the answer hidden, nothing of a step that is not revealed is sent."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import CODE, charts, is_chart
from tests.views.viewer import content, everything, has_viewer, viewer
from tests.views.widgets import link_of
from transformer_viz import Checkpoint, Trace, decode, load_checkpoint
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.steps import Step
from transformer_viz.views.cache import runs
from transformer_viz.views.components import viewer as viewer_component
from transformer_viz.views.components.opened import Opened
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.explore.tables import OF_A_FILE
from transformer_viz.views.explore.tables import TABS as TABLES
from transformer_viz.views.masks.page import TABS as MODULES

TABS = tuple(MODULES)
MINE = {"checkpoint": "reverse-small"}
PAGES: dict[str, tuple[str | None, dict[str, str], int]] = {
    "explore": (None, {"text": "hello"}, 1),
    "what if": (None, {"text": "hello", "explore_tab": "What if", "what_if_prefix": '["o", "l"]'}, 3),
    "search": (None, {"text": "hello", "decoding": "beam", "beam": "3"}, 4),
    "compare": ("compare", {"text": "hello", "b_text": "hello", "b_strategy": "beam"}, 2),
    "masks": ("masks", {"sources": "hello"}, 1),
    "change": ("masks", {"sources": "hello", "masks_tab": TABS[2], "edits": "cross:off, cross.1.1:zero"}, 2),
    "how it learned": ("train", {"text": "hello", "learned": "true"}, 5),
}
"""A page, what it is opened with, and how often at least the expected answer is said."""
N = 7


def sent(at: AppTest) -> str:
    """All that the page says and the browser fetches of the run, but for charts, code, and what was typed."""
    elements = [*at.error, *at.info, *at.warning, *at.markdown, *at.caption, *at.text]
    words = [str(element.value).replace("\\", "") for element in elements]
    words += [frame.value.to_csv() for frame in at.dataframe]
    words += [part.proto.json or part.proto.bytes.decode() for part in at.get("bidi_component") if not is_chart(part.proto)]
    if has_viewer(at):
        # What is said beside the output may be said otherwise by the page.
        fetched, said = content(at), viewer(at)["parts"]
        words.append(json.dumps({**fetched, "answer": said.get("answer", fetched.get("answer"))}, ensure_ascii=False))
    return " ".join(words)


@pytest.mark.parametrize("name", PAGES)
def test_every_output_is_judged_unless_the_answer_is_hidden(start, everything, name):
    page, query, count = PAGES[name]
    at = start(page, **query, **MINE, **({"b_checkpoint": "reverse-small"} if name == "compare" else {}))
    assert sent(at).count("olleh") >= count
    written = decode(load_checkpoint(str(everything / "reverse-small"), "cpu"), "hello").text
    assert written in sent(at) or page is None  # Explore has it token by token
    at.toggle(key="hide_answer").set_value(True).run()
    assert link_of(at)["hide_answer"] == "true"
    for word in ("olleh", "whether it is right", written):
        assert word not in sent(at)
    if page is not None:
        assert not [chart for chart in charts(at) if chart.key != "training-chart"]
        assert "would give the answer away" in at.info[0].value


# ---- nothing of a later step is sent


def planted(trace: Trace) -> Trace:
    """The first steps of a run with tokens that stand nowhere else, and one weight in each row that no other has."""
    assert trace.n_steps >= N
    outputs = tuple(f"Zq{t}x" for t in range(N))
    attentions: dict[Kind, Attention] = dict(trace.attentions)
    for kind, n_keys in (("decoder", N), ("cross", len(trace.source_tokens))):
        rows = np.zeros((2, 3, N, n_keys), np.float32)
        rows[:, :, :, 0] = [weight(t) for t in range(N)]
        attentions[kind] = Attention(weights=rows, reasons=trace.attentions[kind].reasons[:N, :n_keys])
    steps = tuple(
        Step(token=token, probability=0.5, log_probability=-0.7, rank=0, candidates=((token, 0.5), (f"Yw{t}x", 0.25)))
        for t, token in enumerate(outputs)
    )
    return replace(
        trace,
        attentions=attentions,
        target_tokens=("<start>", *outputs[:-1]),
        output_tokens=outputs,
        text="".join(outputs),
        steps=steps,
        alignment=trace.alignment[:N],
        expected="".join(outputs),
        expected_tokens=outputs,
    )


def weight(t: int) -> float:
    return float(np.float32(0.701 + t / 1000))


def numbers(content: Any) -> Iterator[float]:
    """All numbers of a figure or of a run, also those that travel as bytes."""
    if isinstance(content, dict):
        if "bdata" in content:
            yield from np.frombuffer(base64.b64decode(content["bdata"]), content["dtype"]).astype(float).tolist()
        else:
            for part in content.values():
                yield from numbers(part)
    elif isinstance(content, list):
        for part in content:
            yield from numbers(part)
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield float(content)


def told(at: AppTest) -> tuple[set[int], set[int], set[int]]:
    """The steps of which the page tells the token, what else could have been written, and a weight."""
    sent = [str(getattr(node, "proto", "")) for block in (at.main, at.sidebar) for node in block]
    fetched = everything(at)
    said = "".join([*sent, str(link_of(at)), json.dumps(fetched)])
    drawn = np.array([number for each in (*(chart.figure for chart in charts(at)), *fetched) for number in numbers(each)])
    weights = {t for t in range(N) if np.isclose(drawn, weight(t), rtol=0, atol=1e-5).any()}
    return ({int(t) for t in re.findall(r"Zq(\d)x", said)}, {int(t) for t in re.findall(r"Yw(\d)x", said)}, weights)


@pytest.fixture
def plant(model: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """What Explore decodes, whatever is typed."""
    trace = planted(decode(model, "hello"))
    monkeypatch.setattr(runs, "run", lambda model, text: record(trace, Call(decode, model, text)))
    return trace


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("step", [0, 3, N])
def test_only_revealed_steps_are_sent(start, plant, step, kind):
    at = start(text="hello", **CODE, kind=kind, hide_answer="true", step=str(step + 1))
    tokens, others, weights = told(at)
    assert tokens == weights == {*range(step)}
    assert others <= {*range(step)}
    at.toggle(key="hide_answer").set_value(False).run()
    assert told(at)[0] == {*range(N)}


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_no_head_of_a_run_in_parts_tells_more(start, plant, kind, monkeypatch):
    monkeypatch.setattr(viewer_component, "_IN_PARTS_FROM", 0)
    at = start(text="hello", kind=kind, hide_answer="true", step="4")
    assert "weights" not in content(at)["kinds"][kind]
    tokens, others, weights = told(at)
    assert tokens == weights == {0, 1, 2} >= others


@pytest.mark.parametrize(("is_file", "tab"), [*((False, tab) for tab in TABLES), *((True, tab) for tab in OF_A_FILE)])
def test_no_tab_tells_more(start, plant, is_file, tab):
    held = {"a.npz": Opened(plant, "a.npz", "f-a")} if is_file else {}
    query = {"checkpoint": "trace file"} if is_file else {"text": "hello", "code_of_tab": "true"}
    assert told(start(None, held, **query, hide_answer="true", step="3", explore_tab=tab))[0] == {0, 1}


def test_hiding_begins_with_nothing_revealed_and_showing_stays(start, plant):
    at = start(text="hello", step="5")
    at.toggle(key="hide_answer").set_value(True).run()
    assert told(at)[0] == set()
    at = start(text="hello", hide_answer="true", step=str(N + 1))
    at.toggle(key="hide_answer").set_value(False).run()
    assert at.session_state.step == str(N)


@pytest.mark.parametrize(("text", "is_date"), [("hello world", False), ("5. März 1986", True)])
def test_a_text_that_is_no_date_is_said_to_be_none(start, shipped, text, is_date):
    at = start(None, checkpoint="dates", text=text)
    assert any("no date of the kinds that it learned" in info.value for info in at.info) != is_date
