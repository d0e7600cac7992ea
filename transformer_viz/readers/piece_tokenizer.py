"""The base class of tokenizers that cut a text into pieces, whichever library does it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from transformer_viz.decoding.tokenizer import TaskAnswer
from transformer_viz.errors import InputError, join_names
from transformer_viz.text_display import shorten


@dataclass(frozen=True)
class PieceTokenizer(ABC):
    """See `decoding.tokenizer.Tokenizer`. Source and target have the same pieces, several of which may have one label.

    Attributes:
        labels: of all ids.
    """

    labels: tuple[str, ...] = field(compare=False, repr=False)

    has_unique_labels = False

    @cached_property
    def longest_label(self) -> int:
        """Characters."""
        return max(map(len, self.labels), default=1)

    @property
    @abstractmethod
    def label(self) -> Callable[[int], str]: ...

    @property
    @abstractmethod
    def n_ids(self) -> int:
        """The number of tokens that can be written; their ids are the first ones."""

    @abstractmethod
    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]: ...

    def id_of(self, token: str) -> int | None:
        """The id of a piece as its library writes it, where that is another way than its label."""
        return None

    def ids_of(self, what: str, tokens: Sequence[str | int]) -> list[int]:
        """The ids of tokens that are given as ids, as pieces of the tokenizer, or as labels that only one id has."""
        ids = []
        for token in tokens:
            number = token if isinstance(token, int) else self.id_of(token)
            if number is not None:
                matches = [number] if 0 <= number < self.n_ids else []
            else:
                matches = [number for number in range(self.n_ids) if self.label(number) == token]
            if not matches:
                raise InputError(f"{what} {shorten(str(token))!r} is not in the vocabulary of this model.")
            if len(matches) > 1:
                several = join_names(f"#{number}" for number in matches[:8])
                raise InputError(
                    f"{what} {shorten(str(token))!r} is the label of several tokens; give the id of one instead: {several}."
                )
            ids += matches
        return ids

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        return list(map(self.label, ids))

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        return list(map(self.label, ids))

    def remark(self, ids: Sequence[int]) -> str:
        """Names what is unusual about the ids of a text, in words; empty where nothing is."""
        return ""

    def text(self, ids: Sequence[int]) -> str:
        return self.texts([ids])[0]

    def symbol_indices(self, source_labels: Sequence[str]) -> list[int | None]:
        return [None] * len(source_labels)

    def task_answer(self, text: str, n_steps: int) -> TaskAnswer:
        return TaskAnswer(alignment=(None,) * n_steps)
