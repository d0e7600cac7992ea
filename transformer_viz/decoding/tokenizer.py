"""The protocol of a model's tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class TaskAnswer:
    """The answer and the alignment that a model's task knows for a text; empty where the model has no task.

    Attributes:
        alignment: for each step the place in the source that it must look at, or None.
        expected: the true answer as text, or None.
        expected_tokens: the true answer as tokens, the end included.
    """

    alignment: tuple[int | None, ...]
    expected: str | None = None
    expected_tokens: tuple[str, ...] | None = None


class Tokenizer(Protocol):
    """Text to ids and back, and the labels of ids. Labels of different ids may be equal, unless `has_unique_labels`."""

    @property
    def has_unique_labels(self) -> bool:
        """Tells whether a label determines the id."""

    @property
    def longest_label(self) -> int:
        """Characters."""

    @property
    def mask_id(self) -> int | None:
        """The mask token, for which an encoder alone writes what may stand in its place; None = there is none."""

    @property
    def unknown_id(self) -> int | None:
        """The token for unknown pieces of text; None = there is none."""

    def encode_source(self, text: str) -> list[int]:
        """Encodes a source text as ids, special tokens included.

        Raises:
            InputError: a text that cannot be read.
        """

    def encode_target(self, text: str) -> list[int]:
        """Encodes a target text as ids, without the end; as `encode_source`."""

    def ids_of(self, what: str, tokens: Sequence[str | int]) -> list[int]:
        """The ids of target tokens as people name them; an InputError about an unknown one begins with `what`."""

    @property
    def label(self) -> Callable[[int], str]:
        """The label of one id of a target; asked for thousands of times in a run."""

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        """A label for each id of a source."""

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        """A label for each id of a target."""

    def remark(self, ids: Sequence[int]) -> str:
        """Names what is unusual in the ids of a text, in words; empty where nothing is."""

    def text(self, ids: Sequence[int]) -> str:
        """Decodes the ids of a target as text, special ones left out."""

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Decodes the ids of several targets."""

    def symbol_indices(self, source_labels: Sequence[str]) -> list[int | None]:
        """For each place of a source, padding included, the index of its symbol in the text, or None."""

    def task_answer(self, text: str, n_steps: int) -> TaskAnswer:
        """The task's answer and alignment for a source text and so many steps."""
