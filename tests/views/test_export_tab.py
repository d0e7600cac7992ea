"""The tab Export: what it makes is what the screen shows, and its lines of Python make that again."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.views.drawn import picture_of, pictures
from transformer_viz.trace.store import load_trace


def open_tab(at: AppTest, chosen: str, tables: str = "explore_tab") -> AppTest:
    at.session_state[tables] = "Export"
    at.session_state["export_format"] = chosen
    return at.run()


def focus_chart(at: AppTest) -> dict[str, Any]:
    charts = pictures(at)
    return next(chart for chart in charts if chart.get("frames"))


def run_code(code: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(go.Figure, "show", lambda self, **_: None)
    names: dict[str, Any] = {}
    exec(compile(code, "shown", "exec"), names)
    [figure] = [value for value in names.values() if isinstance(value, go.Figure) and value.frames]
    return json.loads(figure.to_json())


def same_picture(drawn: dict[str, Any], again: dict[str, Any]) -> None:
    assert picture_of(drawn) == picture_of(again)


@pytest.mark.parametrize(
    "query",
    [
        {"text": "abc", "kind": "decoder", "layer": "2", "head": "3", "step": "2"},
        {"text": "a'b\\\"<i>$x$", "kind": "cross", "layer": "1", "head": "max"},
        {"text": "hello", "kind": "encoder", "layer": "1", "head": "1", "step": "4"},
    ],
)
def test_the_code_makes_the_same_picture(
    start: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, query: dict[str, str]
) -> None:
    at = open_tab(start(**query), "code")
    assert not at.exception
    same_picture(focus_chart(at), run_code(at.code[0].value, monkeypatch))


def test_the_code_knows_what_is_hidden(start: Callable[..., AppTest]) -> None:
    at = start(text="abc", code_of_tab="true")
    at.toggle(key="hide_answer").set_value(True)
    at = open_tab(at, "html")
    (program,) = at.code
    assert "with_answer=False" in program.value


def test_the_code_of_a_search_makes_the_branch_on_the_screen(
    start: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = start(decoding="beam", text="abc", beam="3", node="2")
    at = open_tab(at, "code", "explore_tab")
    assert not at.exception
    assert "trace.at_node(1)" in at.code[0].value
    same_picture(focus_chart(at), run_code(at.code[0].value, monkeypatch))


def test_small_tables_are_there_at_once(start: Callable[..., AppTest]) -> None:
    at = open_tab(start(text="abc", kind="decoder"), "csv")
    assert not [button for button in at.button if button.key == "export-prepare"]
    assert at.get("download_button")


def test_a_page_is_made_when_it_is_asked_for(start: Callable[..., AppTest]) -> None:
    at = open_tab(start(text="abc", step="2"), "html")
    assert not at.get("download_button")
    at.button(key="export-prepare").click().run()
    assert not at.exception
    label = at.get("download_button")[0].proto.label.replace("\\", "")
    assert label.startswith("Download attention-abc-reverse.html (")
    # Another text has not been asked for.
    at.text_input(key="text").set_value("abcd").run()
    assert not at.get("download_button")


def test_where_no_picture_can_be_made_it_says_what_to_install(
    start: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    at = open_tab(start(text="abc"), "pdf")
    at.button(key="export-prepare").click().run()
    assert not at.exception
    assert "pip install kaleido" in at.error[0].value.replace("\\", "")


def test_what_is_downloaded_is_the_run(start: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offered: dict[str, bytes] = {}
    monkeypatch.setattr(st, "download_button", lambda label, data, name, *_, **__: offered.update({name: data}))
    at = open_tab(start(text="abc"), "npz")
    (tmp_path / "run.npz").write_bytes(offered["attention-abc-reverse.npz"])
    trace = load_trace(tmp_path / "run.npz")
    assert trace.source == "abc"
    open_tab(at, "csv")
    rows = list(csv.DictReader(io.StringIO(offered["attention-abc-reverse.csv"].decode())))
    assert [float(row["weight"]) for row in rows] == pytest.approx(trace.to_frame().weight.tolist(), rel=1e-6)


def test_a_live_page_of_the_model(start: Callable[..., AppTest]) -> None:
    at = open_tab(start(text="abc", code_of_tab="true"), "live")
    assert not at.exception
    assert at.code[0].value.endswith("tv.export.live(checkpoint, 'live-reverse.html', source='abc', theme='light')")
    at.button(key="export-prepare").click().run()
    assert not at.exception
    (button,) = at.get("download_button")
    assert "live-reverse.html" in button.proto.label.replace("\\", "")  # in Markdown
