"""The record of a beam search: every continuation that was looked at, and the attention of every row that was computed.

Hypotheses share the rows of what they have in common, so the attention of each can be put together from its own path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from transformer_viz.errors import OptionError, TraceError

State = Literal["kept", "pruned", "end", "length", "stopped"]
STATES: tuple[State, ...] = get_args(State)
STATE_WORDS: dict[State, str] = {
    "kept": "went on",
    "pruned": "pruned",
    "end": "finished",
    "length": "stopped by the length limit",
    "stopped": "still alive when the search stopped",
}


@dataclass(frozen=True, kw_only=True)
class SearchNode:
    """One continuation: a token after a prefix.

    Attributes:
        parent: number of the node that it continues; None right after `<start>`.
        row: number of the recorded row from which the token was chosen.
        step: from 0.
        token: what was written.
        text: what the path to here spells, special symbols left out.
        log_probability: of the token, from the natural softmax.
        total: sum of log-probabilities along the hypothesis.
        score: total / lengthᵅ.
        rank: among all continuations of its step, 0 = best.
        place: of the token among all tokens after the same prefix, 0 = the most probable.
        state: see `STATE_WORDS`.
        pruned_by: number of the worst node that was kept instead, for a pruned one.
    """

    parent: int | None
    row: int
    step: int
    token: str
    text: str
    log_probability: float
    total: float
    score: float
    rank: int
    place: int
    state: State
    pruned_by: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """One sentence's search.

    Attributes:
        nodes: in the order of steps and ranks.
        best: numbers of the finished nodes, best score first.
        decoder_rows: float32 (row, layer, head, key); a row has as many keys as its step, the rest is 0.
        cross_rows: float32 (row, layer, head, source).
        alignment: the true key index of each step, or None, for the longest path.
        candidates: for each row the most probable tokens with their probabilities, best first.
        settings: beam size, length penalty, stop, maximum length.
    """

    nodes: tuple[SearchNode, ...]
    best: tuple[int, ...]
    decoder_rows: np.ndarray
    cross_rows: np.ndarray
    alignment: tuple[int | None, ...]
    candidates: tuple[tuple[tuple[str, float], ...], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_rows, n_nodes = len(self.candidates), len(self.nodes)
        for name, rows in (("decoder_rows", self.decoder_rows), ("cross_rows", self.cross_rows)):
            if rows.ndim != 4 or len(rows) != n_rows or rows.dtype != np.float32 or 0 in rows.shape:
                raise TraceError(f"search: {name} is {rows.dtype} {rows.shape}; float32 ({n_rows}, layer, head, key) is needed")
            if not np.isfinite(rows).all():
                raise TraceError(f"search: {name} holds numbers that are not finite")
            rows.setflags(write=False)
        for number, node in enumerate(self.nodes):
            parent = None if node.parent is None else self.nodes[node.parent] if node.parent < number else node
            fits = node.step == 0 if parent is None else parent is not node and node.step == parent.step + 1
            if not fits or not 0 <= node.row < n_rows or node.step >= self.decoder_rows.shape[-1] or node.state not in STATES:
                raise TraceError(f"search: node {number} does not fit to its parent or its row")
        if len(self.alignment) != self.decoder_rows.shape[-1]:
            raise TraceError(f"search: alignment has {len(self.alignment)} entries for {self.decoder_rows.shape[-1]} steps")
        if any(not 0 <= number < n_nodes for number in self.best) or not self.best:
            raise TraceError("search: a best hypothesis is not among the nodes")

    def path(self, number: int) -> tuple[SearchNode, ...]:
        """The nodes from the first token to node `number`.

        Raises:
            OptionError: there is no such node.
        """
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.nodes):
            raise OptionError(f"node {number!r} is not in this search; it has nodes 0 to {len(self.nodes) - 1}")
        path = [self.nodes[number]]
        while path[-1].parent is not None:
            path.append(self.nodes[path[-1].parent])
        return tuple(reversed(path))

    def attention(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Decoder self-attention (layer, head, step, step) and cross-attention (layer, head, step, source) of a node's path."""
        rows = [node.row for node in self.path(number)]
        decoder = np.moveaxis(self.decoder_rows[rows][..., : len(rows)], 0, 2)
        return np.ascontiguousarray(decoder), np.ascontiguousarray(np.moveaxis(self.cross_rows[rows], 0, 2))
