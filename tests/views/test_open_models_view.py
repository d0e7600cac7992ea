"""Runs of models that are not ours leave the app as files and come back: the same pictures, sentences, tabs and code."""

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.trace.conftest import is_same
from tests.views.drawn import drop, pictures, programs, said, shown
from tests.views.viewer import assert_draws_again, content, viewer
from transformer_viz import decode, load_model, load_trace
from transformer_viz.trace.groups import Group
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.explore import inside_tab
from transformer_viz.views.explore.tables import OF_A_FILE

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]
OPEN = {"code_of_tab": "true", "all_controls": "true"}
RUNS = {
    "a translator": {"checkpoint": MARIAN, "kind": "encoder", "layer": "2", "step": "3"},
    "a prompt": {"checkpoint": GPT2, "head": "2", "step": "2"},
    "a text with a mask token": {"checkpoint": BERT, "layer": "2", "pin": "3"},
    "a search": {"checkpoint": GPT2, "decoding": "beam", "beam": "2", "node": "3"},
}


def played(at: AppTest) -> dict[str, Any]:
    """What the viewer was sent, but for the name of its run and the switch of what is measured, which asks the model."""
    sent = viewer(at)
    parts = {name: value for name, value in sent["parts"].items() if name != "measures"}
    return {"content": content(at), "start": sent["start"], **parts}


def set_all(at: AppTest, **values: str) -> AppTest:
    for key, value in values.items():
        at.session_state[key] = value
    return at.run()


@pytest.mark.parametrize("name", RUNS)
def test_a_run_comes_back_as_it_was(start, name, offered, run_code, tmp_path):
    query = RUNS[name]
    before = start(**query, **OPEN, explore_tab="Export").button(key="data-npz").click().run()
    (file, data), *_ = offered.items()
    place = {key: value for key, value in query.items() if key not in ("checkpoint", "decoding", "beam")}
    after = drop(start(checkpoint="trace file", **place, **OPEN), (file, data))
    # The tree of a file has no greedy line.
    first = int("decoding" in query)
    assert pictures(after)[first:] == pictures(before)[first:] and played(after) == played(before)
    (tmp_path / file).write_bytes(data)
    (found,) = after.session_state["opened"].values()
    assert is_same(found.trace, load_trace(tmp_path / file))
    for tab in OF_A_FILE:
        of_tab = programs(set_all(after, explore_tab=tab))
        assert not after.error, tab
        # The inside of a head was not recorded: the tab has the command that does it, and no program.
        assert len(of_tab) == (tab != inside_tab.TITLE)
        again = [run_code(program) for program in of_tab]
    assert tab == "Export"
    assert_draws_again(after, shown(again[0]))
    assert ("Not available for a file" in said(after)) == found.trace.writes


def test_groups_are_kept_and_named(start):
    trace = decode(load_model(BERT, "cpu"), "The house is [MASK].").with_group("norms", Group({"of": np.ones((2, 3), "f4")}))
    at = drop(start(checkpoint="trace file"), ("grouped.npz", to_bytes(trace)))
    table = dict(zip(at.dataframe[0].value["what"], at.dataframe[0].value["as the file says"], strict=True))
    assert (table["more arrays"], table["guesses at mask tokens"]) == ("norms", "1")
    assert not {"written", "ended", "made by: strategy", "made by: max_length"} & set(table)
    assert not {"right token", "on top"} & set(set_all(at, explore_tab="Heads").dataframe[0].value)


def test_two_files_of_different_models(start):
    at = start(checkpoint="trace file")
    runs = {GPT2: decode(load_model(GPT2, "cpu"), "The capital of France"), BERT: decode(load_model(BERT, "cpu"), "The [MASK]")}
    for name, run in runs.items():
        at = drop(at, (f"{name}.npz", to_bytes(run)))
    assert [*content(at)["kinds"]] == ["encoder"] and content(at)["labels"]["slider"] == "Token"
    at.selectbox(key="open_name").set_value(GPT2).run()
    assert [*content(at)["kinds"]] == ["decoder"] and content(at)["labels"]["slider"] == "Step"
    assert content(at)["first"] == runs[GPT2].n_given
