"""A run that is too large for the page: said, with what is offered; what was typed stays, and layers keep their numbers."""

import pytest

import transformer_viz as tv
from tests.views.drawn import pictures
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.views.cache import limits

TEXT = "a larger one"


@pytest.fixture
def sizes(folder):
    """`sizes(**options)`: bytes of the text's run by the only checkpoint."""
    checkpoint = tv.load_checkpoint("reverse", "cpu")
    return lambda **options: tv.trace_size(checkpoint, options.pop("text", TEXT), **options).total


def words(at) -> str:
    return "\n".join(each.value for kind in (at.warning, at.error, at.info, at.caption) for each in kind)


def buttons(at) -> dict[str, str]:
    return {button.key: button.label for button in at.button if str(button.key).startswith("keep-")}


def test_the_size_is_said_quietly(start, sizes):
    at = start(text=TEXT)
    assert not at.exception
    said = [caption.value for caption in at.caption if caption.value.startswith("this trace: ")]
    assert len(said) == 1
    assert said[0].endswith(" kB of at most 256 MB")
    assert not buttons(at)


def test_too_large_is_offered_in_part(start, sizes, monkeypatch):
    whole, half = sizes(), sizes(precision="float16")
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", whole - 1)
    at = start(text=TEXT)
    assert not at.exception
    assert f"up to {bytes_words(whole)}; the page allows {bytes_words(whole - 1)}" in words(at)
    assert at.text_input(key="text").value == TEXT
    assert not pictures(at)
    assert buttons(at)["keep-half"] == f"half precision ({bytes_words(half)})"
    assert buttons(at)["keep-cross"].startswith("only cross-attention (")
    at.button(key="keep-half").click().run()
    assert not at.exception
    assert at.text_input(key="text").value == TEXT
    assert at.query_params["keep"] == "half"
    assert "kept: half precision" in words(at)
    assert len(pictures(at)) == 4
    at.button(key="keep-again").click().run()
    assert "keep-cross" in buttons(at)
    at.button(key="keep-cross").click().run()
    assert not at.exception
    assert len(pictures(at)) == 2
    # A short text fits whole, whatever was chosen for the long one.
    assert sizes(text="ab") < whole
    at.text_input(key="text").set_value("ab").run()
    assert "kept:" not in words(at)
    assert len(pictures(at)) == 4


def test_a_link_with_a_part_opens_it_with_true_numbers(start, sizes, monkeypatch):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", sizes() - 1)
    at = start(text=TEXT, keep="cross,half,2", layer="2", head="1", explore_tab="Heads")
    assert not at.exception
    assert not at.warning
    assert at.session_state.layer == 1
    assert list(at.selectbox(key="layer").options) == ["layer 2"]
    assert at.query_params["keep"] == "cross,half,2"
    for tab in ("Masks", "Export", "What if", "Inside"):
        at.session_state["explore_tab"] = tab
        at.run()
        assert not at.exception, tab
    assert "only cross-attention, layer 2, half precision" in words(at)


@pytest.mark.parametrize("keep", ["cross,9", "nonsense", "half,encoder,2", ",,", "1" * 30])
def test_impossible_parts_in_a_link_are_said(start, sizes, monkeypatch, keep):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", sizes() - 1)
    at = start(text=TEXT, keep=keep)
    assert not at.exception
    assert f"keep={keep}"[:30] in " ".join(each.value for each in at.warning).replace("\\", "")
    assert "keep-half" in buttons(at)


def test_nothing_fits(start, monkeypatch):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 999)
    at = start(text=TEXT)
    assert not at.exception
    assert "Shorten the text." in words(at)
    assert not buttons(at)


def test_search_goes_through_the_same_bound(start, sizes, monkeypatch):
    whole = sizes(strategy="beam", beam_size=5)
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", whole - 1)
    at = start(decoding="beam", text=TEXT)
    assert not at.exception
    assert bytes_words(whole) in words(at)
    at.button(key="keep-cross").click().run()
    assert not at.exception
    assert len(pictures(at)) == 3, "the tree, the focus, one mosaic"


def test_masks_goes_through_the_same_bound(start, monkeypatch):
    from transformer_viz.views.masks import setup

    monkeypatch.setattr(setup, "MAX_TRACE_BYTES", 999)
    at = start("masks")
    assert not at.exception
    assert "more than the page allows" in words(at)


def test_words():
    assert limits.words_of({}) == ""
    assert limits.words_of({"layers": (0, 2, 4), "precision": "float16"}) == "layers 1, 3 and 5, half precision"
    assert (
        limits.written({"kinds": ["cross", "decoder"], "precision": "float16", "layers": [0, 11]}) == "cross,decoder,half,1,12"
    )
