"""Chinese phrases to their reading in pinyin, with tones: the 47,111 phrases of the package pypinyin (MIT).

Worked example: `重庆` is framed as `<start> 重 庆 <end>` and read `chóng qìng`; alone, `重` is more often `zhòng`. So the
model must look at the character itself, the true key 1, 2, …, and know its neighbours.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from transformer_viz.errors import InputError
from transformer_viz.language import later, say
from transformer_viz.tasks.corpus import Corpus, Pair, need, spelled
from transformer_viz.tasks.task import UNKNOWN_CHARACTER, Example, Split, check_length, check_symbols
from transformer_viz.text_display import quote_text

_LONGEST = 12


class Pinyin(Corpus):
    """Writes one syllable for each character.

    `characters` is a source of training texts of one character each, with the first reading that pypinyin gives.
    """

    name = "pinyin"
    about = later("writes how Chinese is spoken, in pinyin")
    sources = ("phrases",)
    training_sources = ("characters",)
    max_length = _LONGEST
    all_examples = (
        Example("重庆", later("here 重 is chóng")),
        Example("重量", later("and here it is zhòng")),
        Example("一心一意", later("the same character twice, with two tones")),
        Example("音乐", later("乐 is yuè in music")),
        Example("快乐", later("and lè in joy")),
        Example("银行行长", later("行 is háng and háng, 长 is zhǎng")),
    )

    def pairs(self) -> Mapping[str, Pair]:
        return _phrases()

    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        if len(symbols) == 1 and (answer := super().answer(symbols)) is None:
            reading = _characters().get(symbols[0])
            return [reading] if reading else answer
        return super().answer(symbols)

    def read(self, text: str) -> list[str]:
        if not text:
            raise InputError(say("The text is empty. Type 1 to {most} Chinese characters.", most=self.max_length))
        n_known = len(self.source_vocabulary.symbols)
        possible = say("It knows the {n:,} Chinese characters of its phrases, simplified, without spaces.", n=n_known)
        check_symbols(text, self.source_vocabulary, UNKNOWN_CHARACTER, possible)
        check_length(len(text), self.max_length)
        return list(text)

    def symbols(self, text: str) -> list[str]:
        return list(text)

    def read_target(self, text: str) -> list[str]:
        possible = say("Syllables carry tone marks and are set apart by spaces, as in: chóng qìng.")
        sentence = later("Syllable {place} is {symbol}, which this model does not know.")
        check_symbols(text.split(), self.target_vocabulary, sentence, possible, quote_text)
        return text.split()

    def join(self, tokens: Sequence[str]) -> str:
        return spelled(tokens)

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        return [t + 1 if t < len(symbols) else None for t in range(n_steps)]

    def examples(self) -> list[Example]:
        known = [e for e in self.all_examples if all(symbol in self.source_vocabulary for symbol in e.text)]
        return known or [Example(self.source_vocabulary.symbols[0], later("the first character it knows"))]

    def sample(
        self, source: str, length: int | None, count: int, rng: np.random.Generator, split: Split | None = None
    ) -> list[str]:
        if source not in self.training_sources:
            return super().sample(source, length, count, rng, split)
        known = [character for character in _characters() if character in self.source_vocabulary]
        return [known[i] for i in rng.integers(len(known), size=count)] if length in (None, 1) else []


@cache
def _phrases() -> dict[str, Pair]:
    """Phrases of 2 to 12 characters; where the package gives several readings, the first."""
    phrases = need("pypinyin.phrases_dict", "pypinyin", "pinyin").phrases_dict
    return {
        text: (tuple(text), tuple(syllable[0] for syllable in reading))
        for text, reading in sorted(phrases.items())
        if len(text) == len(reading) <= _LONGEST
    }


@cache
def _characters() -> dict[str, str]:
    """Characters of the phrases, each with its first reading, where that is a syllable of the phrases."""
    readings = need("pypinyin.pinyin_dict", "pypinyin", "pinyin").pinyin_dict
    characters = {character for text in _phrases() for character in text}
    syllables = {syllable for _, reading in _phrases().values() for syllable in reading}
    first = {
        character: readings[ord(character)].split(",")[0] for character in sorted(characters) if ord(character) in readings
    }
    return {character: reading for character, reading in first.items() if reading in syllables}


TASK = Pinyin
