"""Two levels of controls: what each shows, what a link says of them, and that no value is lost between them."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.viewer import press, viewer
from tests.views.widgets import controls, link_of

OF_ALL = {"decoding", "device"}
"""Layer and head are in the viewer, which is told whether all controls are shown."""


def keys(at: AppTest) -> set[str]:
    return {widget.key for widget in controls(at)}


def switch(at: AppTest) -> AppTest:
    return at.toggle(key="all_controls").set_value(not at.toggle(key="all_controls").value).run()


def test_a_bare_address_has_few_controls_and_the_switch_shows_the_others(start):
    at = start()
    assert not OF_ALL & keys(at) and keys(at) >= {"typed", "checkpoint", "where", "viewer"}
    assert not any((button.key or "").startswith("compare-") for button in at.button) and not viewer(at)["isAll"]
    switch(at)
    assert keys(at) >= OF_ALL and viewer(at)["isAll"] and link_of(at)["all_controls"] == "true"
    assert "all_controls" not in link_of(switch(at)) and not OF_ALL & keys(at)


@pytest.mark.parametrize("link", [{"decoding": "sample"}, {"measure": "value"}, {"device": "cpu"}])
def test_a_link_that_names_one_of_alls_controls_opens_with_all(start, link):
    at = start(text="hello", **link)
    assert keys(at) >= OF_ALL and viewer(at)["isAll"]
    assert link_of(at) == {**link_of(at), **link} and "all_controls" not in link_of(at)
    # Whoever wants it otherwise says so, and so does the link.
    assert link_of(switch(at))["all_controls"] == "false"
    assert not viewer(start(text="hello", all_controls="false", **link))["isAll"]


def test_what_a_click_on_a_small_map_sets_is_in_the_link_and_opens_no_more_controls(start):
    at = press(start(text="hello"), layer=0, head=0)
    assert not OF_ALL & keys(at) and not viewer(at)["isAll"]
    assert link_of(at)["layer"] == "layer 1" and link_of(at)["head"] == "head 1"
    shown = viewer(switch(at))
    assert (shown["start"]["layer"], shown["start"]["head"]) == (0, 0)
    assert shown["content"] == viewer(press(switch(at), layer=0, head=0))["content"], "the same numbers on either level"


def test_what_changes_the_picture_is_shown_on_either_level(start):
    at = start(text="hello", decoding="beam", beam="3", all_controls="false")
    assert {"decoding", "beam"} <= keys(at) and "device" not in keys(at) and not viewer(at)["isAll"]
    at.button_group(key="decoding").set_value("greedy").run()
    assert "decoding" not in keys(at) and "decoding" not in link_of(at)
