"""What holds on every page: what is typed is text, what cannot be read is said and kept, a projector shows pictures alone."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.views import viewer
from tests.views.drawn import charts, pictures, said

MARKS = "o  <b>$x$</b> **a**"
"""Its two spaces are one in Markdown and in a browser where they are not drawn as signs."""
BACK = MARKS[::-1]
FILM = {"learned": "true", "checkpoint": "reverse-small"}


def as_markdown(at: AppTest) -> str:
    """All that Streamlit draws as Markdown, as it is sent."""
    kinds = (at.markdown, at.caption, at.info, at.warning, at.error, at.success, at.button)
    return "\n".join(str(getattr(each, "value", "")) + str(getattr(each, "label", "")) for kind in kinds for each in kind)


def elsewhere(at: AppTest) -> str:
    """What components, tables and plain texts are sent, but for the text as it was typed and the link."""
    tables = [frame.value.to_string(header=False, index=False) for frame in at.dataframe]
    protos = [element.proto for element in at.get("bidi_component") if not element.proto.id.endswith(("-typed", "-address"))]
    components = [json.loads(proto.bytes or proto.json or "null") for proto in protos]
    components += [viewer.content(at)] if viewer.has_viewer(at) else []
    return "\n".join(
        [*(text.value for text in at.text), *tables, *(json.dumps(each, ensure_ascii=False) for each in components)]
    )


@pytest.mark.parametrize(
    ("page", "query"),
    [
        (None, {"text": MARKS}),
        (None, {"text": MARKS, "explore_tab": "Export"}),
        (None, {"text": MARKS, "explore_tab": "What if", "what_if_how": "a target of your own", "what_if_target": BACK}),
        (None, {"text": MARKS, "decoding": "beam", "beam": "2"}),
        ("train", {"text": MARKS, **FILM, "position": "2"}),
        ("compare", {"text": MARKS, "b_text": BACK, "checkpoint": "reverse", "b_checkpoint": "reverse"}),
        ("masks", {"sources": MARKS}),
        ("masks", {"sources": MARKS, "masks_tab": "Mistakes"}),
        ("masks", {"sources": MARKS, "masks_tab": "Change and run again", "edits": "cross:off"}),
    ],
)
def test_a_space_is_seen_and_marks_are_letters(start, everything, page, query):
    at = start(page, **query)
    assert not at.error and not at.warning
    markdown = as_markdown(at)
    words = markdown + elsewhere(at)
    assert "␣␣" in words and "o  <" not in words and "<  o" not in words
    assert not [marks for marks in ("<b>$x$", "$x$</b>", "**a**") if marks in markdown]
    drawn = [*pictures(at), *(viewer.templates(at) if viewer.has_viewer(at) else ())]
    axes = [axis for figure in drawn for name, axis in figure["layout"].items() if "axis" in name]
    ticks = [re.sub(r"</?(b|sup)>|<br>", "", str(tick)) for axis in axes for tick in axis.get("ticktext", ())]
    assert not [tick for tick in ticks if {"<", "$"} & {*tick}]


@pytest.mark.parametrize(
    ("page", "query", "key", "text", "words"),
    [
        (None, {}, "text", "", "The text is empty"),
        (None, {}, "text", "ab😀", "GRINNING FACE"),
        (None, {"decoding": "beam"}, "text", "😀", "Character 1 is"),
        (None, {"explore_tab": "What if", "what_if_how": "a target of your own"}, "what_if_target", "x🙂", "Character 2 is"),
        (None, {"explore_tab": "What if", "what_if_how": "a beginning of your own"}, "what_if_begin", "x" * 33, "33 char"),
        ("train", FILM, "text", "🙂", "Character 1 is"),
    ],
)
def test_what_cannot_be_read_is_said_and_kept(start, shipped, page, query, key, text, words):
    at = start(page, **query)
    assert not at.error
    if (page, key) == (None, "text"):
        viewer.enter(at, text)
        assert viewer.text(at) == text
    else:
        at.text_input(key=key).set_value(text).run()
        assert at.text_input(key=key).value == text
    assert words in said(at)


@pytest.mark.parametrize(
    ("page", "kind", "key"),
    [("masks", "text_area", "sources"), ("compare", "text_input", "b_text")],
)
def test_no_more_is_kept_of_what_a_stranger_sends_than_the_control_holds(start, page, kind, key):
    at = start(page)
    getattr(at, kind)(key=key).set_value("é" * 20_000).run()
    assert at.session_state[key] == "é" * 10_000


def test_no_more_is_kept_of_what_a_stranger_types_beside_the_picture(start):
    at = viewer.enter(start(), "é" * 20_000)
    assert viewer.text(at) == at.session_state.text == "é" * 10_000


@pytest.mark.parametrize(
    ("page", "query", "n"),
    [
        (None, {"explore_tab": "Inside"}, 0),
        (None, {"explore_tab": "Export"}, 0),
        ("masks", {"sources": "hello\nab"}, 1),
        ("compare", {}, 0),
    ],
)
def test_a_projector_shows_pictures_alone(start, folder, page, query, n):
    at = start(page, **query, code="true", code_of_tab="true")
    at.toggle(key="projector").set_value(True).run()
    assert len(charts(at)) == n and not at.dataframe
    assert page == "masks" or not at.code
    has_viewer = viewer.has_viewer(at)
    assert viewer.viewer(at)["large"] if has_viewer else page == "masks"
    drawn = viewer.templates(at) if has_viewer else pictures(at)
    assert all(figure["layout"]["font"]["size"] > 13 for figure in drawn)
    inside = [part for part in at.get("bidi_component") if part.proto.component_name == "transformer-viz-inside"]
    assert bool(inside) == (query.get("explore_tab") == "Inside"), "the only tab that a room can read"
