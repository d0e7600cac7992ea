"""Every widget of every page is in the link, or stands here with the reason why not. New pages are covered as they come."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.rooms import PAGES, rooms
from transformer_viz.views import pages
from transformer_viz.views.state.controls import CONTROLS, TABLE

Start = Callable[..., AppTest]
VIEWS = Path(__file__).resolve().parents[2] / "transformer_viz" / "views"

EXCEPTIONS = {
    "inside": "a click on a number of the tab Inside is `explain`",
    "player": "the step player: where it rests is `step`, in Replay `moment`",
    "mosaic-encoder": "a click on a tile moves kind, layer and head",
    "mosaic-decoder": "likewise",
    "mosaic-cross": "likewise",
    **{f"patch-chart-{kind}": "a click on a place of A is `patch_at`" for kind in ("encoder", "decoder", "cross")},
    "compare-patched": "it is looked at and not pressed",
    **{f"survey-chart-{kind}": "a click on a head moves kind, layer and head" for kind in ("encoder", "decoder", "cross")},
    "survey-texts": "a click on a text opens Explore, whose link has it",
    "survey-worst": "likewise",
    "survey-box_0": "a box for a file, which a link cannot hold",
    "search-tree-chart": "a click on a node is `node`",
    "hypotheses": "likewise a row",
    "lab-edit-chart": "a click on a cell is in `mask`",
    "lab-scores-chart": "a click on a row is `row`",
    "screen": "that the window is narrow is the window's own",
    "address": "it has no value: it keeps a page to one entry of the browser's history",
    "survey-verdict-table": "it has no buttons, and its order is one's own while one looks",
    "navigation": "it says to a screen reader which page is open",
    "copy_link": "it copies the link",
    "drawing": "a press on an attention moves kind and layer",
    "drawing-beside": "it is looked at and not pressed",
    "compare-shown": "a bridge: a click on where a kind differs most moves kind, layer and head",
    "open_0": "a box for files: a link cannot hold a file, only the name of the one on the screen, `opened`",
    "compare-box_0": "likewise; that a side is one is `a_file` or `b_file`",
    "train_source_embedding": "a box for a file, which a link cannot hold; it is in no training before it is started",
    "train_target_embedding": "likewise",
    "what_if_token": "it acts once, like a button, and stands empty again: what it did is `prefix`",
}
"""Widgets that have no key of their own in a link, and why. Buttons and downloads need none."""
OF_OTHER_MODELS = {
    "what_if_find": "it narrows what the box beside it offers; what was chosen there is `prefix` or `ban`",
    **dict.fromkeys(
        ("generation", "chat", "shortlist", "source_language", "target_language", "lab_many"), "in a link; only they have it"
    ),
    **dict.fromkeys(("head_order", "heads_page", "overview_of"), "in a link; only deep models have it: test_deep_view.py"),
    "trial-verdict-table": "asked for; its buttons move layer and head: test_trial_tab.py",
    "trial-heads-table": "asked for; it has no buttons",
    "patch_layers": "in a link; only deep models have it: test_patching_view.py",
}
"""Likewise of what the rooms here do not have: models that are not ours (test_models_view.py), and what is asked for."""

WHAT_TO_DO = (
    "Give it a key of its own in the session, and add a line with that key to the table in views/state/controls.py. Where its "
    "options or its default depend on the run, call link.start with them before the page's link.write. "
    "If a link cannot hold it, add it with the reason to EXCEPTIONS in tests/views/test_every_control.py and docs/decisions.md."
)
_WIDGETS = {
    *("selectbox", "multiselect", "toggle", "checkbox", "radio", "slider", "select_slider", "number_input", "text_input"),
    *("text_area", "segmented_control", "pills", "feedback", "date_input", "time_input", "datetime_input", "color_picker"),
    *("file_uploader", "camera_input", "audio_input", "chat_input", "data_editor", "tabs"),
}


def test_every_page_is_gone_through() -> None:
    assert [page or "" for page in PAGES] == ["" if view.ORDER == 0 else view.TITLE.lower() for view in pages()]


@pytest.mark.xdist_group("rooms")
def test_every_widget_is_in_the_link_or_says_why_not(start: Start, everything: Path) -> None:
    there = {(page, *widget) for page in PAGES for room in rooms(start, page) for widget in room.widgets}
    keys = {key for _, _, key in there}
    unknown = [f"{kind} {key!r} of {page or 'explore'}" for page, kind, key in there if key not in {*CONTROLS, *EXCEPTIONS}]
    assert not unknown, f"a link does not know {', '.join(sorted(unknown))}. {WHAT_TO_DO}"
    pages = {control.widget or control.key: control.pages for control in TABLE}
    drawn = {(key, page or "explore") for page, _, key in there if key not in EXCEPTIONS}
    elsewhere = [f"{key} is on {page}" for key, page in sorted(drawn) if page not in pages[key]]
    assert not elsewhere, f"their lines in the table do not say so: {', '.join(elsewhere)}"
    # A list that names what is no longer there would hide the next one of that name.
    assert not sorted({*EXCEPTIONS, *CONTROLS} - keys - {*OF_OTHER_MODELS}), (
        "none of the pages has these any more: take them out of the lists"
    )


def test_every_widget_in_the_source_too() -> None:
    """What no room of the test above happens to show: every call that makes a widget names a known key."""
    wrong = []
    for file in sorted(VIEWS.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _WIDGETS:
                key = next((keyword.value for keyword in call.keywords if keyword.arg == "key"), None)
                if not _is_known(key):
                    wrong.append(f"{file.name}:{call.lineno} {call.func.attr}")
    assert not wrong, f"no known key: {', '.join(wrong)}. {WHAT_TO_DO}"


def _is_known(key: ast.expr | None) -> bool:
    if isinstance(key, ast.Constant):
        return key.value in {*CONTROLS, *EXCEPTIONS, *OF_OTHER_MODELS}
    if isinstance(key, ast.JoinedStr):  # f"train_{name}": one of a family
        first = key.values[0]
        return isinstance(first, ast.Constant) and any(name.startswith(str(first.value)) for name in CONTROLS)
    # Another expression, such as `_key(of_a_decoding)`: what it gives is seen in the rooms.
    return key is not None


def test_no_control_is_declared_twice() -> None:
    keys = [control.widget or control.key for control in TABLE]
    assert sorted(keys) == sorted(set(keys))
    for page in {page for control in TABLE for page in control.pages}:
        names = [control.name for control in TABLE if page in control.pages and control.name != "set"]
        assert sorted(names) == sorted(set(names)), f"two controls of {page} have one name in a link"
