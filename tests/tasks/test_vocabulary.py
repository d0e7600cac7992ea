"""Tokens and ids: special ones first, nothing twice, what is unknown becomes `<unk>`."""

import pytest

from transformer_viz.errors import ConfigError
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID, UNKNOWN_ID, Vocabulary


def test_special_tokens_lead_and_ids_are_places():
    vocabulary = Vocabulary.of("ba")
    assert vocabulary.tokens == ("<pad>", "<start>", "<end>", "<unk>", "b", "a")
    assert (PAD_ID, START_ID, END_ID, UNKNOWN_ID) == (0, 1, 2, 3)
    assert vocabulary.encode(["a", "b", "<end>", "z"]) == [5, 4, 2, 3]
    assert vocabulary.decode([5, 4, 2, 3]) == ["a", "b", "<end>", "<unk>"]
    assert vocabulary.symbols == ("b", "a")
    assert len(vocabulary) == 6
    assert "a" in vocabulary
    assert "z" not in vocabulary


@pytest.mark.parametrize("tokens", [(), ("a", "b"), ("<start>", "<pad>", "<end>", "<unk>")])
def test_other_beginnings_are_refused(tokens):
    with pytest.raises(ConfigError, match="<pad> <start> <end> <unk>"):
        Vocabulary(tokens)


def test_a_token_twice_is_refused():
    with pytest.raises(ConfigError, match=r"7 tokens.*6 different"):
        Vocabulary.of("aba")
