"""Masks with models that are not ours: every tab, what is drawn and clicked, and what cannot be."""

import numpy as np
import pytest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.views import viewer
from tests.views.drawn import finished, said
from tests.views.test_masks_view import TABS, titles
from transformer_viz import check_masks, decode, decode_batch, load_model, measure_effect
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.text_display import display_text
from transformer_viz.vocabulary import PAD

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]
TEXTS = "The capital of France is\nThe house"


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("name", [MARIAN, GPT2, BERT])
def test_every_tab_opens(start, name, tab):
    at = start("masks", checkpoint=name, masks_tab=tab)
    assert not at.error and not at.warning
    header = next(str(words.value) for words in at.markdown if str(words.value).startswith("Sentence 1"))
    assert "letter" not in header and ".**." not in header


def test_padding_before_prompts_is_drawn_and_named(start, models):
    at = start("masks", checkpoint=GPT2, sources=TEXTS, sentence="2", masks_of="sentence")
    trace = decode_batch(load_model(str(models / GPT2), "cpu"), TEXTS.split("\n"))[1]
    n = trace.target_tokens.count(PAD)
    assert n == 3
    masked = np.triu(np.ones((trace.n_steps, trace.n_steps), dtype=bool), 1)
    masked[:, :n] = True
    shown = titles(at)
    assert f"decoder: padding<br>{n * trace.n_steps} of {masked.size} cells" in shown
    assert f"decoder: combined<br>{masked.sum()} of {masked.size} cells" in shown
    assert not [title for title in shown if title.startswith(("encoder", "cross"))]
    assert f"goes on with **{display_text(trace.text)}**" in said(at)
    assert "It has 2 tokens, and 3 of padding before them" in said(at)


def test_an_edit_of_an_encoder_says_what_becomes_of_its_fills(start, models):
    edit, text = "encoder.1.1:*=1", "The capital of France is [MASK]."
    at = start("masks", checkpoint=BERT, sources=text, masks_tab=TABS[2], edits=edit)
    model = load_model(str(models / BERT), "cpu")
    first, second = (decode(model, text, edits=edits).fills[0].candidates[0] for edits in ((), [edit]))
    assert f"**{first[0]}**" in said(at)
    table = at.dataframe[0].value
    assert table["after"][0] == second[0]
    assert table["p after"][0] == pytest.approx(second[1])


def test_the_certificate_is_of_the_texts_that_were_typed(start, models):
    at = start("masks", checkpoint=GPT2, sources=TEXTS, masks_tab="Certificate")
    at.toggle(key="certificate").set_value(True).run()
    report = check_masks(load_model(str(models / GPT2), "cpu"), texts=TEXTS.split("\n"))
    assert report.headline in said(at)
    assert "(2 texts," in report.headline
    at.text_area(key="sources").set_value("The house").run()
    assert "Sound" not in said(at), "another text has not been tried"


def test_targets_have_a_loss_and_prompts_none(start, models):
    targets = " Paris.\n is small."
    at = start("masks", checkpoint=GPT2, sources=TEXTS, targets=targets, masks_tab="Loss")
    model = load_model(str(models / GPT2), "cpu")
    steps = []
    for text, target in zip(TEXTS.split("\n"), targets.split("\n"), strict=True):
        trace = decode(model, text, target=target)
        steps += [-step.log_probability for step in trace.steps[trace.n_given :]]
    assert f"loss {np.mean(steps):.4g}" in said(at)
    assert f"{len(steps)} real tokens" in " ".join(caption.value for caption in at.caption)


def test_mistakes_are_made_in_our_own_models_alone(start):
    at = start("masks", checkpoint=BERT, masks_tab="Mistakes", mistake="no-causal")
    assert "choose one of its checkpoints" in said(at)
    assert not [box for box in at.selectbox if box.key == "mistake"]
    at.selectbox(key="checkpoint").set_value("reverse").run()
    assert said(at).count("**Here:**") > 0


def test_a_change_is_tried_on_many_texts_of_the_persons_own(start, models):
    edit, many = "decoder:off", "The house is\nThe capital\nParis\nsmall"
    at = finished(start("masks", checkpoint=GPT2, sources=TEXTS, masks_tab=TABS[2], edits=edit, many=many, effect="true"))
    found = measure_effect(load_model(str(models / GPT2), "cpu"), texts=many.split("\n"), edits=[edit], max_length=8)
    assert found.changed > 0
    assert f"Of 4 texts, **{percent_words(found.changed, 1)}** come out differently" in said(at)
    at.text_area(key="many").set_value("").run()
    assert at.toggle(key="effect").label == "The effect over 2 texts"


def test_an_encoder_alone_needs_mask_tokens_in_the_many_texts(start):
    at = start("masks", checkpoint=BERT, sources="The house", masks_tab=TABS[2], edits="encoder:*=1", effect="true")
    assert "Put [MASK] into each text" in said(at)
    assert viewer.head(at).shape == (4, 4), "all else is there"
