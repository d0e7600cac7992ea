"""What was pressed in a component of ours: each press counts once, and nonsense is passed over."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.views import viewer
from tests.views.widgets import link_of

SEEN = {"kind": "cross", "layer": 0, "head": 0}
QUERY_2, QUERY_3 = {"query": 1, "key": 2, **SEEN}, {"query": 2, "key": 0, **SEEN}


def tell(at: AppTest, *presses: Any) -> AppTest:
    """The browser tells its newest presses of cells of the mask."""
    return viewer.press(at, cells=presses)


def test_two_presses_that_come_together_both_count_and_neither_twice(start, folder):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again")
    first, second = {"n": 10, "what": QUERY_2}, {"n": 11, "what": QUERY_3}
    tell(at, first, second)
    assert link_of(at)["edits"].split(", ") == ["cross:2-3", "cross:3-1"]
    # A cell that is pressed again is as it was.
    tell(at, first, second, {"n": 12, "what": QUERY_2})
    assert link_of(at)["edits"] == "cross:3-1"


NONSENSE = (3, "x", {}, {"n": "9"}, {"n": True}, {"n": 2**60, "what": QUERY_2}, {"n": -1, "what": QUERY_2})
OTHERS: tuple[Any, ...] = (
    7,
    None,
    {},
    {**QUERY_2, "kind": "other"},
    {**QUERY_2, "kind": []},
    {**QUERY_2, "layer": 9},
    {**QUERY_2, "head": 9},
    {**QUERY_2, "layer": None},
    {**QUERY_2, "head": "mean"},
    {**QUERY_2, "query": 99},
    {**QUERY_2, "key": -1},
    {**QUERY_2, "key": 1.5},
    {**QUERY_2, "query": None, "key": None},
)


def test_a_press_counts_for_the_head_that_was_seen(start, folder):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again", reach="this head", kind="cross-attention")
    at.session_state["kind"] = "decoder"
    tell(at, {"n": 3, "what": {"query": 1, "key": 0, "kind": "cross", "layer": 1, "head": 2}})
    assert link_of(at)["edits"] == "cross.2.3:2-1"
    for number, nonsense in enumerate(OTHERS, start=4):
        tell(at, {"n": number, "what": nonsense})
    assert link_of(at)["edits"] == "cross.2.3:2-1" and not at.error


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_is_passed_over(start, folder, nonsense):
    at = start("masks", sources="hello\nab", masks_tab="Change and run again")
    tell(at, nonsense, {"n": 5, "what": QUERY_3})
    assert link_of(at)["edits"] == "cross:3-1"
