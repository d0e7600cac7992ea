"""A recorded beam search made into Traces: the best hypothesis of each sentence, with the search in it."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.beam import Beam, BeamResult
from transformer_viz.model import masks
from transformer_viz.trace.hypotheses import hypothesis_parts
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.search import Precision, Search, SearchNode
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.ranked import candidates_of
from transformer_viz.tracing.trace_builder import Provenance, Sentence, check_finite
from transformer_viz.vocabulary import END, PAD

_BLOCK = 1024
"""Nodes whose logits are compared at once."""


def traces_of(
    searches: Sequence[BeamResult],
    recorder: Recorder,
    checkpoint: Checkpoint,
    sentences: Sequence[Sentence],
    made: Provenance,
    how: Beam,
    n_candidates: int,
) -> list[Trace]:
    """One Trace a sentence."""
    encoder = recorder.gathered("encoder", "weights")
    decoder = [step.cpu().numpy() for step in recorder.steps("decoder", "weights")]
    cross = [step.cpu().numpy() for step in recorder.steps("cross", "weights")]
    precision: Precision = "float16" if recorder.half else "float32"
    token_of = checkpoint.task.target_vocabulary.tokens.__getitem__
    traces = []
    for i, (found, sentence) in enumerate(zip(searches, sentences, strict=True)):
        n_source = len(sentence.source_tokens)
        logits = torch.stack(found.logits)
        check_finite(logits, checkpoint)
        n_steps = 1 + max(node.step for node in found.nodes)
        search = Search(
            nodes=_nodes(found, checkpoint),
            best=tuple(found.best),
            decoder_rows=_rows(found, decoder, n_steps, precision),
            cross_rows=_rows(found, cross, n_source, precision),
            alignment=tuple(checkpoint.task.alignment(checkpoint.task.read(sentence.source), n_steps)),
            candidates=candidates_of(logits, n_candidates, token_of),
            settings={"beam_size": how.size, "length_penalty": how.length_penalty, "n_best": how.n_best, "stop": how.stop},
        )
        own = None if encoder is None else _own(encoder[i, ..., :n_source, :n_source], precision)
        traces.append(_trace(search, own, checkpoint, sentence, made))
    return traces


def _trace(search: Search, encoder: np.ndarray | None, checkpoint: Checkpoint, sentence: Sentence, made: Provenance) -> Trace:
    task = checkpoint.task
    answer = task.answer(task.read(sentence.source))
    source_padding = torch.tensor([[token == PAD for token in sentence.source_tokens]])
    reasons = masks.padding_reasons(source_padding, len(sentence.source_tokens))[0].numpy()
    parts = hypothesis_parts(search, search.best[0], {"encoder": reasons})
    if encoder is None:
        del parts["mask_reasons"]["encoder"]
    return Trace(
        source=sentence.source,
        source_tokens=tuple(sentence.source_tokens),
        source_letters=tuple(task.letters(sentence.source_tokens)),
        encoder_attentions=encoder,
        expected=None if answer is None else task.join(answer),
        expected_tokens=None if answer is None else (*answer, END),
        made_by=made.by,
        search=search,
        layers=made.layers,
        **parts,
    )


def _nodes(found: BeamResult, checkpoint: Checkpoint) -> tuple[SearchNode, ...]:
    tokens = checkpoint.task.target_vocabulary.tokens
    texts, places = _texts(found, tokens, checkpoint), _places(found)
    return tuple(
        SearchNode(
            parent=node.parent,
            row=node.row,
            step=node.step,
            token=tokens[node.token],
            text=texts[number],
            log_probability=node.log_probability,
            total=node.total,
            score=node.score,
            rank=node.rank,
            place=places[number],
            state=node.state,
            pruned_by=node.pruned_by,
        )
        for number, node in enumerate(found.nodes)
    )


def _texts(found: BeamResult, tokens: Sequence[str], checkpoint: Checkpoint) -> list[str]:
    """What the path to each node spells. The paths of two steps at a time: all of a wide search would fill a gigabyte."""
    texts: list[str] = []
    before: dict[int | None, list[str]] = {}
    paths: dict[int | None, list[str]] = {None: []}
    step = -1
    for number, node in enumerate(found.nodes):
        if node.step > step:
            before, paths, step = paths, {}, node.step
        paths[number] = [*before[node.parent], tokens[node.token]]
        texts.append(checkpoint.task.join(paths[number]))
    return texts


def _places(found: BeamResult) -> list[int]:
    """Of each node, how many tokens are more probable, or as probable with a lower id. In blocks, which bound the memory."""
    places: list[int] = []
    for start in range(0, len(found.nodes), _BLOCK):
        block = found.nodes[start : start + _BLOCK]
        logits = torch.stack([found.logits[node.row] for node in block])
        token = torch.tensor([[node.token] for node in block])
        own, ids = logits.gather(1, token), torch.arange(logits.shape[1])
        places += ((logits > own) | ((logits == own) & (ids < token))).sum(1).tolist()
    return places


def _rows(found: BeamResult, steps: list[np.ndarray], width: int, precision: Precision) -> np.ndarray | None:
    """The recorded rows of a sentence, (row, layer, head, width); None where this kind was not kept."""
    if not steps:
        return None
    first = steps[0]
    rows = np.zeros((len(found.rows), *first.shape[1:3], width), dtype=precision)
    for number, (step, place) in enumerate(found.rows):
        row = steps[step][place]
        n = min(width, row.shape[-1])
        rows[number, ..., :n] = row[..., :n]
    return rows


def _own(tensor: Tensor, precision: Precision) -> np.ndarray:
    """A copy: a view would keep the whole batch in memory."""
    return np.array(tensor.cpu().numpy(), precision, order="C")
