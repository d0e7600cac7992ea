"""What was pressed in a component of ours: each press counts once, and nonsense is passed over."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests import inside
from tests.views.widgets import link_of

QUERY_2, QUERY_3 = {"query": 1, "key": 2}, {"query": 2, "key": 0}


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


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_passed_over(start, folder, nonsense):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again")
    tell(at, nonsense, {"n": 5, "what": QUERY_3})
    assert link_of(at)["edits"] == "cross:3-1"
