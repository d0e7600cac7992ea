"""Mask tokens: put in place of a word, and what may stand there put in their place."""

from pathlib import Path

import pytest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2
from tests.views.widgets import link_of
from transformer_viz import decode, load_model
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer
from transformer_viz.views.components.mask_tokens import filled, words

pytestmark = needs("transformers")
TEXT = "The [MASK] of France is [MASK]."


@pytest.fixture(autouse=True)
def all_models(models: Path) -> Path:
    return models


def ids_of(tokenizer: HuggingFaceTokenizer, *pieces: str) -> list[int]:
    return tokenizer.tokenizer.convert_tokens_to_ids([*pieces])


def byte_level() -> HuggingFaceTokenizer:
    """As RoBERTa has it: the space belongs to the piece behind it, and the mask token takes the one before it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AddedToken, PreTrainedTokenizerFast

    pieces = ["<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "\u0120P", "ar"]
    made = Tokenizer(models.BPE(vocab={piece: n for n, piece in enumerate(pieces)}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return HuggingFaceTokenizer.of(PreTrainedTokenizerFast(tokenizer_object=made, mask_token=AddedToken("<mask>", lstrip=True)))


def test_a_word_takes_the_mask_tokens_place_and_a_piece_is_joined_to_the_word_before_it():
    tokenizer = load_model(BERT, "cpu").tokenizer
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    (capital, piece) = ids_of(tokenizer, "capital", "##s")
    ids = tokenizer.encode_source(TEXT)

    def put(number: int, token: int, text: str = TEXT) -> str:
        return filled(tokenizer, text, tokenizer.encode_source(text), "[MASK]", number, token)

    assert tokenizer.mask_id in ids
    assert put(0, capital) == "The capital of France is [MASK]."
    assert put(1, capital) == "The [MASK] of France is capital."
    assert put(1, piece) == "The [MASK] of France iss."
    assert put(1, capital, "[MASK] [MASK]") == "[MASK] capital"
    assert put(0, capital, "[MASK] [MASK]") == "capital [MASK]"


def test_a_piece_that_has_its_own_space_has_one_and_the_others_none():
    tokenizer = byte_level()
    (word, piece) = ids_of(tokenizer, "ĠP", "ar")
    text = "It is <mask>."
    assert filled(tokenizer, text, tokenizer.encode_source(text), "<mask>", 0, word) == "It is P."
    assert filled(tokenizer, text, tokenizer.encode_source(text), "<mask>", 0, piece) == "It isar."
    assert filled(tokenizer, "<mask> is", tokenizer.encode_source("<mask> is"), "<mask>", 0, word) == "P is"


def test_words_are_those_of_any_writing_without_punctuation_and_mask_tokens():
    text = "It's [MASK], 北京 naïve  don't."
    assert [text[begin:end] for begin, end in words(text, "[MASK]")] == ["It's", "北", "京", "naïve", "don't"]
    assert words("[MASK]", "[MASK]") == words("", "[MASK]") == []


def test_a_click_puts_a_candidate_in_and_back_takes_it_out(start):
    run = decode(load_model(BERT, "cpu"), TEXT)
    at = start(checkpoint=BERT, text=TEXT)
    rows = [[button for button in at.button if button.key and button.key.startswith(f"fill-{number}-")] for number in (0, 1)]
    assert all(0 < len(row) <= 6 for row in rows)
    token = rows[1][0].label.rsplit(" ", 1)[0].replace("\\", "")
    assert token in [label for label, _ in run.fills[1].candidates]
    rows[1][0].click().run()
    assert not at.error
    put = at.session_state["text"]
    assert put.startswith("The [MASK] of France is") and put.count("[MASK]") == 1
    assert link_of(at)["text"] == put
    at.button(key="fill-0-0").click().run()
    assert "[MASK]" not in at.session_state["text"]
    for expected in (put, TEXT):
        at.button(key="fills-back").click().run()
        assert at.session_state["text"] == expected
    assert not [button for button in at.button if button.key == "fills-back"]


def test_a_word_is_masked_by_a_click(start):
    at = start(checkpoint=BERT, text="The house is small.")
    at.button(key=f"mask-{'The house is small.'.index('house')}").click().run()
    assert at.session_state["text"] == "The [MASK] is small."
    assert at.button(key="fill-0-0") is not None
    at.button(key="mask-end").click().run()
    assert at.session_state["text"] == "The [MASK] is small. [MASK]"
    assert not [button.key for button in start(checkpoint=GPT2).button if (button.key or "").startswith("mask-")]


def test_a_hidden_answer_offers_nothing(start):
    at = start(checkpoint=BERT, text=TEXT, hide_answer="true")
    assert not [button.key for button in at.button if (button.key or "").startswith("fill-")]
