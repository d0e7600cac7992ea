"""The SentencePiece tokenizer of one of Firefox's translators, behind our interface. It appends the end to a source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_viz.errors import FileError, InputError
from transformer_viz.readers.firefox.model import END_ID
from transformer_viz.readers.piece_tokenizer import PieceTokenizer
from transformer_viz.text_display import shorten

START = "<start>"
"""The label of what the decoder reads first."""
_SPACE = "▁"
_LONGEST = 100
"""Characters of a piece."""


@dataclass(frozen=True)
class FirefoxTokenizer(PieceTokenizer):
    """See `decoding.tokenizer.Tokenizer`.

    Attributes:
        labels: of all ids, and last of what the decoder reads first.
        processor: of the library sentencepiece.
    """

    processor: Any

    mask_id = None

    @classmethod
    def of(cls, data: bytes) -> "FirefoxTokenizer":
        """The tokenizer of a file of SentencePiece.

        Raises:
            ImportError: the library is not installed.
            FileError: it is no such file, or has pieces that could not be drawn.
        """
        from sentencepiece import SentencePieceProcessor

        try:
            processor = SentencePieceProcessor(model_proto=data)
            pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
        except (RuntimeError, ValueError, TypeError) as error:
            raise FileError(f"it is damaged or not a SentencePiece model ({shorten(str(error), 100)})") from error
        if max(map(len, pieces), default=0) > _LONGEST:
            raise FileError(f"it has a piece of more than {_LONGEST} characters")
        return cls((*(piece.replace(_SPACE, " ") for piece in pieces), START), processor)

    @property
    def unknown_id(self) -> int | None:
        return self.processor.unk_id()

    @property
    def label(self) -> Callable[[int], str]:
        return self.labels.__getitem__

    def encode_source(self, text: str) -> list[int]:
        ids = self.encode_target(text)
        if not ids:
            raise InputError("The text is empty. Type at least one letter.")
        return [*ids, END_ID]

    def encode_target(self, text: str) -> list[int]:
        return list(self.processor.encode(text))

    @property
    def n_ids(self) -> int:
        """Without what the decoder reads first, which is never written."""
        return len(self.labels) - 1

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.processor.decode([number for number in ids if number not in (END_ID, self.n_ids)]) for ids in rows]
