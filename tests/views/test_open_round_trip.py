"""A run that left the app as a file comes back as it was: the same arrays, the same figures, the same code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.trace.conftest import is_same
from tests.views.drawn import pictures
from transformer_viz.trace.store import load_trace

Start = Callable[..., AppTest]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the page offers to download, by file name."""
    files: dict[str, bytes] = {}
    monkeypatch.setattr(st, "download_button", lambda label, data, name, *_, **__: files.update({name: data}))
    return files


def export(at: AppTest, tables: str) -> AppTest:
    at.session_state[tables], at.session_state["export_format"] = "Export", "npz"
    at.run()
    assert not at.exception
    return at


def drop(at: AppTest, name: str, data: bytes) -> AppTest:
    at.file_uploader[0].set_value([(name, data, "")]).run()
    assert not at.exception
    assert not at.error
    return at


@pytest.mark.parametrize(
    "place", [{"kind": "cross", "layer": "2", "head": "3"}, {"kind": "decoder", "layer": "1", "head": "max"}]
)
def test_out_of_explore_and_in_again(start: Start, offered: dict[str, bytes], place: dict[str, str]) -> None:
    explore = export(start(text="a<b>c", step="2", **place), "explore_tab")
    (name, data), *_ = offered.items()
    at = drop(start(checkpoint="trace file", step="2", **place), name, data)
    assert pictures(at) == pictures(explore)
    offered.clear()
    export(at, "explore_tab")
    assert [*offered.values()] == [data], "and out again: the same bytes"
    (found,) = at.session_state["opened"].values()
    assert is_same(found.trace, load_trace(data))


def test_a_search_with_its_tree(start: Start, offered: dict[str, bytes]) -> None:
    place = {"node": "2", "kind": "decoder", "layer": "2", "head": "2"}
    search = export(start(decoding="beam", text="abc", beam="3", **place), "explore_tab")
    (name, data), *_ = offered.items()
    at = drop(start(checkpoint="trace file", **place), name, data)
    tree, *others = pictures(search)
    points = [trace["customdata"] for trace in tree["data"] if "customdata" in trace]
    assert pictures(at)[1:] == others, "the branch and its attention"
    # A run has the greedy run above the tree; a file does not hold it.
    assert [trace["customdata"] for trace in pictures(at)[0]["data"] if "customdata" in trace] == points
    offered.clear()
    export(at, "explore_tab")
    assert [*offered.values()] == [data]


def test_the_lines_of_python_draw_the_file(
    start: Start, offered: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(start(text="abc"), "explore_tab")
    (name, data), *_ = offered.items()
    place = {"kind": "decoder", "layer": "2", "head": "2"}
    at = drop(start(checkpoint="trace file", **place, explore_tab="Export", export_format="code"), name, data)
    (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(go.Figure, "show", lambda self, **_: None)
    names: dict[str, Any] = {}
    exec(compile(at.code[0].value, "shown", "exec"), names)
    again, shown = json.loads(names["figure"].to_json()), pictures(at)[0]
    assert (again["data"], again["frames"]) == (shown["data"], shown["frames"])
