"""A list of tokens as a tokenizer: texts are cut into words or letters."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_viz.errors import InputError, OptionError, join_names
from transformer_viz.readers.piece_tokenizer import PieceTokenizer
from transformer_viz.text_display import quote_text, shorten

_SPECIAL = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]|<\|[^|]*\|>")
_UNKNOWN = ("<unk>", "[UNK]", "<UNK>", "UNK")
_MASK = ("<mask>", "[MASK]")


@dataclass(frozen=True)
class ListTokenizer(PieceTokenizer):
    """See `decoding.tokenizer.Tokenizer`.

    Words stand between spaces; where all tokens but the special ones are single characters, each character is a token.

    Attributes:
        labels: of what may be written.
        sources: of what may be read; where there is one stack, the same.
        specials: ids that a text leaves out when it is spelt: start, end and padding.
        first: ids that stand before what is read of a text, such as the start of a decoder alone.
        encode: a person's own function from a source text to ids, or None.
    """

    sources: tuple[str, ...]
    specials: frozenset[int]
    first: tuple[int, ...] = ()
    encode: Callable[[str], Sequence[int]] | None = None

    @property
    def label(self) -> Callable[[int], str]:
        return lambda number: self.labels[number] if number < len(self.labels) else str(number)

    @property
    def n_ids(self) -> int:
        return len(self.labels)

    @property
    def mask_id(self) -> int | None:
        return next((self.sources.index(token) for token in _MASK if token in self.sources), None)

    @property
    def unknown_id(self) -> int | None:
        return next((self.sources.index(token) for token in _UNKNOWN if token in self.sources), None)

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        return [self.sources[number] if number < len(self.sources) else str(number) for number in ids]

    def encode_source(self, text: str) -> list[int]:
        if self.encode is None:
            ids = self._read(text, self.sources)
        else:
            try:
                ids = [int(number) for number in self.encode(text)]
            except Exception as error:  # a person's own function
                raise InputError(f"encode cannot read this text ({shorten(str(error), 200)}). Try another one.") from error
        if not ids:
            raise InputError("The text is empty. Type at least one token.")
        return [*self.first, *ids]

    def encode_target(self, text: str) -> list[int]:
        return self._read(text, self.labels)

    def own_text(self, n_tokens: int) -> str:
        """A text of so many of the first words or letters of the vocabulary, for an example."""
        own = [token for number, token in enumerate(self.sources) if number not in self.specials]
        own = [token for token in own if token.isalnum()] or own or [*self.sources]
        return ("" if _are_letters(self.sources) else " ").join(own[place % len(own)] for place in range(n_tokens))

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        between = "" if _are_letters(self.labels) else " "
        return [between.join(self.label(number) for number in ids if number not in self.specials) for ids in rows]

    def _read(self, text: str, tokens: tuple[str, ...]) -> list[int]:
        ids = {token: number for number, token in enumerate(tokens)}
        pieces = _letters(text, ids) if _are_letters(tokens) else text.split()
        unknown = next((ids[token] for token in _UNKNOWN if token in ids), None)
        read = [ids.get(piece, unknown) for piece in pieces]
        if None in read:
            piece = pieces[read.index(None)]
            known = join_names([token for token in tokens if not _SPECIAL.fullmatch(token)][:8])
            raise InputError(f"{quote_text(piece)} is not in the vocabulary of this model. It knows {known} …")
        return [number for number in read if number is not None]


def _are_letters(tokens: Sequence[str]) -> bool:
    own = [token for token in tokens if not _SPECIAL.fullmatch(token)]
    return bool(own) and all(len(token) == 1 for token in own)


def _letters(text: str, ids: Mapping[str, int]) -> list[str]:
    """The characters of a text; a special token that is typed is one. Spaces count where the vocabulary has one."""
    pieces, at = [], 0
    while at < len(text):
        special = _SPECIAL.match(text, at)
        piece = special[0] if special and special[0] in ids else text[at]
        at += len(piece)
        if not piece.isspace() or piece in ids:
            pieces.append(piece)
    return pieces


def labels_of(name: str, given: Any) -> tuple[str, ...]:
    """Tokens by id, from a list, from a dictionary by id, or from one by token.

    Raises:
        OptionError: it is none of these.
    """
    if isinstance(given, Mapping):
        by_id = {value: key for key, value in given.items()} if all(isinstance(key, str) for key in given) else given
        if not by_id or not all(isinstance(number, int) and number >= 0 for number in by_id):
            raise OptionError(f"{name} is a dict; token -> id or id -> token is needed")
        if max(by_id) > 10 * len(by_id) + 1000:
            raise OptionError(f"{name} has ids up to {max(by_id)} for {len(by_id)} tokens; give a list of tokens by id")
        return tuple(str(by_id.get(number, f"#{number}")) for number in range(max(by_id) + 1))
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise OptionError(
            f"{name} is {type(given).__name__}; give a list of tokens by id, a dict, a tokenizer of transformers, or the "
            "name of a task of this package"
        )
    return tuple(map(str, given))
