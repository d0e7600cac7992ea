"""The samplers: exact length, count and alphabet, and each one's own nature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_viz.errors import ConfigError
from transformer_viz.tasks.letters import LOWER_CASE, PRINTABLE_ASCII, SAMPLERS
from transformer_viz.tasks.reverse import Reverse


@pytest.mark.parametrize("source", SAMPLERS)
@given(length=st.integers(1, 37), count=st.integers(0, 7), seed=st.integers(0, 1000), lower=st.booleans())
@settings(max_examples=20)
def test_length_count_and_alphabet(source, length, count, seed, lower):
    alphabet = LOWER_CASE if lower else PRINTABLE_ASCII
    task = Reverse(alphabet)
    drawn = task.sample(source, length, count, np.random.default_rng(seed))
    assert [len(text) for text in drawn] == [length] * count
    assert all(isinstance(text, str) and set(text) <= set(alphabet) for text in drawn)
    if count >= 3 and length >= 5:
        assert drawn != task.sample(source, length, count, np.random.default_rng(seed + 1))


@pytest.mark.parametrize("length", [1, 2, 7, 32])
def test_each_source_has_its_nature(length):
    task, rng = Reverse(), np.random.default_rng(0)
    drawn = {source: task.sample(source, length, 500, rng) for source in SAMPLERS}
    assert all(text == text[::-1] for text in drawn["palindromes"])
    assert all(len(set(text)) <= 4 for text in drawn["few"])
    assert any(len(set(text)) == 1 for text in drawn["few"])
    assert set("".join(drawn["uniform"])) == set(PRINTABLE_ASCII)
    assert len(set(drawn["uniform"])) > 90
    letters = sum(c.isalpha() for c in "".join(drawn["words"])) / (500 * length)
    assert letters > 0.55
    if length == 32:
        assert any(" " in text.strip() for text in drawn["words"])
        assert any(c.isupper() for c in "".join(drawn["words"]))
        assert any(c.isdigit() for c in "".join(drawn["words"]))


def test_an_alphabet_without_letters_still_ends():
    """Guards an endless loop: running text of which nothing is in the alphabet but digits."""
    assert set("".join(Reverse("0123456789").sample("words", 5, 3, np.random.default_rng(0)))) <= set("0123456789")


def test_an_unknown_source_lists_the_known():
    with pytest.raises(ConfigError, match=r"'poems'.*uniform, few, palindromes, words"):
        Reverse().sample("poems", 3, 1, np.random.default_rng(0))
