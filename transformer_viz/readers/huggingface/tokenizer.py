"""A Hugging Face tokenizer as ours: ids, and labels as people read them."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformer_viz.errors import InputError, listed, shortened
from transformer_viz.loaded_model import Known

_SPACE = "▁"
"""How SentencePiece writes a space."""
_ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""How SentencePiece writes a byte of a character that it has no piece for."""
_NO_CHARACTER = re.compile("[\udc80-\udcff]")
"""A byte of no whole character, as `surrogateescape` leaves them."""


@dataclass(frozen=True)
class HuggingFaceTokenizer:
    """See `loaded_model.Tokenizer`. Ids may share a label: a byte of SentencePiece, and the piece of its letter.

    Attributes:
        tokenizer: of transformers.
        is_chat: whether a source is a user's message, framed as its chat template says.
    """

    tokenizer: Any
    is_chat: bool = False

    has_unique_labels = False

    @property
    def mask_id(self) -> int | None:
        return self.tokenizer.mask_token_id

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Of all ids."""
        kept = set(self.tokenizer.added_tokens_decoder)
        pieces = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        return tuple(
            str(number) if piece is None else piece if number in kept else self._label(piece)
            for number, piece in enumerate(pieces)
        )

    @cached_property
    def longest_label(self) -> int:
        return max(map(len, self.labels), default=1)

    @cached_property
    def label(self) -> Callable[[int], str]:
        return _Labels(self).__getitem__

    def source(self, text: str) -> list[int]:
        ids = self._message(text) if self.is_chat else list(self.tokenizer(text).input_ids)
        if not ids:
            raise InputError("The text is empty. Type at least one letter.")
        return ids

    def target(self, text: str) -> list[int]:
        return list(self.tokenizer(text_target=text, add_special_tokens=False).input_ids)

    def named(self, what: str, tokens: Sequence[str | int]) -> list[int]:
        return [self._id(what, token) for token in tokens]

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        return self.target_labels(ids)

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        # A model may have places for more tokens than its tokenizer knows.
        return [self.labels[number] if number < len(self.labels) else str(number) for number in ids]

    def text(self, ids: Sequence[int]) -> str:
        # A model may have places for more tokens than its tokenizer knows, and not every tokenizer passes them over.
        return self.tokenizer.decode([number for number in ids if number < len(self.labels)], skip_special_tokens=True)

    def letters(self, source_labels: Sequence[str]) -> list[int | None]:
        return [None] * len(source_labels)

    def known(self, text: str, n_steps: int) -> Known:
        return Known(alignment=(None,) * n_steps)

    def _id(self, what: str, token: str | int) -> int:
        """Of an id, of a piece as the tokenizer writes it, or of a label that only one id has."""
        if isinstance(token, int):
            found = [token] if 0 <= token < len(self.tokenizer) else []
        elif (number := self.tokenizer.get_vocab().get(token)) is not None:
            found = [number]
        else:
            found = [number for number, label in enumerate(self.labels) if label == token]
        if not found:
            raise InputError(f"{what} {shortened(str(token))!r} is not in the vocabulary of this model.")
        if len(found) > 1:
            ids = listed(f"#{number}" for number in found[:8])
            raise InputError(f"{what} {shortened(str(token))!r} is the label of several tokens; name one by its id, of {ids}.")
        return found[0]

    def _message(self, text: str) -> list[int]:
        """What begins the answer is a part of the template."""
        message = [{"role": "user", "content": text}]
        try:
            return list(self.tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False))
        except Exception as error:  # a template is a program that came with the model
            raise InputError(f"The model's chat template failed: {shortened(str(error), 200)}. Try without it.") from error

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
    """Of a decoder, and of those that it is made of."""
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


class _Labels(dict[int, str]):
    """Labels by id; the tokenizer is asked once for each."""

    def __init__(self, tokenizer: HuggingFaceTokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, number: int) -> str:
        self[number] = label = self._tokenizer.target_labels([number])[0]
        return label
