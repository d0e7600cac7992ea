"""Every widget of every page is in the link, or stands here with the reason why not. New pages are covered as they come."""

import ast
from pathlib import Path

import pytest

from tests.views.rooms import PAGES, rooms
from transformer_viz.views import pages, path

VIEWS = Path(__file__).resolve().parents[2] / "transformer_viz" / "views"

EXCEPTIONS = {
    "inside": "a click on a number of the tab Inside is `explained`",
    "viewer": "what it shows is in the link: test_links_open_the_same.py; a pressed cell of a mask is in `edits`",
    "typed": "the box of its text, which is `text`",
    **{f"patch-chart-{kind}": "a click on a place of A is `patch_place`" for kind in ("encoder", "decoder", "cross")},
    **{f"compare-{name}": "it is looked at and not pressed" for name in ("patched", "shown")},
    "survey-texts": "a click on a text opens Explore, whose link has it",
    "survey-worst": "likewise",
    "survey-box_0": "a box for a file, which a link cannot hold",
    "search-tree-chart": "a click on a node is `node`",
    "hypotheses": "likewise a row",
    "theme-choice": "a browser's own, which Streamlit keeps there for all its pages",
    "screen": "that the window is narrow is the window's own",
    "drawing": "a press on an attention moves kind and layer",
    "compare-table": "a bridge: a click on where a kind differs most moves kind, layer and head",
    "open_name": "which opened file is looked at: a link cannot hold a file, which lives in the session",
    "open_0": "a box for files, likewise",
    "compare-box_0": "likewise; that a side is one is `a_file` or `b_file`",
    "glossary_wanted": "what somebody looks up is no state of the page",
    "what_if_token": "what it did is `what_if_prefix`",
}
"""Widgets that are not bound to the link, and why. Buttons and downloads need no link."""
OF_OTHER_MODELS = {
    "what_if_find": "it narrows what the box beside it offers; what was chosen there is `what_if_prefix` or `what_if_ban`",
    "guessed": "a typed guess, which is judged at once; the step is `step`",
    "verdict_table": "asked for; a row moves layer and head: test_trial_tab.py",
}
"""Likewise of what the rooms here do not have: models that are not ours, and what is asked for."""

WHAT_TO_DO = (
    "Draw it by views/state/link.py, which puts it into the link. If a link cannot hold it, add it with the reason to "
    "EXCEPTIONS in tests/views/test_every_control.py."
)
_WIDGETS = {
    *("selectbox", "multiselect", "toggle", "checkbox", "radio", "slider", "select_slider", "number_input", "text_input"),
    *("text_area", "segmented_control", "pills", "feedback", "date_input", "time_input", "datetime_input", "color_picker"),
    *("file_uploader", "camera_input", "audio_input", "chat_input", "data_editor", "tabs"),
}


def test_every_page_is_gone_through():
    assert [page or "" for page in PAGES] == ["" if view.ORDER == 0 else path(view) for view in pages()]


@pytest.mark.slow
@pytest.mark.xdist_group("rooms")
def test_every_widget_is_in_the_link_or_says_why_not(start, everything):
    there = [(page, widget) for page in PAGES for room in rooms(start, page) for widget in room.widgets]
    unknown = {f"{w.key!r} of {page or 'explore'}" for page, w in there if not w.is_bound and w.key not in EXCEPTIONS}
    assert not unknown, f"a link does not have {', '.join(sorted(unknown))}. {WHAT_TO_DO}"
    # A list that names what is no longer there would hide the next one of that name.
    gone = {*EXCEPTIONS} - {widget.key for _, widget in there if not widget.is_bound}
    assert not gone, "none of the pages has these any more: take them out of the list"


def test_every_widget_in_the_source_too():
    """What no room of the test above happens to show: no page draws a widget by itself, but those that say why."""
    wrong = []
    for file in sorted(VIEWS.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _WIDGETS:
                key = next((keyword.value for keyword in call.keywords if keyword.arg == "key"), None)
                if file.name != "link.py" and ast.unparse(call.func.value) != "link" and not _is_known(key):
                    wrong.append(f"{file.name}:{call.lineno} {call.func.attr}")
    # The row of tabs itself, boxes for files, whose keys are numbered, and the options of a lesson's question: its answer is
    # `lesson_answer`.
    assert wrong == [each for each in wrong if each.split()[-1] in ("file_uploader", "tabs") or each.startswith("lesson_")], (
        WHAT_TO_DO
    )


def _is_known(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value in {*EXCEPTIONS, *OF_OTHER_MODELS}
