"""Compare with models that are not ours: other tokens, an edit beside none, what cannot be laid upon each other."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.views.drawn import markups, programs, said, text_of
from tests.views.test_compare_view import difference, same
from tests.views.viewer import compared
from transformer_viz.trace.trace import Trace

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]
TEXT = "The capital of France is"


@pytest.fixture
def run(models: Path) -> Callable[..., Trace]:
    return lambda name, text, **how: tv.decode(tv.load_model(str(models / name), "cpu"), text, **how)


def sent(at: AppTest) -> str:
    """The sentence and the table."""
    said, table = markups(at, "shown")
    rows = [" | ".join(text_of(cell).strip() for cell in row) for row in table.findall(".//tr")[1:]]
    return "\n".join([text_of(said.find("*[@class='sentence']")), *rows])


def pair(a: str, b: str, text: str = TEXT, b_text: str = TEXT) -> dict[str, str]:
    return {"checkpoint": a, "text": text, "b_checkpoint": b, "b_text": b_text}


def test_the_same_text_through_a_model_and_its_edit(start, run):
    edit = "decoder.1.2:zero, decoder.1.1:3=1"
    at = start("compare", **pair(GPT2, GPT2), b_edits=edit, kind="decoder", layer="2", head="1")
    there = tv.compare(run(GPT2, TEXT), run(GPT2, TEXT, edits=[edit])).difference("decoder.2.1")
    same(at, there)
    assert np.nanmax(np.abs(there)) > 0.01 and "2 edits" in sent(at)
    at.button(key="swap").click().run()
    assert at.text_input(key="a_edits").value == edit
    same(at, -there)


def test_edits_that_make_no_sense_are_said_below_their_side(start):
    at = start("compare", **pair(GPT2, GPT2), b_edits="decoder:3-<b>")
    assert "is not understood" in said(at)
    at.text_input(key="b_edits").set_value("cross:off").run()
    assert "this model has no cross-attention" in said(at)
    at.text_input(key="b_edits").set_value("").run()
    assert not at.error


@pytest.mark.parametrize(("a", "b", "kind"), [(MARIAN, GPT2, "decoder"), (MARIAN, BERT, "encoder"), (BERT, BERT, "encoder")])
def test_two_kinds_of_models_are_compared_in_what_both_have(start, run, a, b, kind):
    b_text = TEXT if a != b else f"{TEXT} [MASK]"
    at = start("compare", **pair(a, b, b_text=b_text), layer="2", head="1")
    laid = tv.compare(run(a, TEXT), run(b, b_text))
    assert laid.kinds == (kind,) and not at.error
    same(at, laid.difference(f"{kind}.2.1"))
    assert ("split the same text into different tokens" in said(at)) == (a != b)


def test_by_words_both_sides_are_pooled_and_so_do_the_lines(start, run, run_code):
    texts = "Unrelated houses are", "The houses are smaller"
    at = start("compare", **pair(GPT2, GPT2, *texts), unit="words", kind="decoder", layer="2", head="1", code="true")
    a, b = (tv.by_words(run(GPT2, text)) for text in texts)
    drawn, wanted = difference(at), tv.compare(a, b).difference("decoder.2.1")
    # What one alone masks is drawn by itself.
    np.testing.assert_array_equal(drawn, np.where(np.isnan(drawn), np.nan, wanted))
    assert np.isfinite(drawn).sum() > len(a.target_tokens)
    np.testing.assert_array_equal(run_code(programs(at)[0])["difference"], wanted)
    at.segmented_control(key="unit").set_value("tokens").run()
    assert difference(at).shape[1] > max(len(a.target_tokens), len(b.target_tokens))


def test_by_words_the_frame_of_one_model_shifts_nothing(start, run):
    text = "The house is"
    at = start("compare", **pair(MARIAN, BERT, text, text), unit="words", layer="2", head="1")
    assert not at.error
    a, b = (tv.by_words(run(name, text)) for name in (MARIAN, BERT))
    _, columns = compared(at)["kinds"]["encoder"]["pairs"]
    upon, under = (
        ["" if pair[side] is None else read.encoder.keys[pair[side]] for pair in columns] for side, read in enumerate((a, b))
    )
    assert [under[0], upon[0], under[1], upon[1]] == ["[CLS]", "", "the", "The"]
    assert upon[2:4] == under[2:4] == ["house", "is"]
    assert (upon[4:], under[4:]) == (["</s>"], ["[SEP]"])
    assert "by their text" in said(at)
    same(at, tv.compare(a, b).difference("encoder.2.1"))
    assert difference(at).shape == (len(upon), len(upon))


def test_what_has_no_attention_in_common_is_said(start):
    at = start("compare", **pair(BERT, GPT2))
    assert "A and B have no kind of attention in common: A has encoder self-attention, B has decoder self-attention." in said(
        at
    )
    assert "A is an encoder alone, which writes nothing" in sent(at)
    assert not [box for box in at.selectbox if box.key == "a_strategy"]


def test_encoders_alone_are_compared_by_what_they_fill_in(start, run):
    text, edit = f"{TEXT} [MASK].", "encoder:*=1"
    at = start("compare", **pair(BERT, BERT, text, text), b_edits=edit)
    fills = [run(BERT, text, edits=edits).fills[0].candidates[0][0] for edits in ((), [edit])]
    written = next(line for line in sent(at).splitlines() if line.startswith("writes"))
    assert written.split(" | ")[1:3] == [f"nothing; fills {fill}" for fill in fills]
