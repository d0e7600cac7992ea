"""Beside every output stands whether it is right, and what was expected; with the answer hidden, not a word of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.drawn import is_chart
from tests.views.rooms import files
from transformer_viz import decode, load_checkpoint
from transformer_viz.analysis.answer import answer_words
from transformer_viz.views.explore.tables import OF_A_FILE
from transformer_viz.views.masks.page import TABS as MODULES

Start = Callable[..., AppTest]
TABS = tuple(MODULES)
MINE = {"checkpoint": "reverse-small"}
PAGES: dict[str, tuple[str | None, dict[str, str], int]] = {
    "explore": (None, {"text": "hello"}, 1),
    "what if": (None, {"text": "hello", "tables": "What if", "change": "begin", "begin": "ol"}, 3),
    "search": ("search", {"text": "hello", "beam": "3"}, 4),
    "compare": ("compare", {"text": "hello", "b_text": "hello", "b_strategy": "beam"}, 2),
    "masks": ("masks", {"sources": "hello"}, 1),
    "change": ("masks", {"sources": "hello", "tab": TABS[2], "mask": "cross:off, cross.1.1:zero"}, 3),
    "replay": ("replay", {"text": "hello"}, 5),
}
"""A page, what it is opened with, and how often at least the expected answer is said."""


def sent(at: AppTest) -> str:
    """All that the page says, but for its charts, its code, and what was typed."""
    elements = [*at.error, *at.info, *at.warning, *at.markdown, *at.caption, *at.text]
    words = [str(element.value).replace("\\", "") for element in elements]
    words += [frame.value.to_csv() for frame in at.dataframe]
    words += [part.proto.json or part.proto.bytes.decode() for part in at.get("bidi_component") if not is_chart(part.proto)]
    return " ".join(words)


@pytest.mark.parametrize("name", PAGES)
def test_every_output_is_judged_unless_the_answer_is_hidden(start: Start, everything: Path, name: str) -> None:
    page, query, count = PAGES[name]
    at = start(page, **query, **MINE, **({"b_checkpoint": "reverse-small"} if name == "compare" else {}))
    assert not at.exception
    assert sent(at).count("olleh") >= count
    at.toggle(key="hide_answer").set_value(True).run()
    assert not at.exception
    # What Replay measures is named, and gives no letter away.
    hidden = sent(at).replace("attention on the expected letters", "")
    for word in ("olleh", "expected", "whether it is right"):
        assert word not in hidden, hidden[max(0, hidden.find(word) - 60) :][:160]
    if name == "search":
        assert "answer" not in at.dataframe[0].value


def test_an_opened_file_hides_it_too(start: Start, everything: Path) -> None:
    at = start("open", files("run"), tables=OF_A_FILE[0])
    assert "olleh" in sent(at)
    at.toggle(key="hide_answer").set_value(True).run()
    assert "right answer" not in sent(at)


def test_the_words_are_those_of_the_run(start: Start, folder: Path) -> None:
    at = start(text="hello")
    trace = decode(load_checkpoint(str(folder / "reverse"), "cpu"), "hello")
    (part,) = [part for part in at.get("bidi_component") if part.proto.component_name == "transformer-viz-player"]
    shown = json.loads(part.proto.json)["answer"]
    assert shown["words"] == [list(piece) for piece in answer_words(trace)]
    assert shown["class"] == "wrong"
