"""Labels of a Hugging Face tokenizer: what a piece spells, as people read it."""

import pytest

from tests.needs import needs
from transformer_viz.errors import InputError
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer, spelt

pytestmark = needs("transformers")


def byte_level(text: str) -> HuggingFaceTokenizer:
    """A byte-level BPE trained on a text, merged as far as it goes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False)
    made.train_from_iterator([text] * 9, trainer)
    return HuggingFaceTokenizer.of(PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>"))


def word_piece(*pieces: str) -> HuggingFaceTokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ids = {piece: number for number, piece in enumerate(("[UNK]", "[MASK]", *pieces))}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    fast = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", mask_token="[MASK]")
    return HuggingFaceTokenizer.of(fast)


def unigram(*pieces: str) -> HuggingFaceTokenizer:
    """With the 256 bytes of a SentencePiece that falls back on them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256)), *((piece, -1.0) for piece in pieces)]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return HuggingFaceTokenizer.of(PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>"))


def read(tokenizer: HuggingFaceTokenizer, text: str) -> list[str]:
    return tokenizer.source_labels(tokenizer.encode_source(text))


@pytest.mark.parametrize("text", ["the cat", "naïve café", "東京 타워", "שלום עולם", "a\n\tb  c", "½ ­ \xa0¡ÿ"])
def test_labels_of_byte_level_pieces_are_their_characters(text: str) -> None:
    labels = read(byte_level(text), text)
    assert "".join(labels) == text
    assert len(labels) < len(text.encode())


def test_a_piece_of_no_whole_character_is_drawn_as_its_bytes() -> None:
    tokenizer = byte_level("none")
    assert read(tokenizer, "é€") == ["<0xC3>", "<0xA9>", "<0xE2>", "<0x82>", "<0xAC>"]
    # Two bytes of the three of €, before which a space is read whole.
    assert spelt("ĠâĤ", {"ByteLevel"}) == " <0xE2><0x82>"


def test_special_tokens_are_as_they_are() -> None:
    tokenizer = byte_level("the cat")
    assert read(tokenizer, "the<|end|>") == ["the", "<|end|>"]
    assert read(word_piece("a"), "a [MASK]") == ["a", "[MASK]"]


def test_word_pieces_keep_their_mark() -> None:
    assert read(word_piece("sing", "##ing", "▁"), "singing ▁") == ["sing", "##ing", "▁"]


def test_pieces_of_sentencepiece_begin_with_their_space() -> None:
    tokenizer = unigram("▁the", "▁", "cat", "s")
    assert read(tokenizer, "the cats") == [" the", " ", "cat", "s"]
    assert read(tokenizer, "the\né") == [" the", "\n", "<0xC3>", "<0xA9>"]


def test_ids_may_share_a_label_and_are_told_apart_by_number() -> None:
    tokenizer = unigram("a")
    ids = tokenizer.ids_of("prefix: token", ["<0x61>", "a"])
    assert tokenizer.target_labels(ids) == ["a", "a"]
    assert len(set(ids)) == 2
    assert not tokenizer.has_unique_labels


def test_a_token_is_named_by_its_piece_its_id_or_a_label_that_is_its_own() -> None:
    tokenizer = unigram("▁the", "▁")
    the = tokenizer.ids_of("ban: token", ["▁the"])
    assert tokenizer.ids_of("ban: token", [" the"]) == tokenizer.ids_of("ban: token", the) == the
    with pytest.raises(
        InputError, match="ban: token ' ' is the label of several tokens; give the id of one instead: #33, #258"
    ):
        tokenizer.ids_of("ban: token", [" "])
    for unknown in ("cat", 259, -1):
        with pytest.raises(InputError, match="is not in the vocabulary"):
            tokenizer.ids_of("ban: token", [unknown])


def test_an_id_that_only_the_model_has_is_its_number() -> None:
    assert word_piece("a").target_labels([2, 99]) == ["a", "99"]


def test_no_label_is_longer_than_is_said() -> None:
    tokenizer = byte_level("東京東京東京")
    assert tokenizer.longest_label == max(map(len, tokenizer.labels)) >= len("<0xE6><0x9D>")
