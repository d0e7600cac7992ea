"""An attribution at one place of a run: the map of a head, and a step in words."""

import numpy as np

from transformer_viz.analysis.word_pooling import noun
from transformer_viz.errors import OptionError
from transformer_viz.language import known
from transformer_viz.numbers_in_words import number_words, rounded_words
from transformer_viz.sentences.run_sentences import Sentence, of_run, say_sentence
from transformer_viz.terms import Head, place_words
from transformer_viz.trace.attention import combine_heads
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace

_NOTHING = 0.005
"""Nats that two places after the point do not show."""


def is_of_heads(trace: Trace, result: Attribution) -> bool:
    """Tells whether it has a number for each head, and can take the place of the weights; else it stands beside them."""
    attention = trace.attentions.get(result.kind)
    return attention is not None and result.values.ndim == 4 and result.values.shape[1] == attention.n_heads


def heads_of(trace: Trace, result: Attribution) -> np.ndarray:
    """float32 (layer, head, query, key) of the layers that the run has, where a result is of heads."""
    places = [_layer_place(result, layer) for layer in trace.attentions[result.kind].layers]
    return result.values[places].astype(np.float32, copy=False)


def map_of(result: Attribution, layer: int, head: Head) -> np.ndarray:
    """(query, key) at a layer and head, or of all heads as one where a result does not tell them apart."""
    if result.values.ndim == 2:
        return result.values
    heads = result.values[_layer_place(result, layer)]
    return heads[0] if len(heads) == 1 else combine_heads(heads, head)


def full(result: Attribution) -> float:
    """The number furthest from 0, over all layers and heads; 1 where all are 0."""
    return float(np.nanmax(np.abs(result.values), initial=0)) or 1.0


def step_words(trace: Trace, result: Attribution, layer: int, head: Head, step: int) -> Sentence:
    """Says what it means for a step, beside the step's own sentence.

    `Without `r` (token 12), `r` would be 6.21 nats less probable.`
    """
    row = map_of(result, layer, head)[step]
    if not np.isfinite(row).any():
        return ()
    key = int(np.nanargmax(row))
    token, place = of_run(trace.labels(result.kind)[1][key]), place_words(key, noun(trace))
    if result.is_signed:
        written, nats = of_run(trace.output_tokens[step]), float(row[key])
        if nats < _NOTHING:
            return say_sentence("Without any single one of them, {written} would be no less probable.", written=written)
        return say_sentence(
            "Without {token} ({place}), {written} would be {nats} nats less probable.",
            token=token,
            place=place,
            written=written,
            nats=number_words(nats, 2),
        )
    if row[key] <= 0:
        return ()
    most, title = rounded_words(row[key], 2), known(result.title)
    return say_sentence("Most by {title}: {token} ({place}), {most}.", title=title, token=token, place=place, most=most)


def norms_of_rows(trace: Trace, result: Attribution) -> np.ndarray:
    """(layer, head), of a result of heads: how much each takes from all keys together, in the mean of its rows."""
    return heads_of(trace, result).sum(-1).mean(-1)


def _layer_place(result: Attribution, layer: int) -> int:
    if layer not in result.layers:
        raise OptionError(f"{result.title} has no layer {layer}")
    return result.layers.index(layer)
