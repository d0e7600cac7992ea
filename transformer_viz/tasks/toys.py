"""The two toys of the published sources: pairs of sentences of words, two of each.

Worked example: `ich mochte ein bier` is framed as `<start> ich mochte ein bier <end>`; the answer is `i want a beer .`
The source's symbols P, S and E are `<pad>`, `<start>` and `<end>` here; its spelling is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from transformer_viz.errors import InputError, join_names
from transformer_viz.language import later, say
from transformer_viz.tasks.corpus import Corpus, Pair, Vocabularies, spelled
from transformer_viz.tasks.task import Example, check_length, check_symbols
from transformer_viz.text_display import quote_text
from transformer_viz.vocabulary import Vocabulary


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

    def pairs(self) -> Mapping[str, Pair]:
        return {source: (tuple(source.split()), tuple(target.split())) for source, target in self.translations}

    @property
    def judged_by(self) -> Literal["trained"]:
        return "trained"

    def judged(self, samples: int, seed: int) -> Iterator[tuple[str, str]]:
        yield from ((self.sources[0], text) for text in list(self.pairs())[:samples])

    def read(self, text: str) -> list[str]:
        words = self._words(text, self.source_vocabulary)
        if not words:
            possible = join_names(self.source_vocabulary.symbols)
            raise InputError(
                say("The text is empty. Type 1 to {n} of these words: {words}.", n=self.max_length, words=possible)
            )
        check_length(len(words), self.max_length, later("words"))
        return words

    def read_target(self, text: str) -> list[str]:
        return self._words(text, self.target_vocabulary)

    def _words(self, text: str, vocabulary: Vocabulary) -> list[str]:
        possible = say("It knows {words}. Words are set apart by spaces.", words=join_names(vocabulary.symbols))
        sentence = later("Word {place} is {symbol}, which this model does not know.")
        check_symbols(text.split(), vocabulary, sentence, possible, quote_text)
        return text.split()

    def spell(self, symbols: Sequence[str]) -> str:
        return spelled(symbols)

    def join(self, tokens: Sequence[str]) -> str:
        return spelled(tokens)

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        """Nobody says which word belongs to which."""
        return [None] * n_steps

    def examples(self) -> list[Example]:
        return [Example(text, note) for text, note in zip(self.pairs(), self.notes, strict=True)]


class GermanToy(Sentences):
    """The toy of the `bias-free` source."""

    name = "german-toy"
    about = later("knows two German sentences and writes them in English")
    translations = (
        ("ich mochte ein bier", "i want a beer ."),
        ("ich mochte ein cola", "i want a coke ."),
    )


class PinyinToy(Sentences):
    """The toy of the `torch-reference` source, in pinyin without tones. One sentence is longer, so that a batch of both shows
    what padding and its masks are."""

    name = "pinyin-toy"
    about = later("knows two English sentences and writes them in Chinese, in pinyin")
    translations = (
        ("I have a hd ,", "wo you yi ge hd ,"),
        ("but it is a big dog .", "dan shi ta shi yi zhi gou ."),
    )


TASKS = (GermanToy, PinyinToy)
