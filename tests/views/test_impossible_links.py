"""What a link cannot mean here is said, key by key, and the page opens all the same; what a link cannot hold is said too."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.rooms import OPENINGS
from tests.views.widgets import link_of
from transformer_viz.views.state import controls

Start = Callable[..., AppTest]

IMPOSSIBLE: dict[str | None, dict[str, str]] = {
    None: {
        **{"text": "a" * 10_001, "checkpoint": "../x", "device": "gpu9", "projector": "yes", "answer": "42"},
        **{"kind": "sideways", "layer": "0", "head": "4", "step": "²", "tables": "Attic", "tint": "pink"},
        **{"code": "yes", "code_of_tab": "shut"},
        **{"change": "all", "at": "99", "prefix": "é", "ban": "é", "begin": "a" * 513, "target": "a" * 513},
        **{"samples": "33", "file": "exe", "asked": "everything", "lines_of_text": "a" * 10_001},
    },
    "masks": {
        **{
            "sources": "a" * 10_001,
            "targets": "a" * 10_001,
            "mask": "a" * 4_001,
            "many": "a" * 10_001,
            "sentence": "9",
            "mistake": "big",
            "tab": "Attic",
        },
        **{"show": "all", "fill": "0", "precision": "int8", "row": "99", "click": "twice", "reach": "far", "asked": "money"},
    },
    "search": {"beam": "0", "alpha": "x", "stop": "soon", "node": "99999", "tables": "By length", "file": "exe"},
    "train": {
        "code_of_job": "yes",
        **{"task": "cook", "variant": "mid-norm", "set": "d_model=x", "name": "a" * 101, "job": "nobody", "probe": "a" * 201},
    },
    "survey": {"survey": "../../reverse", "with": "/etc/passwd", "number": "size"},
    "replay": {"moment": "2", "position": "99", "head": "mean"},
    "compare": {
        **{"b_text": "a" * 10_001, "b_checkpoint": "nobody", "b_layer": "0", "b_head": "9", "scale": "huge"},
        **{f"{side}_file": "gone" for side in "ab"},
        **{f"{side}_snapshot": "2" for side in "ab"},
        **{f"{side}_strategy": "guess" for side in "ab"},
        **{f"{side}_beam": "99" for side in "ab"},
        **{f"{side}_temperature": "hot" for side in "ab"},
        **{f"{side}_seed": "-1" for side in "ab"},
        **{f"{side}_edits": "a" * 4_001 for side in "ab"},
    },
}


def said(at: AppTest) -> str:
    return " ".join(str(element.value) for element in at.warning).replace("\\", "")


SAID = {key for queries in IMPOSSIBLE.values() for key in queries} | {"opened", "keep"}
"""Which file a link was made with is asked for, not complained about: test_open_view.py."""
OTHERS = [
    (None if control.pages[0] == "explore" else control.pages[0], control.name, "no such thing")
    for control in controls.TABLE
    if control.name not in SAID
]
"""A control that is not listed above is given words that no number, choice or list of tokens is; only a text takes them."""


@pytest.mark.parametrize(
    ("page", "key", "given"),
    [*((page, key, given) for page, queries in IMPOSSIBLE.items() for key, given in queries.items()), *OTHERS],
)
def test_it_is_said(start: Start, everything: Path, page: str | None, key: str, given: str) -> None:
    at = start(page, **{**OPENINGS.get(page, {}), key: given})
    assert not at.exception
    assert f"{key}={given}"[:40] in said(at)
    assert "not possible here; possible is" in said(at)


def test_a_bad_text_does_not_silence_what_else_is_wrong(start: Start, everything: Path) -> None:
    at = start(text="ab😀", checkpoint="nobody")
    assert "checkpoint=nobody" in said(at)


def test_what_was_seen_goes_when_the_person_goes_on(start: Start, everything: Path) -> None:
    at = start("masks", sources="hello\nab", sentence="9", reach="far")
    assert said(at).count("not possible") == 2
    at.selectbox(key="mistake").set_value("no-causal").run()
    assert not said(at)


def test_what_is_wrong_for_the_next_page_is_said_there(
    start: Start, everything: Path, visit: Callable[[AppTest, str | None], AppTest]
) -> None:
    """Guards a complaint that comes just when the ones before it go."""
    at = start(text="abc", head="9", beam="0")
    assert "head=9" in said(at)
    visit(at, "search")
    assert "beam=0" in said(at)


def test_a_text_too_long_for_a_link_is_said_beside_the_link(start: Start, everything: Path) -> None:
    at = start("masks", sources="hello")
    at.text_area(key="lab_sources").set_value("hello\n" + "a" * 1_600).run()
    assert "too long for a link" in said(at)
    assert "the sources (1,606 characters)" in said(at)
    assert "sources" not in link_of(at)
    at.text_area(key="lab_sources").set_value("hello\nabc").run()
    assert not said(at)
