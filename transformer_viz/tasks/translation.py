"""The base of tasks on a synchronous grammar: one language into another, with the right answer and its alignment.

The same rules draw the sentences of training and read what a person types. Where a typed sentence is none of the grammar, or
can be read in two ways, the model writes all the same, but nobody knows a right answer; `remark` says so.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from transformer_viz.errors import InputError, join_names
from transformer_viz.grammar import Grammar, SentencePair, draw, load_grammar, read, tree_pair
from transformer_viz.language import known, later, say, sentences
from transformer_viz.tasks.corpus import DrawnTask, Vocabularies, spelled
from transformer_viz.tasks.task import check_length
from transformer_viz.text_display import quote_text
from transformer_viz.vocabulary import SPECIAL_TOKENS, Vocabulary

DATA = Path(__file__).parent / "data"
_TOKEN = re.compile(r"[^\s,.;:!?\"]+|[,.;:!?\"]")
_BEFORE_MARK = re.compile(r" (?=[,?])")
_WITHOUT_DOTS = str.maketrans("äöü", "aou")
_MOST_REMEMBERED = 20_000
_NEAREST = 3

HeldOut = Literal["combination", "longer", "nested", "sentence"]
"""Why a sentence is never trained on: two of its words are never seen together; it is too long; clauses are nested too
deeply; or its hash says so."""


class Translation(DrawnTask):
    """A task on a pair of files in `tasks/data`: NAME.lexicon and NAME.templates.

    Args:
        vocabularies: of a checkpoint that was trained before.
        held_out_share: share of all sentences, and of all combinations of two words, that are kept out of training.

    Attributes:
        trained_words: longer sentences are never trained on.
        unseen: kinds of sentences that training never sees, which `sample` can draw; the grammar's last one is nested once
            deeper, and `longer` are sentences of all other kinds.
        language: what it reads, for people.
        refused: a regular expression of what would be read as another word; its first group is the word. Live pages have it.
        why_refused: the sentence about it, a template with `word`.
    """

    language: ClassVar[str]
    refused: ClassVar[str] = ""
    why_refused: ClassVar[str] = ""
    trained_words: ClassVar[int] = 14
    unseen: ClassVar[tuple[str, ...]] = ("nested", "longer")
    evaluated_lengths = tuple(range(3, 15))
    max_length = 24
    max_target_length = 32
    rounds = 1_000

    def __init__(self, vocabularies: Vocabularies | None = None, held_out_share: float = 0.05) -> None:
        super().__init__(vocabularies, held_out_share)
        self._drawn: dict[str, SentencePair] = {}
        self._readings = lru_cache(maxsize=2_000)(self._read_back)

    @property
    def rules(self) -> Grammar:
        """The rules, read from their files once."""
        return _grammar(self.name)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The kinds of sentences, by clause."""
        return tuple(kind for kind in self.rules.kinds if kind not in self.unseen)

    def make_vocabularies(self) -> Vocabularies:
        source, target = (Vocabulary.of(self.rules.words(side)) for side in (0, 1))
        return source, target

    def read(self, text: str) -> list[str]:
        if self.refused and (match := re.search(self.refused, text)) is not None:
            raise InputError(say(self.why_refused, word=quote_text(match[1])))
        words = self.symbols(text)
        if not words:
            raise InputError(
                say(
                    "The text is empty. Type a sentence in {language} of at most {n} words and marks.",
                    language=known(self.language),
                    n=self.max_length,
                )
            )
        for word in words:
            if word not in self.source_vocabulary or word in SPECIAL_TOKENS:
                near = get_close_matches(spelling(word), self._spellings, _NEAREST, 0.6)
                nearest = list(dict.fromkeys(self._spellings[key] for key in near))
                offered = (
                    say("The nearest that it knows: {words}.", words=join_names(nearest))
                    if nearest
                    else say("It knows nothing like it.")
                )
                unknown = say("{word} is no word that this model knows.", word=quote_text(word, 60))
                raise InputError(sentences([unknown, offered]))
        check_length(len(words), self.max_length, later("words and marks"))
        return words

    def symbols(self, text: str) -> list[str]:
        """Words and marks, spelt as the vocabulary has them; a full stop at the end is left out."""
        tokens = _TOKEN.findall(text)
        while tokens and tokens[-1] in (".", "!"):
            tokens.pop()
        return [self._known(word) for word in tokens]

    def read_target(self, text: str) -> list[str]:
        words = _TOKEN.findall(text)
        for word in words:
            if word not in self.target_vocabulary or word in SPECIAL_TOKENS:
                raise InputError(f"{quote_text(word, 60)} is no word that this model writes.")
        return words

    def join(self, tokens: Sequence[str]) -> str:
        return _BEFORE_MARK.sub("", spelled(tokens))

    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        pair = self.reading(symbols)
        return None if pair is None else list(pair.target)

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        pair = self.reading(symbols)
        keys = () if pair is None else pair.alignment
        return [None if t >= len(keys) or (key := keys[t]) is None else key + 1 for t in range(n_steps)]

    def remark(self, symbols: Sequence[str]) -> str:
        n = len(self._readings(tuple(symbols)))
        if n == 0:
            return (
                "This is no sentence of the grammar that the model was trained on: nobody knows a right answer, "
                "and how sure the model is means nothing."
            )
        return "" if n == 1 else "This sentence can be read in two ways: there is no one right answer to compare with."

    def reading(self, symbols: Sequence[str]) -> SentencePair | None:
        """The sentence with its translation; None where it is none of the grammar, or has several translations."""
        drawn = self._drawn.get(self.join(symbols))
        if drawn is not None:
            return drawn
        readings = self._readings(tuple(symbols))
        return readings[0] if len(readings) == 1 else None

    def _read_back(self, symbols: tuple[str, ...]) -> list[SentencePair]:
        """One of each translation or alignment that the sentence can have."""
        pairs = (tree_pair(self.rules, tree) for tree in read(self.rules, symbols))
        return list({(pair.target, pair.alignment): pair for pair in pairs if pair is not None}.values())

    def draw(self, source: str, length: int | None, count: int, missing: int, rng: np.random.Generator) -> Iterator[str]:
        """Sentences of a kind; all but the unseen kinds as short as in training."""
        for _ in range(missing):
            kind = self.sources[rng.integers(len(self.sources))] if source == "longer" else source
            tree = draw(self.rules, kind, rng)
            pair = None if tree is None else tree_pair(self.rules, tree)
            if pair is None or len(pair.source) > self.max_length or len(pair.target) > self.max_target_length:
                continue
            if source != "nested" and (len(pair.source) > self.trained_words) != (source == "longer"):
                continue
            text = self.join(pair.source)
            if len(self._drawn) >= _MOST_REMEMBERED:
                self._drawn.clear()
            self._drawn[text] = pair
            yield text

    def check_source(self, source: str) -> None:
        if source not in self.unseen:
            super().check_source(source)

    def is_held_out(self, text: str) -> bool:
        return self.held_out_share > 0 and self.held_out_as(text) is not None

    def held_out_as(self, text: str) -> HeldOut | None:
        """Why a sentence is kept out of training; None where it is not."""
        symbols = self.symbols(text)
        pair = self.reading(symbols)
        if len(symbols) > self.trained_words:
            return "longer"
        if pair is not None and pair.phrase == self.rules.kinds["nested"].symbol:
            return "nested"
        if pair is not None and any(super(Translation, self).is_held_out(" + ".join(two)) for two in pair.combinations):
            return "combination"
        return "sentence" if super().is_held_out(self.join(symbols)) else None

    def _known(self, word: str) -> str:
        """Spells a text as the vocabulary does: capitals, `ae` for `ä`, `ss` for `ß` and missing dots do not matter."""
        if word in self.source_vocabulary:
            return word
        key = spelling(word)
        return self._spellings.get(key) or self._spellings.get(key.translate(_WITHOUT_DOTS), word)

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Each word by its spelling in plain letters, and, where no other word has it, without the dots."""
        words = self.source_vocabulary.symbols
        spellings = {word.casefold().translate(_WITHOUT_DOTS).replace("ß", "ss"): word for word in words}
        return spellings | {spelling(word): word for word in words}


def spelling(word: str) -> str:
    """A word in small plain letters: `Schlüssel` and `schluessel` are alike."""
    plain = word.casefold()
    for letter, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        plain = plain.replace(letter, letters)
    return plain


@cache
def _grammar(name: str) -> Grammar:
    return load_grammar(DATA / f"{name}.lexicon", DATA / f"{name}.templates")
