"""What the two toys of the published sources share: word tokens, vocabulary from the sentences, fixed-length padding."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

from transformer_viz.errors import InputError, listed
from transformer_viz.tasks.corpus import Corpus, Pair, Vocabularies, spelled
from transformer_viz.tasks.letters import check_length
from transformer_viz.tasks.task import Example
from transformer_viz.terms import text_words
from transformer_viz.vocabulary import SPECIAL_TOKENS, Vocabulary


class Sentences(Corpus):
    """Pairs of sentences of words. Two pairs cannot be split: a model is judged by what it was trained on, and it is said."""

    sources = ("sentences",)
    translations: ClassVar[tuple[tuple[str, str], ...]]
    notes: ClassVar[tuple[str, ...]] = ("one of the two sentences", "the other one")

    def __init__(self, vocabularies: Vocabularies | None = None) -> None:
        super().__init__(vocabularies, held_out_share=0.0)
        self.max_length = max(len(source) for source, _ in self.pairs().values())

    def options(self) -> dict[str, Any]:
        return {}

    @property
    def max_target_length(self) -> int:
        return max(len(target) for _, target in self.pairs().values())

    @cached_property
    def _pairs(self) -> dict[str, Pair]:
        return {source: (tuple(source.split()), tuple(target.split())) for source, target in self.translations}

    def pairs(self) -> Mapping[str, Pair]:
        return self._pairs

    @property
    def judged_by(self) -> Literal["trained"]:
        return "trained"

    def judged(self, samples: int, seed: int) -> Iterator[tuple[str, str]]:
        yield from ((self.sources[0], text) for text in list(self.pairs())[:samples])

    def read(self, text: str) -> list[str]:
        words = self._words(text, self.source_vocabulary)
        if not words:
            raise InputError(f"The text is empty. Type 1 to {self.max_length} of these words: {self._known()}.")
        check_length(len(words), self.max_length, "words")
        return words

    def read_target(self, text: str) -> list[str]:
        return self._words(text, self.target_vocabulary)

    def _words(self, text: str, vocabulary: Vocabulary) -> list[str]:
        words = text.split()
        for place, word in enumerate(words, start=1):
            if word not in vocabulary or word in SPECIAL_TOKENS:
                raise InputError(
                    f"Word {place} is {text_words(word)}, which this model does not know. "
                    f"It knows {listed(vocabulary.symbols)}. Words are set apart by spaces."
                )
        return words

    def _known(self) -> str:
        return listed(self.source_vocabulary.symbols)

    def spell(self, symbols: Sequence[str]) -> str:
        return spelled(symbols)

    def join(self, tokens: Sequence[str]) -> str:
        return spelled(tokens)

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        """Nobody says which word belongs to which."""
        return [None] * n_steps

    def examples(self) -> list[Example]:
        return [Example(text, note) for text, note in zip(self.pairs(), self.notes, strict=True)]
