"""Two levels of controls: what each shows, what a link says of them, and that no value is lost between them."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import pictures
from tests.views.widgets import controls, hidden, link_of

OF_ALL = {"decoding", "layer", "head", "colours", "device"}


def keys(at: AppTest) -> set[str]:
    return {widget.key for widget in controls(at)}


def switch(at: AppTest) -> AppTest:
    return at.toggle(key="all_controls").set_value(not at.toggle(key="all_controls").value).run()


def test_a_bare_address_has_few_controls_and_the_switch_shows_the_others(start):
    at = start()
    assert not OF_ALL & keys(at) and keys(at) >= {"text", "checkpoint", "kind", "where", "player"}
    assert not any((button.key or "").startswith(("compare-", "best-head")) for button in at.button)
    switch(at)
    assert keys(at) >= OF_ALL and link_of(at)["all_controls"] == "true"
    assert "all_controls" not in link_of(switch(at)) and not OF_ALL & keys(at)


@pytest.mark.parametrize("link", [{"decoding": "sample"}, {"measure": "value"}, {"lines": "on"}, {"device": "cpu"}])
def test_a_link_that_names_one_of_alls_controls_opens_with_all(start, link):
    at = start(text="hello", **link)
    assert keys(at) >= OF_ALL and link_of(at) == {**link_of(at), **link} and "all_controls" not in link_of(at)
    # Whoever wants it otherwise says so, and so does the link.
    assert link_of(switch(at))["all_controls"] == "false"
    assert not {"layer", "head"} & keys(start(text="hello", all_controls="false", **link))


def test_what_a_click_on_a_small_map_sets_is_in_the_link_and_said_in_a_sentence(start):
    at = start(text="hello", layer="1", head="1")
    assert not OF_ALL & keys(at) and {"layer", "head"} <= {widget.key for widget in hidden(at)}
    assert link_of(at)["layer"] == "layer 1" and link_of(at)["head"] == "head 1"
    assert any("<b>Layer 1 head 1</b> of <dfn" in part.proto.body for part in at.get("html"))
    assert pictures(switch(at)) == pictures(start(text="hello", layer="1", head="1"))


def test_what_changes_the_picture_is_shown_on_either_level(start):
    at = start(text="hello", decoding="beam", beam="3", colours="this head's maximum", all_controls="false")
    assert {"decoding", "beam", "colours"} <= keys(at) and not {"layer", "head", "device"} & keys(at)
    at.button_group(key="decoding").set_value("greedy").run()
    assert "decoding" not in keys(at) and "decoding" not in link_of(at)
