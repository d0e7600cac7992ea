"""The beginning of a run that is too long to be shown as a whole."""

from dataclasses import replace

from transformer_viz.trace import limits
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Trace

_LEAST = 8


def window(trace: Trace, most_weights: int) -> Trace:
    """The run with as many of its first tokens, on either side, as have so many weights; the run itself where all have.

    What later keys got is not in it: such rows do not sum to 1.
    """
    n = max(len(trace.source_tokens), trace.n_steps)
    shown = trace
    while limits.n_weights(shown) > most_weights and n > _LEAST:
        n = max(_LEAST, int(n * 0.8))
        shown = _first(trace, n)
    return shown


def _first(trace: Trace, n: int) -> Trace:
    def cut(attention: Attention) -> Attention:
        scores = attention.scores
        return Attention(
            weights=attention.weights[..., :n, :n].copy(),
            reasons=attention.reasons[..., :n, :n].copy(),
            scores=None if scores is None else scores[..., :n, :n].copy(),
            layers=attention.layers,
        )

    n_source = min(n, len(trace.source_tokens))
    ids = {
        name: None if (own := getattr(trace, name)) is None else own[:n] for name in ("source_ids", "target_ids", "output_ids")
    }
    inside = lambda keys: tuple(None if key is None or key >= n_source else key for key in keys)  # noqa: E731
    return replace(
        trace,
        source_tokens=trace.source_tokens[:n],
        target_tokens=trace.target_tokens[:n],
        output_tokens=trace.output_tokens[:n],
        steps=trace.steps[:n],
        alignment=inside(trace.alignment[:n]),
        source_letters=inside(trace.source_letters[:n]),
        attentions={kind: cut(attention) for kind, attention in trace.attentions.items()},
        n_given=min(trace.n_given, len(trace.output_tokens[:n])),
        fills=tuple(fill for fill in trace.fills if fill.place < n),
        search=None,
        groups={},
        insides=(),
        attributions={},
        expected_tokens=None,
        expected=None,
        **ids,
    )
