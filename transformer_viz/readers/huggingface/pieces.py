"""The pieces of a Hugging Face tokenizer, and the labels by which people read them."""

import json
import re
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from transformer_viz.errors import OptionError, join_names
from transformer_viz.text_display import shorten

_NLLB = re.compile("[a-z]{3}_[A-Z][a-z]{3}")
"""The code of a language."""
_SPACE = "▁"
"""How SentencePiece writes a space."""
_ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""How SentencePiece writes a byte of a character that it has no piece for."""
_NO_CHARACTER = re.compile("[\udc80-\udcff]")
"""A byte of no whole character, as `surrogateescape` leaves them."""


class Pieces:
    """A tokenizer of transformers, and what all who read with it share: labels, and a lock.

    It has a state (which side it reads, in which language), so that one text is read at a time.

    Attributes:
        tokenizer: of transformers.
        n_ids: how many ids the model has, which may be more or fewer than the tokenizer names.
    """

    def __init__(self, tokenizer: Any, n_ids: int | None = None) -> None:
        self.tokenizer = tokenizer
        self.n_ids = n_ids or len(tokenizer)
        self.lock = threading.Lock()

    @cached_property
    def languages(self) -> dict[str, int]:
        """The token of each language that it is translated between by its code, as mBART, M2M100 and NLLB have them.

        The source language stands in what is read. The target's is the token that is forced first, or, for the first mBART, the
        token that the decoder begins with: where the tokenizer puts it in a target tells which.
        """
        if getattr(self.tokenizer, "src_lang", None) is None:
            return {}
        codes = getattr(self.tokenizer, "lang_code_to_id", None)
        if codes is None:
            named = filter(_NLLB.fullmatch, self.tokenizer.all_special_tokens)
            codes = {code: self.tokenizer.convert_tokens_to_ids(code) for code in named}
        return dict(sorted(codes.items()))

    def language_id(self, code: str) -> int:
        """The token of one.

        Raises:
            OptionError: it is not known; the message names those that are.
        """
        if not self.languages:
            raise OptionError(
                f"language {shorten(code)!r} is not possible: this model's tokenizer knows no languages; leave it out"
            )
        if code not in self.languages:
            raise OptionError(f"language {shorten(code)!r} is not known; choose one of {join_names(self.languages)}")
        return self.languages[code]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of all ids of the model; one that the tokenizer does not name is its number."""
        kept = set(self.tokenizer.added_tokens_decoder)
        pieces = self.tokenizer.convert_ids_to_tokens(list(range(min(self.n_ids, len(self.tokenizer)))))
        return tuple(
            str(number) if piece is None else piece if number in kept else self._label(piece)
            for number, piece in enumerate([*pieces, *[None] * (self.n_ids - len(pieces))])
        )

    @cached_property
    def longest_label(self) -> int:
        """Characters."""
        return max(map(len, self.labels), default=1)

    def label(self, number: int) -> str:
        """The label of one id."""
        return self.labels[number] if number < len(self.labels) else str(number)

    def _label(self, piece: str) -> str:
        """What a piece spells; what does not spell a whole character as its bytes."""
        if "ByteLevel" in self._decoders and all(sign in _BYTES for sign in piece):
            return _spelt(bytes(_BYTES[sign] for sign in piece))
        if "WordPiece" in self._decoders:
            return piece
        if one := _ONE_BYTE.fullmatch(piece):
            return _spelt(bytes.fromhex(one[1]))
        return piece.replace(_SPACE, " ")

    @cached_property
    def _decoders(self) -> frozenset[str]:
        """How pieces are put together, by the names of the library; none for a tokenizer that is written in Python."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        decoder = getattr(backend, "decoder", None)
        return frozenset() if decoder is None else frozenset(_types(json.loads(decoder.__getstate__())))


def _types(state: dict[str, Any]) -> Iterator[str]:
    """The types of a decoder and of the decoders that it consists of."""
    yield state["type"]
    for part in state.get("decoders", ()):
        yield from _types(part)


def _spelt(piece: bytes) -> str:
    """`<0xE2><0x80>` where bytes are no whole character."""
    text = piece.decode("utf-8", "surrogateescape")
    return _NO_CHARACTER.sub(lambda found: f"<0x{ord(found[0]) - 0xDC00:02X}>", text)


def _byte_signs() -> dict[str, int]:
    """The sign that byte-level BPE writes for each byte: itself where it can be seen, and else the next one from U+0100 on.

    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
    """
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in seen]
    return {**{chr(byte): byte for byte in seen}, **{chr(0x100 + place): byte for place, byte in enumerate(others)}}


_BYTES = _byte_signs()
