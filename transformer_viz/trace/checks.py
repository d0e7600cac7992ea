"""Whether the parts of a Trace fit together; the first that do not are named."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from transformer_viz.errors import TraceError, listed
from transformer_viz.terms import Kind
from transformer_viz.trace import attribution
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.groups import check_groups
from transformer_viz.trace.search import PRECISIONS, Search, check_codes

if TYPE_CHECKING:
    from transformer_viz.trace.trace import Trace


def check(trace: "Trace") -> None:
    """Raises a TraceError that names the parts which do not fit together."""
    _check_lengths(trace)
    _check_ids(trace)
    _check_steps(trace)
    _check_fills(trace)
    check_groups(trace.groups)
    attribution.read(trace)
    for kind, attention in trace.attentions.items():
        _check_attention(kind, attention, may_be_nan=trace.mistake is not None)
    precisions = {attention.weights.dtype for attention in trace.attentions.values()}
    if len(precisions) > 1:
        raise TraceError(f"the kinds of attention are {listed(sorted(map(str, precisions)))}; one precision is needed for all")
    if trace.search is not None:
        _check_search(trace, trace.search)


def _check_lengths(trace: "Trace") -> None:
    n_steps = len(trace.steps) or trace.n_steps
    for name in ("target_tokens", "output_tokens", "alignment"):
        n = len(getattr(trace, name))
        is_unknown = name == "output_tokens" and n == 0 and not trace.steps
        if n != n_steps and not is_unknown:
            raise TraceError(f"{name} has {n} entries for {n_steps} steps")
    if len(trace.source_letters) != len(trace.source_tokens):
        raise TraceError(f"source_letters has {len(trace.source_letters)} entries for {len(trace.source_tokens)} source tokens")
    for t, key in enumerate(trace.alignment):
        if key is not None and not 0 <= key < len(trace.source_tokens):
            raise TraceError(f"alignment[{t}] is {key}; it is None, or a position below {len(trace.source_tokens)}")
    if not 0 <= trace.n_given <= len(trace.output_tokens):
        raise TraceError(f"n_given is {trace.n_given}; it is from 0 to the number of output_tokens, {len(trace.output_tokens)}")


def _check_ids(trace: "Trace") -> None:
    for side in ("source", "target", "output"):
        if (ids := getattr(trace, f"{side}_ids")) is None:
            continue
        n = len(getattr(trace, f"{side}_tokens"))
        if len(ids) != n or any(number < 0 for number in ids):
            raise TraceError(f"{side}_ids has {len(ids)} entries for {n} {side}_tokens, or a negative one")


def _check_steps(trace: "Trace") -> None:
    """Each says what was written."""
    for t, (step, token) in enumerate(zip(trace.steps, trace.output_tokens, strict=False)):
        if step.token != token:
            raise TraceError(f"steps[{t}] says {step.token[:40]!r} where output_tokens has {token[:40]!r}")
        if step.candidate_ids and len(step.candidate_ids) != len(step.candidates):
            raise TraceError(f"steps[{t}] has {len(step.candidate_ids)} ids for {len(step.candidates)} candidates")
        if trace.output_ids is not None and step.token_id not in (None, trace.output_ids[t]):
            raise TraceError(f"steps[{t}] says id {step.token_id} where output_ids has {trace.output_ids[t]}")


def _check_fills(trace: "Trace") -> None:
    """In the order of the source, each place once."""
    before = -1
    for fill in trace.fills:
        if not before < fill.place < len(trace.source_tokens):
            places = listed(fill.place for fill in trace.fills[:100])
            raise TraceError(f"fills are at {places}; ascending places below {len(trace.source_tokens)} are needed")
        before = fill.place
        if fill.candidate_ids and len(fill.candidate_ids) != len(fill.candidates):
            raise TraceError(
                f"the fill at {fill.place} has {len(fill.candidate_ids)} ids for {len(fill.candidates)} candidates"
            )


def _check_search(trace: "Trace", search: Search) -> None:
    """Any hypothesis must make a Trace of its own."""
    n_source = len(trace.source_tokens)
    if search.cross_rows is not None and search.cross_rows.shape[-1] != n_source:
        raise TraceError(f"search: cross-attention over {search.cross_rows.shape[-1]} keys for {n_source} source tokens")
    alike = [each for kind, each in trace.attentions.items() if kind != "decoder" or search.decoder_reasons is None]
    if any(attention.reasons.ndim != 2 for attention in alike):
        raise TraceError("search: a mask is not (query, key) for all heads alike")
    _check_given(trace, search)
    if {"decoder", "cross"} & set(trace.kinds) != set(search.rows):
        raise TraceError(f"search: it has rows of {listed(search.rows) or 'nothing'} in a run with {listed(trace.kinds)}")
    for kind, rows in search.rows.items():
        weights = trace.attentions[kind].weights
        if rows.dtype != weights.dtype or rows.shape[1:3] != weights.shape[:2]:
            raise TraceError(
                f"search: rows of {kind} are {rows.dtype} with {rows.shape[1]} layers and {rows.shape[2]} heads; "
                f"{weights.dtype} with {weights.shape[0]} and {weights.shape[1]} is needed"
            )


def _check_given(trace: "Trace", search: Search) -> None:
    """What all hypotheses share stands in this run, at its beginning."""
    n = search.n_given
    is_alike = trace.n_given == n and trace.output_tokens[:n] == search.opening[1:] and (not n or len(trace.steps) >= n)
    ids = None if trace.output_ids is None else trace.output_ids[:n]
    if not is_alike or (n and ids != (search.opening_ids and search.opening_ids[1:])):
        raise TraceError(
            f"search: its opening has {n + 1} tokens; a run with n_given {n} is needed whose output_tokens, output_ids and "
            "steps begin with the others of them"
        )


def _check_attention(kind: Kind, attention: Attention, *, may_be_nan: bool) -> None:
    weights, reasons, scores = attention.weights, attention.reasons, attention.scores
    want = (len(attention.queries), len(attention.keys))
    if weights.ndim != 4 or weights.shape[2:] != want or 0 in weights.shape:
        raise TraceError(
            f"{kind}: attention of shape {weights.shape} for {want[0]} query and {want[1]} key tokens; "
            f"(layer, head, {want[0]}, {want[1]}) is needed"
        )
    if weights.dtype not in PRECISIONS:
        raise TraceError(f"{kind}: attention is {weights.dtype}; {' or '.join(PRECISIONS)} is needed")
    numbers = attention.layers
    if len(numbers) != len(weights) or any(a >= b for a, b in pairwise((-1, *numbers))):
        raise TraceError(f"{kind}: layers are numbered {listed(numbers[:100])}; {len(weights)} ascending numbers are needed")
    if reasons.dtype != np.uint8 or reasons.shape not in (want, weights.shape):
        raise TraceError(f"{kind}: the mask is {reasons.dtype} {reasons.shape}; uint8 {want} is needed")
    check_codes(f"{kind}: the mask", reasons)
    # A number that is none is the lowest and the highest at once, so two cells are enough to look at.
    lowest, highest = weights.item(weights.argmin()), weights.item(weights.argmax())
    if not may_be_nan and not (math.isfinite(lowest) and math.isfinite(highest)):
        raise TraceError(f"{kind}: attention holds numbers that are not finite")
    if lowest < 0 or (math.isnan(lowest) and (weights < 0).any()):
        raise TraceError(f"{kind}: attention holds negative numbers")
    if scores is not None and (scores.dtype != np.float32 or scores.shape != weights.shape):
        raise TraceError(f"{kind}: the scores are {scores.dtype} {scores.shape}; float32 {weights.shape} is needed")
