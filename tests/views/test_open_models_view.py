"""Runs of models that are not ours leave the app as files and come back: the same pictures, sentences, tabs and code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.trace.conftest import is_same
from tests.views.drawn import is_chart, picture_of, pictures
from tests.views.test_open_round_trip import drop, export, offered  # noqa: F401
from tests.views.test_open_view import said
from tests.views.test_shown_code import lines_of_pictures, programs, run_code, shown  # noqa: F401
from transformer_viz import decode, load_model, load_trace
from transformer_viz.trace.groups import Group
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.explore import inside_tab
from transformer_viz.views.explore.tables import OF_A_FILE

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]
Start = Callable[..., AppTest]
OPEN = {"code_of_tab": "true"}
RUNS = {
    "a translator": (None, {"checkpoint": MARIAN, "kind": "encoder", "layer": "2", "step": "3"}),
    "a prompt": (None, {"checkpoint": GPT2, "head": "2", "step": "2"}),
    "a text with a mask token": (None, {"checkpoint": BERT, "layer": "2", "pin": "3"}),
    "a search": ("beam", {"checkpoint": GPT2, "decoding": "beam", "beam": "2", "node": "3"}),
}


def played(at: AppTest) -> dict[str, Any]:
    """What the player was sent, but for the name of its run and the switch of what is measured, which asks the model."""
    parts = [element.proto for element in at.get("bidi_component") if not is_chart(element.proto)]
    (found,) = (data for part in parts if "sentences" in (data := json.loads(part.json or "null") or {}))
    return {name: value for name, value in found.items() if name not in ("run", "measure", "measures")}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_comes_back_as_it_was(
    start: Start,
    name: str,
    offered: dict[str, bytes],  # noqa: F811
    run_code: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    tree, query = RUNS[name]
    before = export(start(**query, **OPEN, all_controls="true"), "explore_tab")
    (file, data), *_ = offered.items()
    place = {key: value for key, value in query.items() if key not in ("checkpoint", "decoding", "beam")}
    after = drop(start(checkpoint="trace file", **place, **OPEN, all_controls="true"), file, data)
    # The tree of a file has no greedy line.
    first = 0 if tree is None else 1
    assert pictures(after)[first:] == pictures(before)[first:]
    assert played(after) == played(before)
    (tmp_path / file).write_bytes(data)
    (found,) = after.session_state["opened"].values()
    assert is_same(found.trace, load_trace(tmp_path / file))
    for tab in OF_A_FILE:
        after.session_state["explore_tab"] = tab
        after.run()
        assert not after.exception and not after.error, tab
        of_tab = programs(after)
        # The inside of a head was not recorded: the tab has the command that does it, and no program.
        assert len(of_tab) == (tab != inside_tab.TITLE)
        for program in of_tab:
            run_code(program)
    after.session_state["explore_tab"], after.session_state["export_format"] = "Export", "code"
    assert shown(run_code(lines_of_pictures(after.run()))) == [picture_of(chart) for chart in pictures(after)]
    left_out = "Not available for a file" in said(after)
    assert left_out == found.trace.writes
    assert "By length" not in said(after)


def test_groups_are_kept_and_named(start: Start) -> None:
    trace = decode(load_model(BERT, "cpu"), "The house is [MASK].").with_group("norms", Group({"of": np.ones((2, 3), "f4")}))
    at = drop(start(checkpoint="trace file"), "grouped.npz", to_bytes(trace))
    (found,) = at.session_state["opened"].values()
    assert np.array_equal(found.trace.groups["norms"].arrays["of"], np.ones((2, 3)))
    table = dict(zip(at.dataframe[0].value["what"], at.dataframe[0].value["as the file says"], strict=True))
    assert (table["more arrays"], table["guesses at mask tokens"]) == ("norms", "1")
    assert not {"written", "ended", "made by: strategy", "made by: max_length"} & set(table)
    at.session_state["explore_tab"] = "Heads"
    assert not {"right token", "on top"} & set(at.run().dataframe[0].value)


def test_two_files_of_different_models(start: Start) -> None:
    at = start(checkpoint="trace file")
    for name, text in ((GPT2, "The capital of France"), (BERT, "The [MASK] is small.")):
        at = drop(at, f"{name}.npz", to_bytes(decode(load_model(name, "cpu"), text)))
    assert len(pictures(at)) == 2 and played(at)["labels"]["slider"] == "Token"
    at.selectbox(key="open_name").set_value(GPT2).run()
    assert not at.exception
    assert len(pictures(at)) == 2 and played(at)["labels"]["slider"] == "Step"
    assert played(at)["first"] == decode(load_model(GPT2, "cpu"), "The capital of France").n_given
