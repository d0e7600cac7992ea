"""The progress of a decoding and of longer work, for callbacks that may end it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from transformer_viz.decoding.beam import BeamResult
from transformer_viz.loaded_model import LoadedModel, Tokenizer


@dataclass(frozen=True)
class Written:
    """What has been written so far, given to `on_token` of `decode`.

    Attributes:
        n_steps: how many tokens the longest text has.
        ids: of each text; in a beam search those of the most probable hypothesis that is still being written.
        tokenizer: of the model.
    """

    n_steps: int
    ids: tuple[tuple[int, ...], ...]
    tokenizer: Tokenizer

    @property
    def texts(self) -> tuple[str, ...]:
        """What was written so far, as text."""
        return tuple(map(self.tokenizer.text, self.ids))


OnToken = Callable[[Written], bool | None]
"""A callback that gets what has been written so far; decoding ends when it returns False."""


OnProgress = Callable[[float], object]
"""A callback that gets the share of the work that is done, from 0 to 1; an exception in it ends the work."""


def part_of(on_progress: OnProgress | None, n_done: int, n_parts: int) -> OnProgress:
    """A callback for the next of `n_parts` equal parts, which reports the share of the whole; `n_done` parts are done."""

    def say(share: float) -> None:
        if on_progress is not None:
            on_progress((n_done + share) / n_parts)

    return say


class DecodingProgress:
    """Counts the steps of a decoding, and calls back after each.

    Args:
        model: what writes.
        n_texts: in the batch.
        n_prefix: how many tokens are forced; the first call comes after them.
        on_token: the callback.
    """

    def __init__(self, model: LoadedModel, n_texts: int, n_prefix: int, on_token: OnToken | None) -> None:
        self._ends, self._tokenizer, self._on_token = model.model.end_ids, model.tokenizer, on_token
        self._rows: list[list[int]] = [[] for _ in range(n_texts)]
        self._n_prefix = n_prefix
        self.n_steps = 0
        self.is_stopped = False

    def step(self, token: Tensor) -> bool:
        """After a step of greedy decoding or sampling, with its ids (batch,); whether it goes on."""
        if self._on_token is None:
            return True
        for row, number in zip(self._rows, token.tolist(), strict=True):
            if not row or row[-1] not in self._ends:
                row.append(number)
        return self._call(self._rows)

    def search_step(self, searches: Sequence[BeamResult]) -> bool:
        """After a step of a beam search, with its best living hypothesis, or where none lives the best of all."""
        if self._on_token is None:
            return True
        rows = []
        for nodes in (search.nodes for search in searches):
            node = next((node for node in nodes if node.step == nodes[-1].step and node.state == "kept"), None)
            node = node or max((node for node in nodes if node.state in ("end", "length")), key=lambda node: node.score)
            ids = [node.token]
            while node.parent is not None:
                node = nodes[node.parent]
                ids.append(node.token)
            rows.append(ids[::-1])
        return self._call(rows)

    def _call(self, rows: Sequence[Sequence[int]]) -> bool:
        self.n_steps += 1
        if self._on_token is None or self.n_steps < self._n_prefix:
            return True
        self.is_stopped = self._on_token(Written(self.n_steps, tuple(map(tuple, rows)), self._tokenizer)) is False
        return not self.is_stopped
