"""The record of a beam search: every continuation that was considered, and the attention of every row that was computed.

Hypotheses with a common beginning share its rows, so the attention of each is put together along its path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from transformer_viz.errors import TraceError
from transformer_viz.language import later
from transformer_viz.schema import Count, Range, Share, whole_number
from transformer_viz.terms import Kind
from transformer_viz.trace.attention import PRECISIONS
from transformer_viz.trace.steps import LogProbability, Text
from transformer_viz.vocabulary import START

State = Literal["kept", "pruned", "end", "length", "stopped"]
STATE_WORDS: dict[State, str] = {
    "kept": later("went on"),
    "pruned": later("pruned"),
    "end": later("finished"),
    "length": later("stopped by the length limit"),
    "stopped": later("still alive when the search stopped"),
}


@dataclass(frozen=True, kw_only=True)
class SearchNode:
    """One continuation: a token after a prefix.

    Attributes:
        parent: number of the node that it continues; None right after the opening.
        row: number of the recorded row from which the token was chosen.
        step: from 0, the first that is written.
        token: what was written.
        text: what the path to here spells, special symbols left out.
        log_probability: of the token, from the natural softmax.
        total: sum of log-probabilities along the hypothesis.
        score: total / lengthᵅ.
        rank: among all continuations of its step, 0 = best.
        place: of the token among all tokens after the same prefix, 0 = the most probable.
        state: see `STATE_WORDS`.
        pruned_by: number of the worst node that was kept instead, for a pruned one.
        token_id: of the token, where labels do not tell tokens apart.
    """

    parent: Count | None
    row: Count
    step: Count
    token: Text
    text: Text
    log_probability: LogProbability
    total: float
    score: float
    rank: Count
    place: Count
    state: State
    pruned_by: Count | None = None
    token_id: Count | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """One sentence's search.

    Attributes:
        nodes: in the order of steps and ranks.
        best: numbers of the finished nodes, best score first.
        decoder_rows: float32 or float16 (row, layer, head, key); a row of step t has `n_given` + t + 1 keys, the rest is 0.
            None where the decoder's self-attention was not kept.
        cross_rows: cross-attention (row, layer, head, source), or None.
        alignment: the true key index of each step, or None, for the longest path.
        candidates: for each row the most probable tokens with their probabilities, best first.
        settings: beam size, length penalty, stop, maximum length.
        opening: what the decoder reads before the first token is written: `<start>`, or a whole prompt. What its positions
            before the last do is the same for all hypotheses: those are the Trace's first `n_given` rows and steps.
        opening_ids: the ids of these tokens, or None.
        candidate_ids: the ids of the candidates, row by row; none where labels tell tokens apart.
        decoder_reasons: the decoder's mask on the longest path where it is not simply causal, uint8 codes of
            `terms.Reason`, (query, key), or (layer, head, query, key) where layers differ. A shorter path has a corner of it.
    """

    nodes: tuple[SearchNode, ...]
    best: Annotated[tuple[Count, ...], Range(1, 2**20)]
    alignment: tuple[Count | None, ...]
    candidates: tuple[tuple[tuple[Text, Share], ...], ...]
    decoder_rows: np.ndarray | None = None
    cross_rows: np.ndarray | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    opening: tuple[Text, ...] = (START,)
    opening_ids: tuple[Count, ...] | None = None
    candidate_ids: tuple[tuple[Count, ...], ...] = ()
    decoder_reasons: np.ndarray | None = None

    def __post_init__(self) -> None:
        n, n_ids = len(self.opening), None if self.opening_ids is None else len(self.opening_ids)
        if n == 0 or n_ids not in (None, n):
            raise TraceError(
                f"search: the opening has {n} tokens and {n_ids} ids; at least one token is needed, and an id each"
            )
        if self.candidate_ids and list(map(len, self.candidate_ids)) != list(map(len, self.candidates)):
            raise TraceError("search: candidate_ids does not have an id for each candidate")
        n_rows, n_nodes, n_steps = len(self.candidates), len(self.nodes), len(self.alignment)
        for kind, rows in self.rows.items():
            if rows.ndim != 4 or len(rows) != n_rows or rows.dtype not in PRECISIONS or 0 in rows.shape:
                raise TraceError(
                    f"search: {kind}_rows is {rows.dtype} {rows.shape}; {' or '.join(PRECISIONS)} "
                    f"({n_rows}, layer, head, key) is needed"
                )
        if self.decoder_rows is not None and self.n_given + n_steps != self.decoder_rows.shape[-1]:
            given = f" after {self.n_given} given tokens" if self.n_given else ""
            n_needed = self.decoder_rows.shape[-1] - self.n_given
            raise TraceError(f"search: alignment has {n_steps} entries for {n_needed} steps{given}")
        reasons, rows = self.decoder_reasons, self.decoder_rows
        path = () if rows is None else (rows.shape[-1],) * 2
        if reasons is not None and (
            rows is None or reasons.dtype != np.uint8 or reasons.shape not in (path, (*rows.shape[1:3], *path))
        ):
            raise TraceError(
                f"search: decoder_reasons is {reasons.dtype} {reasons.shape}; uint8 {path or 'with decoder_rows'} is needed"
            )
        for number, node in enumerate(self.nodes):
            parent = None if node.parent is None else self.nodes[node.parent] if node.parent < number else node
            fits = node.step == 0 if parent is None else parent is not node and node.step == parent.step + 1
            if not fits or node.row >= n_rows or node.step >= n_steps or (node.pruned_by or 0) >= n_nodes:
                raise TraceError(f"search: node {number} does not fit to its parent or its row")
        if any(number >= n_nodes for number in self.best) or not self.best:
            raise TraceError("search: a best hypothesis is not among the nodes")
        for array in self.arrays:
            array.setflags(write=False)

    @property
    def n_given(self) -> int:
        """The number of given tokens before the first written one."""
        return len(self.opening) - 1

    @property
    def rows(self) -> dict[Kind, np.ndarray]:
        """The rows of the kinds that were kept."""
        kinds: dict[Kind, np.ndarray | None] = {"decoder": self.decoder_rows, "cross": self.cross_rows}
        return {kind: rows for kind, rows in kinds.items() if rows is not None}

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The rows that were kept, and the mask where it is not simply causal."""
        arrays = (self.decoder_rows, self.cross_rows, self.decoder_reasons)
        return tuple(array for array in arrays if array is not None)

    def path(self, number: int) -> tuple[SearchNode, ...]:
        """The nodes from the first token to node `number`.

        Raises:
            OptionError: there is no such node.
        """
        whole_number("node", number, 0, len(self.nodes) - 1)
        path = [self.nodes[number]]
        while path[-1].parent is not None:
            path.append(self.nodes[path[-1].parent])
        return tuple(reversed(path))
