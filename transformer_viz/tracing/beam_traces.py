"""A recorded beam search made into Traces: the best hypothesis of each sentence, with the search in it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.beam import Beam, BeamResult
from transformer_viz.loaded_model import LoadedModel, Tokenizer
from transformer_viz.model import masks
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.hypotheses import Given, hypothesis_parts
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.search import Precision, Search, SearchNode
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.ranked import Ranking, rankings_of, steps_of
from transformer_viz.tracing.trace_builder import Padding, Provenance, Sentence, explained, not_finite, reason_of_masked
from transformer_viz.tracing.trace_size import BLOCK

_BLOCK = 1024
"""Nodes whose logits are compared at once."""


class RankedNodes:
    """What one sentence's search needs of its logits: they are looked at in blocks, and not all kept."""

    def __init__(self, n_candidates: int) -> None:
        self.n_candidates = n_candidates
        self.rankings: list[Ranking] = []
        self.places: list[int] = []
        """Of each node, how many tokens are more probable, or as probable with a lower id."""
        self.is_sound = True
        self._n_rows = 0

    def look(self, found: BeamResult, *, is_over: bool = False) -> None:
        """Looks at what is new, and takes its logits away, once that is a block."""
        pending = found.logits[self._n_rows :]
        if not pending or (not is_over and len(pending) * pending[0].numel() <= BLOCK):
            return
        logits = torch.stack(pending)
        self.is_sound &= bool((logits < torch.inf).all() & logits.isfinite().any(-1).all())
        self.rankings += rankings_of(logits, self.n_candidates)
        for start in range(len(self.places), len(found.nodes), _BLOCK):
            self._place([(node.row - self._n_rows, node.token) for node in found.nodes[start : start + _BLOCK]], logits)
        found.logits[self._n_rows :] = [logits.new_empty(0)] * len(pending)
        self._n_rows = len(found.logits)

    def _place(self, nodes: Sequence[tuple[int, int]], logits: Tensor) -> None:
        rows, token = logits[[row for row, _ in nodes]], torch.tensor([[token] for _, token in nodes])
        own, ids = rows.gather(1, token), torch.arange(rows.shape[1])
        self.places += ((rows > own) | ((rows == own) & (ids < token))).sum(1).tolist()


def traces_of(
    searches: Sequence[BeamResult],
    ranked: Sequence[RankedNodes],
    recorder: Recorder,
    checkpoint: LoadedModel,
    sentences: Sequence[Sentence],
    made: Provenance,
    how: Beam,
) -> list[Trace]:
    """One Trace a sentence."""
    recorded = _Recorded(recorder, ranked[0].n_candidates)
    traces = []
    for i, (found, seen, sentence) in enumerate(zip(searches, ranked, sentences, strict=True)):
        seen.look(found, is_over=True)
        if not seen.is_sound:
            raise not_finite(checkpoint)
        search = _search(found, seen, recorded, checkpoint, sentence, how)
        traces.append(_trace(i, search, found, recorded, checkpoint, sentence, made))
    return traces


class _Recorded:
    """What the recorder holds of all sentences, on the CPU."""

    def __init__(self, recorder: Recorder, n_candidates: int) -> None:
        self.n_candidates = n_candidates
        self.encoder = recorder.gathered("encoder", "weights")
        self.rows: dict[Kind, list[np.ndarray]] = {
            kind: [step.cpu().numpy() for step in recorder.steps(kind, "weights")] for kind in ("decoder", "cross")
        }
        self.opening = recorder.opening("decoder", "weights")
        """Of the pass over a prompt, (batch, layer, head, position, position), or None."""
        self.precision: Precision = "float16" if recorder.half else "float32"


def _search(
    found: BeamResult, seen: RankedNodes, recorded: _Recorded, checkpoint: LoadedModel, sentence: Sentence, how: Beam
) -> Search:
    tokenizer, start = checkpoint.tokenizer, checkpoint.model.start_id
    n_steps, n_given = 1 + max(node.step for node in found.nodes), sentence.n_given
    opening = sentence.prompt if start is None else [start]
    rows = {"decoder": _rows(found, recorded, "decoder", n_given + n_steps), "cross": None}
    if start is not None:
        rows["cross"] = _rows(found, recorded, "cross", len(sentence.source_ids))
    with_ids, name = not tokenizer.has_unique_labels, tokenizer.label
    return Search(
        nodes=_nodes(found, seen.places, tokenizer),
        best=tuple(found.best),
        decoder_rows=rows["decoder"],
        cross_rows=rows["cross"],
        alignment=tokenizer.known(sentence.source, n_steps).alignment,
        candidates=tuple(each.named(name) for each in seen.rankings),
        settings=_settings(how),
        opening=tuple(tokenizer.target_labels(opening)),
        opening_ids=tuple(opening) if with_ids else None,
        candidate_ids=tuple(tuple(each.ids) for each in seen.rankings) if with_ids else (),
        decoder_reasons=_windows(n_given + n_steps, checkpoint, rows["decoder"]),
    )


def _settings(how: Beam) -> dict[str, Any]:
    named = {"beam_size": how.size, "length_penalty": how.length_penalty, "n_best": how.n_best, "stop": how.stop}
    return named | ({"refill": True} if how.refill else {})


def _windows(n: int, checkpoint: LoadedModel, rows: np.ndarray | None) -> np.ndarray | None:
    """Why cells of the decoder are masked where that is not the future alone, uint8 (layer, head, query, key)."""
    sizes = checkpoint.model.sizes
    if "decoder" not in sizes.windows or rows is None:
        return None
    codes = explained("decoder", reason_of_masked("decoder", 0, n, Padding(), None), sizes, is_changed=False)
    codes = np.where(codes == Reason.UNKNOWN, np.uint8(0), codes)
    return np.broadcast_to(codes, (*rows.shape[1:3], n, n)).copy()


def _trace(
    i: int,
    search: Search,
    found: BeamResult,
    recorded: _Recorded,
    checkpoint: LoadedModel,
    sentence: Sentence,
    made: Provenance,
) -> Trace:
    tokenizer, n_source = checkpoint.tokenizer, len(sentence.source_ids)
    known, source_tokens = tokenizer.known(sentence.source, len(search.alignment)), tokenizer.source_labels(sentence.source_ids)
    is_padding = torch.arange(n_source)[None] >= n_source - sentence.padding.source
    reasons = masks.padding_reasons(is_padding, n_source)[0].numpy()
    encoder = None if recorded.encoder is None else _own(recorded.encoder[i, ..., :n_source, :n_source], recorded.precision)
    kinds: dict[Kind, np.ndarray] = {} if search.cross_rows is None and encoder is None else {"encoder": reasons}
    parts = hypothesis_parts(search, search.best[0], kinds, _given(i, found, recorded, tokenizer, sentence))
    if encoder is None:
        parts["mask_reasons"].pop("encoder", None)
    return Trace(
        source=sentence.source,
        source_tokens=tuple(source_tokens),
        source_letters=tuple(tokenizer.letters(source_tokens)),
        encoder_attentions=encoder,
        expected=known.expected,
        expected_tokens=known.expected_tokens,
        made_by=made.by,
        search=search,
        layers=made.layers,
        source_ids=None if tokenizer.has_unique_labels else tuple(sentence.source_ids),
        **parts,
    )


def _given(i: int, found: BeamResult, recorded: _Recorded, tokenizer: Tokenizer, sentence: Sentence) -> Given:
    """What the decoder did in the rows of a prompt before its last, which all hypotheses share."""
    n, whole = sentence.n_given, recorded.opening
    if n == 0:
        return Given()
    n_left = len(found.given) - n
    logits, ids = found.given[n_left:], list(sentence.prompt[1:])
    steps = steps_of(logits, ids, recorded.n_candidates, tokenizer.label, with_ids=not tokenizer.has_unique_labels)
    rows = slice(n_left, n_left + n)
    return Given(steps=steps, decoder=None if whole is None else _own(whole[i][..., rows, rows], recorded.precision))


def _nodes(found: BeamResult, places: Sequence[int], tokenizer: Tokenizer) -> tuple[SearchNode, ...]:
    texts, name = _texts(found, tokenizer), tokenizer.label
    return tuple(
        SearchNode(
            parent=node.parent,
            row=node.row,
            step=node.step,
            token=name(node.token),
            text=texts[number],
            log_probability=node.log_probability,
            total=node.total,
            score=node.score,
            rank=node.rank,
            place=places[number],
            state=node.state,
            pruned_by=node.pruned_by,
            token_id=None if tokenizer.has_unique_labels else node.token,
        )
        for number, node in enumerate(found.nodes)
    )


def _texts(found: BeamResult, tokenizer: Tokenizer) -> list[str]:
    """What the path to each node spells. The paths of two steps at a time: all of a wide search would fill a gigabyte."""
    texts: list[str] = []
    before: dict[int | None, list[int]] = {}
    paths: dict[int | None, list[int]] = {None: []}
    step = -1
    for number, node in enumerate(found.nodes):
        if node.step > step:
            before, paths, step = paths, {}, node.step
        paths[number] = [*before[node.parent], node.token]
        texts.append(tokenizer.text(paths[number]))
    return texts


def _rows(found: BeamResult, recorded: _Recorded, kind: Kind, width: int) -> np.ndarray | None:
    """The recorded rows of a sentence, (row, layer, head, width); None where this kind was not kept."""
    steps = recorded.rows[kind]
    if not steps:
        return None
    rows = np.zeros((len(found.rows), *steps[0].shape[1:3], width), dtype=recorded.precision)
    for number, (step, place) in enumerate(found.rows):
        # What stands before the sentence's own keys is the padding of a shorter prompt.
        row = steps[step][place]
        n_left = row.shape[-1] - step - 1 - (width - 1 - found.rows[-1][0]) if kind == "decoder" else 0
        own = row[..., n_left:][..., :width]
        rows[number, ..., : own.shape[-1]] = own
    return rows


def _own(tensor: Tensor, precision: Precision) -> np.ndarray:
    """A copy: a view would keep the whole batch in memory."""
    return np.array(tensor.cpu().numpy(), precision, order="C")
