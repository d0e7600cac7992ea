"""SentencePiece's tokenizer of one of Firefox's translators as ours. It appends the end to a source; what is typed is text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformer_viz.errors import FileError, InputError, listed, shortened
from transformer_viz.loaded_model import Known
from transformer_viz.readers.firefox.model import END_ID

START = "<start>"
"""The label of what the decoder reads first."""
_SPACE = "▁"
_LONGEST = 100
"""Characters of a piece."""


@dataclass(frozen=True)
class FirefoxTokenizer:
    """See `loaded_model.Tokenizer`. Source and target have the same pieces.

    Attributes:
        processor: of the library sentencepiece.
        labels: of all ids, and last of what the decoder reads first.
    """

    processor: Any
    labels: tuple[str, ...]

    has_unique_labels = False
    mask_id = None

    @classmethod
    def of(cls, data: bytes) -> "FirefoxTokenizer":
        """From a file of SentencePiece.

        Raises:
            ImportError: the library is not installed.
            FileError: it is no such file, or has pieces that could not be drawn.
        """
        from sentencepiece import SentencePieceProcessor

        try:
            processor = SentencePieceProcessor(model_proto=data)
            pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
        except (RuntimeError, ValueError, TypeError) as error:
            raise FileError(f"it is no whole file of SentencePiece ({shortened(str(error), 100)})") from error
        if max(map(len, pieces), default=0) > _LONGEST:
            raise FileError(f"it has a piece of more than {_LONGEST} characters")
        return cls(processor, (*(piece.replace(_SPACE, " ") for piece in pieces), START))

    @property
    def unknown_id(self) -> int | None:
        return self.processor.unk_id()

    @cached_property
    def longest_label(self) -> int:
        return max(map(len, self.labels))

    @property
    def label(self) -> Callable[[int], str]:
        return self.labels.__getitem__

    def source(self, text: str) -> list[int]:
        ids = self.target(text)
        if not ids:
            raise InputError("The text is empty. Type at least one letter.")
        return [*ids, END_ID]

    def target(self, text: str) -> list[int]:
        return list(self.processor.encode(text))

    def named(self, what: str, tokens: Sequence[str | int]) -> list[int]:
        return [self._id(what, token) for token in tokens]

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        return self.target_labels(ids)

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        return [self.labels[number] for number in ids]

    def text(self, ids: Sequence[int]) -> str:
        return self.texts([ids])[0]

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        n = self.processor.get_piece_size()
        return [self.processor.decode([number for number in ids if number not in (END_ID, n)]) for ids in rows]

    def letters(self, source_labels: Sequence[str]) -> list[int | None]:
        return [None] * len(source_labels)

    def known(self, text: str, n_steps: int) -> Known:
        return Known(alignment=(None,) * n_steps)

    def _id(self, what: str, token: str | int) -> int:
        """Of an id, or of a label that only one id has. What the decoder reads first is never written."""
        n = self.processor.get_piece_size()
        found = [number for number in range(n) if number == token or self.labels[number] == token]
        if not found:
            raise InputError(f"{what} {shortened(str(token))!r} is not in the vocabulary of this model.")
        if len(found) > 1:
            ids = listed(f"#{number}" for number in found[:8])
            raise InputError(f"{what} {shortened(str(token))!r} is the label of several tokens; name one by its id, of {ids}.")
        return found[0]
