"""A task's two vocabularies as a tokenizer: ids and labels for what runs a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformer_viz.decoding.tokenizer import TaskAnswer
from transformer_viz.errors import InputError
from transformer_viz.tasks.task import Task
from transformer_viz.text_display import quote_text
from transformer_viz.vocabulary import END, UNKNOWN_ID


@dataclass(frozen=True)
class TaskTokenizer:
    """See `decoding.tokenizer.Tokenizer`."""

    task: Task

    has_unique_labels = True
    mask_id = None
    unknown_id = UNKNOWN_ID

    @cached_property
    def longest_label(self) -> int:
        return self.task.target_vocabulary.longest

    @cached_property
    def label(self) -> Callable[[int], str]:
        return self.task.target_vocabulary.tokens.__getitem__

    def encode_source(self, text: str) -> list[int]:
        return self.task.source_vocabulary.encode(self.task.frame(self.task.read(text)))

    def encode_target(self, text: str) -> list[int]:
        # The empty target is the end alone, which no task reads as a text.
        return self.task.target_vocabulary.encode(self.task.read_target(text) if text else [])

    def ids_of(self, what: str, tokens: Sequence[str | int]) -> list[int]:
        vocabulary = self.task.target_vocabulary
        if unknown := [token for token in map(str, tokens) if token not in vocabulary]:
            raise InputError(f"{what} {quote_text(unknown[0])} is not in the vocabulary of this model.")
        return vocabulary.encode(map(str, tokens))

    def source_labels(self, ids: Sequence[int]) -> list[str]:
        return self.task.source_vocabulary.decode(ids)

    def target_labels(self, ids: Sequence[int]) -> list[str]:
        return self.task.target_vocabulary.decode(ids)

    def remark(self, ids: Sequence[int]) -> str:
        return ""

    def text(self, ids: Sequence[int]) -> str:
        return self.task.join(self.target_labels(ids))

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        tokens, join = self.task.target_vocabulary.tokens, self.task.join
        return [join([tokens[number] for number in ids]) for ids in rows]

    def symbol_indices(self, source_labels: Sequence[str]) -> list[int | None]:
        return self.task.symbol_indices(source_labels)

    def task_answer(self, text: str, n_steps: int) -> TaskAnswer:
        symbols = self.task.read(text)
        answer = self.task.answer(symbols)
        return TaskAnswer(
            alignment=tuple(self.task.alignment(symbols, n_steps)),
            expected=None if answer is None else self.task.join(answer),
            expected_tokens=None if answer is None else (*answer, END),
        )
