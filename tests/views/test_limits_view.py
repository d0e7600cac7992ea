"""A run that is too large for the page: said, with what is offered; what was typed stays, and layers keep their numbers."""

import pytest

import transformer_viz as tv
from tests.views.drawn import said
from tests.views.viewer import content, enter, has_viewer, text
from tests.views.widgets import link_of
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.views.cache import limits
from transformer_viz.views.masks import setup

TEXT, ALL = "a larger one", ["encoder", "decoder", "cross"]


@pytest.fixture
def sizes(model):
    """`sizes(**options)`: bytes of the text's run by the only checkpoint."""
    return lambda **options: tv.trace_size(model, options.pop("text", TEXT), **options).total


def kinds(at) -> list[str]:
    return [*content(at)["kinds"]]


def buttons(at) -> dict[str, str]:
    return {button.key: button.label for button in at.button if str(button.key).startswith("keep-")}


def test_the_size_is_said_quietly(start, sizes):
    at = start(text=TEXT)
    (size,) = [caption.value for caption in at.caption if caption.value.startswith("this trace: ")]
    assert size.endswith(" kB of at most 256 MB") and not buttons(at)


def test_too_large_is_offered_in_part(start, sizes, monkeypatch):
    whole, half = sizes(), sizes(precision="float16")
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", whole - 1)
    at = start(text=TEXT)
    assert f"up to {bytes_words(whole)}; the page allows {bytes_words(whole - 1)}" in said(at)
    assert text(at) == TEXT and not has_viewer(at)
    assert buttons(at)["keep-half"] == f"half precision ({bytes_words(half)})"
    assert buttons(at)["keep-cross"].startswith("only cross-attention (")
    at.button(key="keep-half").click().run()
    assert link_of(at)["keep"] == "half" and "kept: half precision" in said(at)
    assert kinds(at) == ALL
    at.button(key="keep-again").click().run()
    at.button(key="keep-cross").click().run()
    assert kinds(at) == ["cross"]
    # A short text fits whole, whatever was chosen for the long one.
    assert sizes(text="ab") < whole
    enter(at, "ab")
    assert "kept:" not in said(at) and kinds(at) == ALL


def test_a_link_with_a_part_opens_it_with_true_numbers(start, sizes, monkeypatch):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", sizes() - 1)
    at = start(text=TEXT, keep="cross,half,2", layer="2", head="1", explore_tab="Heads")
    assert not at.warning
    assert at.session_state.layer == 1
    assert content(at)["kinds"]["cross"]["numbers"] == [1]
    assert link_of(at)["keep"] == "cross,half,2"
    for tab in ("Masks", "Export", "What if", "Inside"):
        at.session_state["explore_tab"] = tab
        at.run()
    assert "only cross-attention, layer 2, half precision" in said(at)


@pytest.mark.parametrize("keep", ["cross,9", "half,encoder,2", "1" * 30])
def test_impossible_parts_in_a_link_are_said(start, sizes, monkeypatch, keep):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", sizes() - 1)
    at = start(text=TEXT, keep=keep)
    assert f"keep={keep}"[:30] in said(at) and "keep-half" in buttons(at)


def test_nothing_fits(start, monkeypatch):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 999)
    at = start(text=TEXT)
    assert "Shorten the text." in said(at) and not buttons(at)
    monkeypatch.setattr(setup, "MAX_TRACE_BYTES", 999)
    assert "more than the page allows" in said(start("masks"))


def test_words():
    assert limits.words_of({}) == ""
    assert limits.words_of({"layers": (0, 2, 4), "precision": "float16"}) == "layers 1, 3 and 5, half precision"
    assert (
        limits.written({"kinds": ["cross", "decoder"], "precision": "float16", "layers": [0, 11]}) == "cross,decoder,half,1,12"
    )
