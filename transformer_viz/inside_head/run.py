"""`inspect_head` reads a run again in one pass, and records every number of one head for one query row."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_viz.addresses import HeadAddress, find_head
from transformer_viz.analysis.query_rows import padding
from transformer_viz.decoding.run import read
from transformer_viz.errors import NotSeenError, OptionError, TransformerVizError, join_names
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Site, TapName, compose
from transformer_viz.schema import whole_number
from transformer_viz.text_display import shorten
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode_request import DecodeRequest
from transformer_viz.tracing.edit_tap import changing_tap
from transformer_viz.tracing.token_ranks import steps_of

N_CANDIDATES = 5
"""Candidates that the logit lens keeps for each state."""
_STREAMS: tuple[TapName, ...] = ("entered", "residual_before", "residual_after", "added")
_OF_KEYS: Mapping[str, TapName] = {"keys": "key", "values": "value"}
_OF_ROWS: Mapping[str, TapName] = {
    "query": "query",
    "bias": "bias",
    "scores": "scores",
    "weights": "weights",
    "output": "heads",
}


def inspect_head(model: LoadedModel, trace: Trace, head: str | HeadAddress, query: int) -> Inside:
    """Records every number of one head for one query row, from the vector that enters to the residual stream after it.

    The run's tokens are read again in one pass (teacher forcing), with its edits and its mistake in force.

    Args:
        model: the model that made the run, from `load_checkpoint` or `load_model`, with the same options.
        trace: the run.
        head: the head, such as `cross.2.3`.
        query: the row of its map, from 0.

    Returns:
        The numbers as arrays: `weights` (key,), `query` (d_k,), `keys` (key, d_k), `values` (key, d_v), `output` (d_v,) …

    Raises:
        OptionError: the run has no such head or row, or it was not made by this model.
        DeviceError: out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> inside = tv.inspect_head(model, trace, "cross.1.1", query=2)
        >>> inside
        <Inside cross.1.1:3: 7 keys, d_k 32, d_v 32>
        >>> inside.keys.shape  # (key, d_k)
        (7, 32)

    References:
        Vaswani et al. (2017), "Attention Is All You Need": https://arxiv.org/abs/1706.03762
    """
    place = find_head(head, trace.grid)
    kind, layer, number, attention = place.kind, place.layer, place.head, trace.attentions[place.kind]
    whole_number("query", query, 0, len(attention.queries) - 1)
    request, reader, tokenizer = _request(model, trace), model.network, model.tokenizer
    reads_target = kind != "encoder" and request.is_forced
    last_layer = max(numbers[-1] for of, numbers in reader.sizes.layers.items() if of != "encoder") if reads_target else None
    tap, lens = _RowTap(Site(kind, layer), query, last_layer), None
    both = compose(changing_tap(request.edits, request.mistake, reader.sizes), tap)
    with devices.running(model):
        if not reads_target:
            reader.encode(request.batch.source, request.batch.paddings[0], tap=both)
        else:
            logits = read(reader, request.batch, both)
            # None where the reader hands over no states, or nobody knows what was written.
            if trace.output_tokens and tap.places:
                written = (
                    tokenizer.ids_of("Token", [trace.output_tokens[query]])[0]
                    if trace.output_ids is None
                    else trace.output_ids[query]
                )
                states = torch.stack([logits[place] for place in tap.places]).cpu()
                with_ids = not tokenizer.has_unique_labels
                lens = steps_of(states, [written] * len(states), N_CANDIDATES, tokenizer.label, with_ids=with_ids)
        seen, around = tap.seen, reader.attention_block(kind, layer)
        if lacking := [name for name, what in {"query": "query", **_OF_KEYS}.items() if what not in seen]:
            raise NotSeenError(
                f"The inside of a head is not available for {model.name}: its attention is seen where weights meet "
                f"values, and its {join_names(lacking)} are not known there. Weights, masks, edits and occlusion are."
            )
        arrays: dict[str, Tensor | None] = {name: seen[name][0, query] for name in _STREAMS if name in seen}
        arrays |= {name: seen[what][0, number] for name, what in _OF_KEYS.items() if what in seen}
        for name, what in _OF_ROWS.items():
            # T5 adds zeros where it has no bias; without a scale nobody can say how a score came about.
            if what in seen and (what != "bias" or seen[what].any()) and (what != "scores" or around.scale is not None):
                heads = seen[what][0]
                arrays[name] = heads[number if len(heads) > 1 else 0][query]  # what is the same for all heads may be there once
        if around.out is not None:
            out = around.out[number]
            arrays |= {"out": out, "projected": seen["heads"][0, number, query] @ out, "out_bias": around.out_bias}
        norm = around.norm
        if norm is not None:
            arrays |= {"norm_weight": norm.weight, "norm_bias": norm.bias}
        copies: dict[str, Any] = {
            name: None if array is None else array.detach().cpu().numpy().copy() for name, array in arrays.items()
        }
    result = Inside(
        **trace.inside_labels(kind, query),
        **copies,
        kind=kind,
        layer=layer,
        head=number,
        row=query,
        scale=around.scale,
        softcap=around.softcap,
        reasons=attention.head_reasons(layer, number)[query].copy(),
        norm=around.placement,
        norm_kind=None if norm is None else norm.kind,
        norm_epsilon=None if norm is None else norm.epsilon,
        lens=lens,
    )
    if not result.is_of(attention):
        raise _not_its_run(model, "it computes other weights for the same tokens")
    return result


class _RowTap:
    """Keeps the intermediates of one attention, and one row of the decoder's state after each layer.

    These states must go through the final norm and the output too. So they replace rows of the last layer's state that are not
    needed; where there are too few of them, further sentences are added to the batch.
    """

    names = frozenset((*_STREAMS, *_OF_KEYS.values(), *_OF_ROWS.values(), "state"))

    def __init__(self, site: Site, row: int, last_layer: int | None) -> None:
        self.site, self.row, self.last_layer = site, row, last_layer
        self.seen: dict[TapName, Tensor] = {}
        self.states: list[Tensor] = []
        self.places: list[tuple[int, int]] = []
        """For each state the sentence and the row of its logits."""

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name != "state":
            if site == self.site:
                self.seen[name] = value
            return value
        if site.kind == "encoder" or self.last_layer is None:
            return value
        self.states.append(value[0, self.row])
        if site.layer != self.last_layer:
            return value
        n_rows, *earlier = value.shape[1], *self.states[:-1]
        free = [(0, row) for row in range(n_rows) if row != self.row]
        n_more = 0 if len(earlier) <= len(free) else -(-len(earlier) // n_rows)
        if n_more:
            free = [(1 + number // n_rows, number % n_rows) for number in range(len(earlier))]
        together = torch.cat([value, value.new_zeros(n_more, *value.shape[1:])])
        self.places = [*free[: len(earlier)], (0, self.row)]
        for place, state in zip(self.places, earlier, strict=False):
            together[place] = state
        return together


def _request(model: LoadedModel, trace: Trace) -> DecodeRequest:
    """The run's tokens, to be read as they were; an OptionError where this model did not read them so."""
    first = trace.written.start
    n_own = trace.n_steps - int(padding(trace, "target")[first:].sum())
    given = (trace.target_ids or trace.target_tokens)[first + 1 : n_own]
    writes = model.network.kind.writes
    try:
        request = DecodeRequest.of(
            model,
            trace.source,
            tuple(given) if writes else None,
            pad_to=len(trace.source_tokens) or first + 1,
            pad_target_to=trace.n_steps - first if writes else None,
            edits=trace.edits,
            mistake=trace.mistake,
        )
    except TransformerVizError as error:
        raise _not_its_run(model, shorten(str(error), 200)) from error
    tokenizer, batch = model.tokenizer, request.batch
    opening = slice(0, first + 1)
    read_ids = trace.target_ids and trace.target_ids[opening]
    sides = [
        (trace.source_tokens, trace.source_ids, batch.ids("source", 0), tokenizer.source_labels),
        (
            trace.target_tokens[opening],
            read_ids,
            batch.ids("target", 0)[opening],
            tokenizer.target_labels,
        ),
    ]
    for tokens, ids, own, labels in sides:
        if list(own) != list(ids) if ids is not None else labels(own) != list(tokens):
            raise _not_its_run(model, "it reads other tokens")
    return request


def _not_its_run(model: LoadedModel, why: str) -> OptionError:
    return OptionError(
        f"This run cannot be looked into with {model.name}: {why}. Give the model that made it, with the same switches, "
        "and the run as it was decoded."
    )
