"""One head of a run, looked into: the run is read once more, in one pass, and every number of one query row is kept."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_viz.analysis.query_rows import padding
from transformer_viz.errors import OptionError, TransformerVizError, shortened
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Site, TapName, compose
from transformer_viz.schema import whole_number
from transformer_viz.terms import Kind
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import read_sources, read_targets
from transformer_viz.tracing.decode_request import DecodeRequest
from transformer_viz.tracing.edit_tap import changing_tap
from transformer_viz.tracing.token_ranks import steps_of

N_CANDIDATES = 5
"""Of each state that the logit lens reads."""
_STREAMS: tuple[TapName, ...] = ("entered", "residual_before", "residual_after", "added")
_OF_KEYS: Mapping[str, TapName] = {"keys": "key", "values": "value"}
_OF_ROWS: Mapping[str, TapName] = {
    "query": "query",
    "bias": "bias",
    "scores": "scores",
    "weights": "weights",
    "output": "heads",
}


def inside(reader: LoadedModel, trace: Trace, kind: Kind, layer: int, head: int, query: int) -> Inside:
    """Every number of one head for one query row of a run, from what enters to what the residual stream becomes.

    The run's own tokens are read once more in one pass (teacher forcing), under its edits and its mistake.

    Args:
        reader: what made the run: from `load_checkpoint` or `load_model`, with the same switches.
        trace: the run.
        kind: `encoder`, `decoder` or `cross`.
        layer: by its number, from 0.
        head: from 0.
        query: the row, from 0.

    Raises:
        OptionError: the run has no such head or row, or it was not made by this model.
        DeviceError: out of memory.
    """
    attention = trace.attentions[kind]
    attention.layer_index(layer)
    whole_number("head", head, 0, attention.n_heads - 1)
    whole_number("query", query, 0, len(attention.queries) - 1)
    request = _request(reader, trace)
    with devices.running(reader):
        found = _read(request, trace, kind, layer, head, query)
    if not found.is_of(attention):
        raise _not_its_run(reader, "it computes other weights for the same tokens")
    return found


class _RowTap:
    """Keeps what one attention hands over, and one row of the decoder's states.

    Of the last layer's state the rows that nobody asks for give way to those states, so that they too go through the final norm
    and the output; where there are too few rows, they stand in further sentences of the batch.
    """

    names = frozenset((*_STREAMS, *_OF_KEYS.values(), *_OF_ROWS.values(), "state"))

    def __init__(self, site: Site, row: int, last_layer: int | None) -> None:
        self.site, self.row, self.last_layer = site, row, last_layer
        self.seen: dict[TapName, Tensor] = {}
        self.states: list[Tensor] = []
        self.places: list[tuple[int, int]] = []
        """Of each state, sentence and row of its logits."""

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


def _read(request: DecodeRequest, trace: Trace, kind: Kind, layer: int, head: int, row: int) -> Inside:
    checkpoint, model = request.checkpoint, request.checkpoint.model
    layers = [numbers[-1] for each, numbers in model.sizes.layers.items() if each != "encoder"]
    tap = _RowTap(Site(kind, layer), row, None if kind == "encoder" else max(layers))
    both, lens = compose(changing_tap(request.edits, request.mistake, model.sizes), tap), None
    if kind == "encoder" or request.forced is None:
        read_sources(request, both)
    else:
        logits = read_targets(request, request.forced, both).logits
        # What each state would write. Some readers hand over no states.
        if trace.output_tokens and tap.places:
            tokenizer, ids = checkpoint.tokenizer, trace.output_ids
            written = tokenizer.named("Token", [trace.output_tokens[row]])[0] if ids is None else ids[row]
            of_states, with_ids = torch.stack([logits[place] for place in tap.places]).cpu(), not tokenizer.has_unique_labels
            lens = steps_of(of_states, [written] * len(of_states), N_CANDIDATES, tokenizer.label, with_ids=with_ids)
    # The row of one head, out of what is (1, head, query, …), (1, head, key, …) or (1, query, d_model). What is the same for
    # all heads may be there once.
    arrays: dict[str, Tensor | None] = {name: tap.seen[name][0, row] for name in _STREAMS if name in tap.seen}
    for name, what in {**_OF_KEYS, **_OF_ROWS}.items():
        # T5 adds zeros where it has no bias.
        if what in tap.seen and (what != "bias" or tap.seen[what].any()):
            heads = tap.seen[what][0]
            one = heads[head if len(heads) > 1 or name in _OF_KEYS else 0]
            arrays[name] = one if name in _OF_KEYS else one[row]
    around = model.surroundings(kind, layer)
    if around.scale is None:
        arrays.pop("scores", None)
    if around.out is not None:
        out = around.out[head]
        arrays |= {"out": out, "projected": tap.seen["heads"][0, head, row] @ out, "out_bias": around.out_bias}
    norm: Any = around.norm
    if norm is not None:
        arrays |= {"norm_weight": norm.weight, "norm_bias": norm.bias}
    return Inside(
        **trace.inside_labels(kind, row),
        **{name: None if array is None else array.detach().cpu().numpy().copy() for name, array in arrays.items()},
        kind=kind,
        layer=layer,
        head=head,
        row=row,
        scale=around.scale,
        softcap=around.softcap,
        reasons=trace.attentions[kind].head_reasons(layer, head)[row].copy(),
        norm=around.placement,
        norm_kind=norm and norm.kind,
        norm_epsilon=norm and norm.epsilon,
        lens=lens,
    )


def _request(reader: LoadedModel, trace: Trace) -> DecodeRequest:
    """The run's tokens, to be read as they were."""
    n_given = trace.n_given if reader.model.kind.has_prompt else 0
    n_own = trace.n_steps - int(padding(trace, "target")[n_given:].sum())
    read = (trace.target_ids or trace.target_tokens)[n_given + 1 : n_own]
    writes = reader.model.kind.writes
    try:
        request = DecodeRequest.of(
            reader,
            trace.source,
            tuple(read) if writes else None,
            pad_to=len(trace.source_tokens) or n_given + 1,
            pad_target_to=trace.n_steps - n_given if writes else None,
            edits=trace.edits,
            mistake=trace.mistake,
        )
    except TransformerVizError as error:
        raise _not_its_run(reader, shortened(str(error), 200)) from error
    tokenizer, sentence = reader.tokenizer, request.sentences[0]
    sides = [(trace.source_tokens, trace.source_ids, sentence.source_ids, tokenizer.source_labels)]
    if sentence.prompt:
        ids = trace.target_ids and trace.target_ids[: n_given + 1]
        sides.append((trace.target_tokens[: n_given + 1], ids, sentence.prompt, tokenizer.target_labels))
    # Token by token those of the run.
    if any(labels(own) != list(tokens) if ids is None else list(own) != list(ids) for tokens, ids, own, labels in sides):
        raise _not_its_run(reader, "it reads other tokens")
    return request


def _not_its_run(reader: LoadedModel, why: str) -> OptionError:
    return OptionError(
        f"This run cannot be looked into with {reader.name}: {why}. Give the model that made it, with the same switches, "
        "and the run as it was decoded."
    )
