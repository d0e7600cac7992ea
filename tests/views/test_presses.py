"""What was pressed in a component of ours: each press counts once, and nonsense is passed over."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests import inside
from tests.views.widgets import link_of

SEEN = {"of": "cross.1.1:zero"}
QUERY_2, QUERY_3 = {"query": 1, "key": 2, **SEEN}, {"query": 2, "key": 0, **SEEN}


def tell(at: AppTest, *presses: Any) -> AppTest:
    node = next(node for node in at.get("bidi_component") if node.proto.id.endswith("-lab-edit-chart"))
    return inside.tell(at, node.proto.id, json.dumps({"presses": presses}))


def test_two_presses_that_come_together_both_count_and_neither_twice(start, folder):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again")
    first, second = {"n": 10, "what": QUERY_2}, {"n": 11, "what": QUERY_3}
    tell(at, first, second)
    assert link_of(at)["edits"].split(", ") == ["cross:2-3", "cross:3-1"]
    # A cell that is pressed again is as it was.
    tell(at, first, second, {"n": 12, "what": QUERY_2})
    assert link_of(at)["edits"] == "cross:3-1"


NONSENSE = (3, "x", {}, {"n": "9"}, {"n": True}, {"n": 2**60, "what": QUERY_2}, {"n": -1, "what": QUERY_2})


def test_a_press_counts_for_the_head_that_was_seen(start, folder):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again", reach="this head", kind="cross-attention")
    at.session_state["kind"] = "decoder"
    tell(at, {"n": 3, "what": {"query": 1, "key": 0, "of": "cross.2.3:zero"}})
    assert link_of(at)["edits"] == "cross.2.3:2-1"
    for number, nonsense in enumerate(("", "cross:1-2", "cross.2.3:zero, cross.1.1:zero", "cross.9.9:zero", "$", 7), start=4):
        tell(at, {"n": number, "what": {"query": 1, "key": 0, "of": nonsense}})
    assert link_of(at)["edits"] == "cross.2.3:2-1" and not at.error


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_passed_over(start, folder, nonsense):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again")
    tell(at, nonsense, {"n": 5, "what": QUERY_3})
    assert link_of(at)["edits"] == "cross:3-1"
