"""A Hugging Face tokenizer as ours: text to ids and back, and the labels by which people read its pieces."""

import json
import re
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from transformer_viz.errors import InputError, OptionError, join_names
from transformer_viz.readers.piece_tokenizer import PieceTokenizer
from transformer_viz.text_display import shorten

_NLLB = re.compile("[a-z]{3}_[A-Z][a-z]{3}")
"""The code of a language."""
PAIR = " ||| "
"""Stands between two texts that are read as one, such as a question and a passage."""
_SPACE = "▁"
"""The sign that SentencePiece writes for a space."""
_ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""The form in which SentencePiece writes a byte of a character that it has no piece for."""
_NO_CHARACTER = re.compile("[\udc80-\udcff]")
"""A byte of no whole character, as `surrogateescape` leaves them."""


def is_ordinary(error: BaseException) -> bool:
    """Tells whether it is an exception, or a panic of the library in Rust, which derives from no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@dataclass(frozen=True)
class HuggingFaceTokenizer(PieceTokenizer):
    """See `decoding.tokenizer.Tokenizer`. Ids may share a label: a byte of SentencePiece, and the piece of its letter.

    Attributes:
        labels: of all ids of the model; one that the tokenizer does not name is its number.
        tokenizer: of transformers. It has a state (which side it reads, in which language), so that one text is read at a time.
        languages: the token of each language that it is translated between by its code, as mBART, M2M100 and NLLB have them.
            The source language stands in what is read. The target's is the token that is forced first, or, for the first
            mBART, the token that the decoder begins with: where the tokenizer puts it in a target tells which.
        is_chat: whether a source is a user's message, framed as its chat template says.
        source_language: the code of the language of sources; None where the tokenizer knows no languages.
        target_language: the code of the language of targets; None = the source's.
        n_embedded: tokens that the model has embeddings of; None = as many as may come.
        lock: held while a text is read, by all who read with this tokenizer of transformers.
    """

    tokenizer: Any
    languages: Mapping[str, int] = field(compare=False)
    is_chat: bool = False
    source_language: str | None = None
    target_language: str | None = None
    n_embedded: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    @classmethod
    def of(cls, tokenizer: Any, n_ids: int | None = None, n_embedded: int | None = None) -> "HuggingFaceTokenizer":
        """The tokenizer as it reads by itself, for a model of so many ids; None = as many as it names."""
        languages: Mapping[str, int] = {}
        if getattr(tokenizer, "src_lang", None) is not None:
            languages = getattr(tokenizer, "lang_code_to_id", None) or {
                code: tokenizer.convert_tokens_to_ids(code) for code in filter(_NLLB.fullmatch, tokenizer.all_special_tokens)
            }
        own = {"source_language": tokenizer.src_lang, "target_language": tokenizer.tgt_lang} if languages else {}
        labels = _labels(tokenizer, n_ids or len(tokenizer))
        return cls(labels, tokenizer, dict(sorted(languages.items())), n_embedded=n_embedded, **own)

    def language_id(self, code: str) -> int:
        """The token of a language.

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

    @property
    def mask_id(self) -> int | None:
        return self.tokenizer.mask_token_id

    @property
    def unknown_id(self) -> int | None:
        return self.tokenizer.unk_token_id

    @property
    def n_ids(self) -> int:
        return len(self.labels)

    @property
    def label(self) -> Callable[[int], str]:
        return lambda number: self.labels[number] if number < len(self.labels) else str(number)

    def id_of(self, token: str) -> int | None:
        return self.tokenizer.get_vocab().get(token)

    def encode_source(self, text: str) -> list[int]:
        with self._reading() as tokenizer:
            if self.is_chat:
                message = [{"role": "user", "content": text}]
                try:  # what begins the answer is a part of the template
                    ids = list(tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False))
                except Exception as error:  # a template is a program that came with the model
                    why = f"The model's chat template failed: {shorten(str(error), 200)}. Try without the template."
                    raise InputError(why) from error
            else:
                ids = list(tokenizer(*self._parts(text)).input_ids)
        if not ids:
            raise InputError("The text is empty. Type at least one letter.")
        return self._embedded(ids)

    def _parts(self, text: str) -> list[str]:
        """The text, or the two that stand in it (`pair`), where the tokenizer has a token between them."""
        first, between, second = text.partition(PAIR)
        if not between or self.tokenizer.sep_token_id is None:
            return [text]
        if not first.strip() or not second.strip():
            raise InputError(f"One of two texts is empty. Write both around {PAIR.strip()}, or one text without it.")
        return [first, second]

    def remark(self, ids: Sequence[int]) -> str:
        """Names what is unusual about the ids of a text, in words; empty where nothing is."""
        start = self.tokenizer.bos_token_id
        if start is not None and list(ids[:2]) == [start, start]:
            return (
                f"the start token {self.label(start)} stands twice: it is typed in the text, and the tokenizer adds one. "
                "Leave it out of the text, or give the message alone and use the chat template"
            )
        return ""

    def encode_target(self, text: str) -> list[int]:
        with self._reading() as tokenizer:
            return self._embedded(list(tokenizer(text_target=text, add_special_tokens=False).input_ids))

    def frame_of_target(self) -> list[int]:
        """The special tokens that the tokenizer itself puts around a target."""
        with self._reading() as tokenizer:
            return list(tokenizer(text_target="").input_ids)

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        # A model may have places for more tokens than its tokenizer knows, and not every tokenizer passes them over.
        n_known, decode = len(self.tokenizer), self.tokenizer.decode
        with self.lock:
            return [decode([number for number in ids if number < n_known], skip_special_tokens=True) for ids in rows]

    def _embedded(self, ids: list[int]) -> list[int]:
        """The ids, if the model can read them: a tokenizer of another model may know more."""
        if self.n_embedded is not None and (most := max(ids, default=0)) >= self.n_embedded:
            raise InputError(
                f"The tokenizer turns this text into the token #{most}, but the model knows only {self.n_embedded} tokens. "
                "Try another text; if that does not help, the tokenizer is another model's: copy the whole folder again."
            )
        return ids

    @contextmanager
    def _reading(self) -> Generator[Any]:
        """The tokenizer, as this one sets it. What it cannot read, its own library says by any error."""
        with self.lock:
            try:
                if self.source_language is not None:
                    self.tokenizer.src_lang = self.source_language
                    self.tokenizer.tgt_lang = self.target_language or self.source_language
                yield self.tokenizer
            except InputError:
                raise
            except BaseException as error:
                if not is_ordinary(error):
                    raise
                raise InputError(
                    f"The model's tokenizer cannot read this text ({shorten(str(error), 200)}). Try another one."
                ) from error


def _labels(tokenizer: Any, n_ids: int) -> tuple[str, ...]:
    """The labels of the ids from 0 on; an id without a name is its number."""
    kept = set(tokenizer.added_tokens_decoder)
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    decoders = frozenset() if decoder is None else frozenset(_types(json.loads(decoder.__getstate__())))
    pieces = tokenizer.convert_ids_to_tokens(list(range(min(n_ids, len(tokenizer)))))
    return tuple(
        str(number) if piece is None else piece if number in kept else spelt(piece, decoders)
        for number, piece in enumerate([*pieces, *[None] * (n_ids - len(pieces))])
    )


def spelt(piece: str, decoders: Collection[str]) -> str:
    """Spells a piece; less than a whole character as its bytes, `<0xE2><0x80>`.

    Args:
        piece: as the tokenizer names it.
        decoders: how pieces are put together, by the names of the library; none for a tokenizer that is written in Python.
    """
    if "ByteLevel" in decoders and all(sign in _BYTES for sign in piece):
        data = bytes(_BYTES[sign] for sign in piece)
    elif "WordPiece" in decoders:
        return piece
    elif one := _ONE_BYTE.fullmatch(piece):
        data = bytes.fromhex(one[1])
    else:
        return piece.replace(_SPACE, " ")
    return _NO_CHARACTER.sub(lambda found: f"<0x{ord(found[0]) - 0xDC00:02X}>", data.decode("utf-8", "surrogateescape"))


def _types(state: dict[str, Any]) -> Iterator[str]:
    """The types of a decoder and of the decoders that it consists of."""
    yield state["type"]
    for part in state.get("decoders", ()):
        yield from _types(part)


def _byte_signs() -> dict[str, int]:
    """The sign that byte-level BPE writes for each byte: itself where it can be seen, and else the next one from U+0100 on.

    Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
    """
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in seen]
    return {**{chr(byte): byte for byte in seen}, **{chr(0x100 + place): byte for place, byte in enumerate(others)}}


_BYTES = _byte_signs()
