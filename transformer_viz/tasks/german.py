"""German sentences to English: the example sentences of Debian's dictionary package trans-de-en (GPL).

The sentences are read from where the package is installed and never copied. Worked example: `Wie spät ist es?` is read as
the words `Wie spät ist es ?` and framed between `<start>` and `<end>`. Words that fewer than two training sentences have are
read as `<unk>`. Nobody says which word belongs to which, so there is no true alignment; a model is judged by exact match and
BLEU.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from transformer_viz import untrusted_files
from transformer_viz.errors import ConfigError, FileError, InputError
from transformer_viz.tasks.corpus import Corpus, Pair, Vocabularies
from transformer_viz.tasks.task import Example, check_length
from transformer_viz.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary

DICTIONARY = Path("/usr/share/trans/de-en")
_LARGEST_DICTIONARY = 256 * 2**20
_MOST_WORDS = 20
_LEAST_SENTENCES = 2
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_REMARK = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>")
_BEFORE_MARK = re.compile(r" (?=[.,;:!?…%)\]’])")


class German(Corpus):
    """Writes the English of a German sentence, in words."""

    name = "german"
    about = "This model reads German sentences and writes English."
    sources = ("sentences",)
    max_length = max_target_length = _MOST_WORDS
    metric = "bleu"
    all_examples = (
        Example("Wie spät ist es?", "the verb moves"),
        Example("Ich habe keine Zeit.", "a short sentence"),
        Example("Das ist eine gute Idee.", "word by word"),
        Example("Er hat das Buch gelesen.", "German puts the participle last"),
    )

    def pairs(self) -> Mapping[str, Pair]:
        return _sentences(DICTIONARY)

    def make_vocabularies(self) -> Vocabularies:
        """The vocabularies, from the training sentences only."""
        pairs = [pair for text, pair in self.pairs().items() if self.is_in(text, "train")]
        counts = [Counter(word for pair in pairs for word in set(pair[side])) for side in (0, 1)]
        # Words that at least two sentences have.
        frequent = [sorted(word for word, n in count.items() if n >= _LEAST_SENTENCES) for count in counts]
        return Vocabulary.of(frequent[0]), Vocabulary.of(frequent[1])

    def read(self, text: str) -> list[str]:
        words = self.symbols(text)
        if not words:
            raise InputError(f"The text is empty. Type a German sentence of at most {self.max_length} words and marks.")
        check_length(len(words), self.max_length, "words and marks")
        return words

    def symbols(self, text: str) -> list[str]:
        return [_known(word, self.source_vocabulary) for word in _TOKEN.findall(text)]

    def read_target(self, text: str) -> list[str]:
        return [_known(word, self.target_vocabulary) for word in _TOKEN.findall(text)]

    def join(self, tokens: Sequence[str]) -> str:
        shown = (token for token in tokens if token == UNKNOWN or token not in SPECIAL_TOKENS)
        return _BEFORE_MARK.sub("", " ".join(shown))

    def spell(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols)

    def answer(self, symbols: Sequence[str]) -> list[str] | None:
        # Two sentences that differ in unknown words only have different answers: they cannot be told apart here.
        try:
            words = self._answers().get(tuple(symbols))
        except ConfigError:
            return None
        return None if words is None else [_known(word, self.target_vocabulary) for word in words]

    def alignment(self, symbols: Sequence[str], n_steps: int) -> list[int | None]:
        return [None] * n_steps

    def reference(self, text: str) -> str:
        """The translation as it stands in the data, unknown words too: what BLEU compares with."""
        return self.join(self.pairs()[text][1])

    def _answers(self) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        known: dict[tuple[str, ...], tuple[str, ...]] = self.__dict__.setdefault("_known_answers", {})
        if not known:
            known.update((tuple(self.symbols(text)), pair[1]) for text, pair in reversed(list(self.pairs().items())))
        return known


@cache
def _sentences(dictionary: Path) -> dict[str, Pair]:
    """Text -> words of both languages: entries that are sentences on both sides, the first of several wordings."""
    try:
        text = untrusted_files.read_text(dictionary, _LARGEST_DICTIONARY)
    except FileNotFoundError:
        raise ConfigError(
            "task 'german' takes its sentences from Debian's package trans-de-en, which is not installed. "
            "Install it with: sudo apt install trans-de-en"
        ) from None
    except FileError as error:
        raise ConfigError(f"{dictionary} cannot be read: {error}. Install Debian's package trans-de-en again.") from error
    sentences: dict[str, Pair] = {}
    for line in text.splitlines():
        german, between, english = line.partition(" :: ")
        if not between or line.startswith("#"):
            continue
        for source, target in zip(german.split(" | "), english.split(" | "), strict=False):
            texts = _sentence(source), _sentence(target)
            words = [tuple(_TOKEN.findall(text)) for text in texts if text is not None]
            if len(words) == 2 and texts[0] not in sentences and all(2 < len(side) <= _MOST_WORDS for side in words):
                sentences[str(texts[0])] = words[0], words[1]
    return sentences


def _sentence(entry: str) -> str | None:
    """The first wording without remarks, if it is a sentence: a capital letter in front, a mark at its end."""
    text = " ".join(_REMARK.sub(" ", entry).split(";")[0].split())
    text = text.replace(" .", ".").replace(" ?", "?").replace(" !", "!")
    return text if text[:1].isupper() and text[-1:] in ".!?" and "/" not in text and "…" not in text else None


def _known(word: str, vocabulary: Vocabulary) -> str:
    return word if word in vocabulary and word not in SPECIAL_TOKENS else UNKNOWN


TASK = German
