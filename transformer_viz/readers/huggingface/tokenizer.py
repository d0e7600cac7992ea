"""A Hugging Face tokenizer as ours: ids, and labels as people read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from transformer_viz.errors import InputError, shortened
from transformer_viz.loaded_model import Known

_SPACES = ("▁", "Ġ")
"""How pieces of SentencePiece and of byte-level BPE write the space before them."""


@dataclass(frozen=True)
class HuggingFaceTokenizer:
    """See `loaded_model.Tokenizer`. Different ids may have equal labels: pieces of one letter's bytes all read `�`."""

    tokenizer: Any

    has_unique_labels = False

    @property
    def mask_id(self) -> int | None:
        return self.tokenizer.mask_token_id

    @cached_property
    def longest_label(self) -> int:
        """Characters; a label of bytes is no longer than its piece's."""
        return max(map(len, self.tokenizer.get_vocab()), default=1)

    def source(self, text: str) -> list[int]:
        ids = list(self.tokenizer(text).input_ids)
        if not ids:
            raise InputError("The text is empty. Type at least one letter.")
        return ids

    def target(self, text: str) -> list[int]:
        return list(self.tokenizer(text_target=text, add_special_tokens=False).input_ids)

    def named(self, what: str, tokens: Sequence[str | int]) -> list[int]:
        vocabulary = self.tokenizer.get_vocab()
        ids = []
        for token in tokens:
            number = token if isinstance(token, int) else vocabulary.get(token)
            if number is None or not 0 <= number < len(self.tokenizer):
                raise InputError(f"{what} {shortened(str(token))!r} is not in the vocabulary of this model.")
            ids.append(number)
        return ids

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        return self.target_labels(ids)

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        pieces = self.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(number) if piece is None else self._label(piece) for number, piece in zip(ids, pieces, strict=True)]

    def text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def letters(self, source_labels: Sequence[str]) -> list[int | None]:
        return [None] * len(source_labels)

    def known(self, text: str, n_steps: int) -> Known:
        return Known(alignment=(None,) * n_steps)

    def _label(self, piece: str) -> str:
        return " " + piece[1:] if piece.startswith(_SPACES) else piece
