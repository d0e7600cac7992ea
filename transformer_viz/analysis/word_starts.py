"""Finds the tokens that begin a word, told from their labels alone, whatever tokenizer made them.

Words stand between white space, punctuation is apart, and where a writing system puts no spaces each token is a word, as is
each special token. Inside a word apostrophes and points belong to it, as in Unicode's word boundaries (UAX 29, rules 6 to 12).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate

from transformer_viz.vocabulary import SPECIAL_TOKENS

_SPECIAL = re.compile(r"<(?!0x[0-9A-F]{2}>)[^<>\s]+>|<\|[^<>]*\|>|\[[A-Z]+\d*\]")
"""Special tokens as Marian, T5, Llama and BERT write them: `</s>`, `<extra_id_0>`, `<|im_start|>`, `[MASK]`."""
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""A byte of no whole character, in a label."""
_BYTES = re.compile(rf"(?:{_BYTE.pattern})+")
_CONTINUES = "##"
"""The mark with which WordPiece begins a piece that goes on with the word before it."""
_INSIDE = "'’.·"
"""Signs that belong to a word whose letters or digits stand on both sides."""
_JOINER = "\u200d"
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Kana and Han."""


def is_special(label: str) -> bool:
    """Tells whether a label is a special token's: a beginning, an end, padding, a mask."""
    return label in SPECIAL_TOKENS or _SPECIAL.fullmatch(label) is not None


def word_starts(labels: Sequence[str], *, are_words: bool = False) -> list[bool]:
    """For each token whether it begins a word; the others go on with the one before them.

    Args:
        labels: of a text's tokens in their order.
        are_words: no label says where a space stands, because one stands between any two.
    """
    # Where a space stands before a token that does not say so itself. `##` is a heading where others have spaces.
    is_word_piece = any(label.startswith(_CONTINUES) for label in labels) and not any(label.startswith(" ") for label in labels)
    spaced = [not label.startswith(_CONTINUES) if is_word_piece else are_words for label in labels]
    joined = [_part(label, is_apart) for label, is_apart in zip(labels, spaced, strict=True)]
    text = b"".join(joined).decode("utf-8", "surrogateescape")
    # Places at which a word, or a sign that is apart, begins.
    begins = frozenset(place for place, sign in enumerate(text) if not sign.isspace() and not _goes_on(text, place))
    # The places of tokens in the text: of bytes that are no whole character, that of the character which they make.
    ends = list(accumulate(len(part) for part in joined))
    places = [place for place, sign in enumerate(text) for _ in sign.encode("utf-8", "surrogateescape")]
    found, is_after_special = [], True
    for label, part, end in zip(labels, joined, ends, strict=True):
        is_alone = is_special(label)
        found.append(is_alone or is_after_special or _begins(text, begins, places, end - len(part), end))
        is_after_special = is_alone
    # Spaces that are a token of their own belong to what follows; line breaks stand alone.
    are_spaces = [bool(label) and not label.strip(" ") for label in labels]
    return [is_first and not (place and are_spaces[place - 1]) for place, is_first in enumerate(found)]


def _part(label: str, is_apart: bool) -> bytes:
    """The text that a token adds, as bytes; a special one is a break."""
    if is_special(label):
        return b"\n"
    spelt = label.removeprefix(_CONTINUES) if not is_apart else label
    pieces = _BYTE.split(spelt)
    # Text and bytes in turns.
    parts = (bytes.fromhex(part) if number % 2 else part.encode("utf-8", "surrogatepass") for number, part in enumerate(pieces))
    return (b" " if is_apart else b"") + b"".join(parts)


def _begins(text: str, begins: frozenset[int], places: Sequence[int], begin: int, end: int) -> bool:
    """Tells whether the first character of a token that is no space begins a word, and the token begins that character."""
    place = begin
    while place < end and text[places[place]].isspace():
        place += 1
    if place == end:
        return True
    is_first_byte = place == 0 or places[place - 1] != places[place]
    without_spaces = _WITHOUT_SPACES.match(text[places[place]]) is not None
    return is_first_byte and (without_spaces or places[place] in begins)


def _goes_on(text: str, place: int) -> bool:
    """Tells whether a character belongs to the same word as the one before it."""
    if place == 0 or text[place - 1].isspace():
        return False
    before, sign = text[place - 1], text[place]
    is_skin = "\U0001f3fb" <= sign <= "\U0001f3ff"  # colours of skin follow the picture that they colour
    if unicodedata.category(sign)[0] == "M" or sign == _JOINER or before == _JOINER or is_skin:
        return True
    if _WITHOUT_SPACES.match(sign) or _WITHOUT_SPACES.match(before):
        return False
    if _is_letter(sign):
        return _is_of_word(text, place - 1)
    return sign in _INSIDE and _is_of_word(text, place)


def _is_of_word(text: str, place: int) -> bool:
    """A letter, or a sign with letters on both sides."""
    sign = text[place]
    if sign in _INSIDE:
        return 0 < place < len(text) - 1 and _is_letter(text[place - 1]) and _is_letter(text[place + 1])
    return _is_letter(sign)


def _is_letter(sign: str) -> bool:
    """Or a digit, a mark, a low line, or a byte of no character."""
    return sign.isalnum() or unicodedata.category(sign)[0] == "M" or sign == "_" or "\udc80" <= sign <= "\udcff"


def spelt(label: str) -> str:
    """A label, or several after each other, with bytes that make whole characters as these."""
    return _BYTES.sub(_characters, label)


def _characters(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(_BYTE.sub(r"\1", match[0])).decode()
    except UnicodeDecodeError:
        return match[0]


def groups(starts: Iterable[bool]) -> list[list[int]]:
    """The places of each word's tokens; the first token begins one in any case."""
    places: list[list[int]] = []
    for place, is_first in enumerate(starts):
        if is_first or not places:
            places.append([])
        places[-1].append(place)
    return places
