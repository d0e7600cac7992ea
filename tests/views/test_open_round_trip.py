"""A run that left the app as a file comes back as it was: the same arrays and the same figures."""

import pytest

from tests.trace.conftest import is_same
from tests.views.drawn import drop, pictures
from tests.views.viewer import content
from transformer_viz.trace.store import load_trace


@pytest.mark.parametrize(
    ("run", "place"),
    [
        ({"text": "a<b>c"}, {"kind": "decoder", "layer": "1", "head": "max", "step": "2"}),
        ({"text": "abc", "decoding": "beam", "beam": "3"}, {"kind": "decoder", "layer": "2", "head": "2", "node": "2"}),
    ],
)
def test_out_of_explore_and_in_again(start, offered, run, place):
    at = start(**run, **place, explore_tab="Export").button(key="data-npz").click().run()
    before, sent = pictures(at), content(at)
    (name, data), *_ = offered.items()
    at = drop(start(checkpoint="trace file", **place), (name, data))
    again = pictures(at)
    assert content(at) == sent and len(before) == len(again) == int("decoding" in run)
    # A run has the greedy run above the tree; a file does not hold it.
    for tree, other in zip(before, again, strict=True):
        nodes = [[part["customdata"] for part in of["data"] if "customdata" in part] for of in (tree, other)]
        assert nodes[0] and nodes[0] == nodes[1]
    offered.clear()
    at.session_state["explore_tab"] = "Export"
    at.run().button(key="data-npz").click().run()
    assert [*offered.values()] == [data], "and out again: the same bytes"
    (found,) = at.session_state["opened"].values()
    assert is_same(found.trace, load_trace(data))
