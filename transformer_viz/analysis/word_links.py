"""Word alignments of a text and its translation, as Pharaoh writes it: `0-0 1-2`, counted from 0.

Words are those of the pages (`word_starts`), here of a whole text.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_viz.analysis.word_starts import groups, word_starts
from transformer_viz.errors import InputError, OptionError, join_names
from transformer_viz.text_display import shorten

Link = tuple[int, int]
"""A word of the text and one of its translation, from 0."""
_LINK = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)
_GOLD = Path(__file__).resolve().parent.parent / "gold"


class Linked(NamedTuple):
    """Texts, their translations, and the links of each."""

    texts: tuple[str, ...]
    targets: tuple[str, ...]
    links: tuple[frozenset[Link], ...]


def words_of(text: str) -> list[str]:
    """The words of a text, without the spaces before them."""
    letters = list(text.strip())
    return ["".join(letters[place] for place in word).strip() for word in groups(word_starts(letters))] if letters else []


def links_of(given: str | Iterable[Link], text: str, target: str) -> frozenset[Link]:
    """The links of one text, checked.

    Raises:
        InputError: not a link, or a link of a word that the text does not have; the message names it.
    """
    pairs = _parsed(given) if isinstance(given, str) else frozenset((int(i), int(j)) for i, j in given)
    n_words = len(words_of(text)), len(words_of(target))
    for link in sorted(pairs):
        if not all(0 <= place < n for place, n in zip(link, n_words, strict=True)):
            raise InputError(
                f"Link {link[0]}-{link[1]} is not possible: {shorten(text)!r} has words 0 to {n_words[0] - 1}, "
                f"and {shorten(target)!r} 0 to {n_words[1] - 1}. Words count from 0, each punctuation mark as one."
            )
    return pairs


def directions() -> tuple[str, ...]:
    """Between which languages there are pairs that were aligned by hand, both ways, such as `pt-en`."""
    there = [file.stem.split("-") for file in sorted(_GOLD.glob("*.links"))]
    return tuple(f"{a}-{b}" for one, other in there for a, b in ((one, other), (other, one)))


def gold(direction: str) -> Linked:
    """The pairs of one direction; `gold/README.md` says how they were made.

    Raises:
        OptionError: there are none.
    """
    if direction not in directions():
        raise OptionError(
            f"there are no pairs {shorten(direction)!r} aligned by hand; choose one of {join_names(directions())}"
        )
    source, target = direction.split("-")
    is_turned = not (_GOLD / f"{direction}.links").exists()
    lines = _lines(f"{target}-{source}.links" if is_turned else f"{direction}.links")
    links = (frozenset((j, i) if is_turned else (i, j) for i, j in _parsed(line)) for line in lines)
    return Linked(_lines(f"{source}.txt"), _lines(f"{target}.txt"), tuple(links))


def _parsed(line: str) -> frozenset[Link]:
    matches = [(given, _LINK.fullmatch(given)) for given in line.split()]
    if wrong := [given for given, match in matches if match is None]:
        raise InputError(f"{shorten(wrong[0])!r} is no link; write 0-0 1-2, a word of the text and one of its translation")
    return frozenset((int(match[1]), int(match[2])) for _, match in matches if match)


def _lines(name: str) -> tuple[str, ...]:
    return tuple((_GOLD / name).read_text(encoding="utf-8").splitlines())


def checked(links: Sequence[str | Iterable[Link]], texts: Sequence[str], targets: Sequence[str]) -> tuple[frozenset[Link], ...]:
    """The links of all texts.

    Raises:
        InputError: not as many as texts, or as `links_of`, with the number of the text.
    """
    if len(links) != len(texts):
        raise InputError(f"There are {len(texts)} texts and {len(links)} lines of links; give one line for each text.")
    pairs = []
    for number, (given, text, target) in enumerate(zip(links, texts, targets, strict=True), 1):
        try:
            pairs.append(links_of(given, text, target))
        except InputError as error:
            raise InputError(f"Text {number}: {error}") from None
    return tuple(pairs)
