"""One hypothesis of a recorded beam search as a run of its own, with its own attention."""

from dataclasses import replace
from typing import Any

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.terms import Reason
from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Step, Trace
from transformer_viz.vocabulary import START


def hypothesis(trace: Trace, i: int) -> Trace:
    """The i-th best finished hypothesis, 0 = the best.

    Raises:
        OptionError: the run was no beam search, or has fewer hypotheses.
    """
    search = _search(trace)
    if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < len(search.best):
        raise OptionError(f"hypothesis {i!r} is not there; this search has 0 to {len(search.best) - 1}")
    return at_node(trace, search.best[i])


def at_node(trace: Trace, number: int) -> Trace:
    """The run up to any node of the search, pruned ones too.

    Raises:
        OptionError: the run was no beam search, or has no such node.
    """
    search = _search(trace)
    reasons = trace.mask_reasons["encoder"]
    return replace(trace, search=None, **hypothesis_parts(search, number, reasons))


def hypothesis_parts(search: Search, number: int, encoder_reasons: np.ndarray) -> dict[str, Any]:
    """The fields of a Trace in which hypotheses differ."""
    path = search.path(number)
    n_steps = len(path)
    decoder, cross = search.attention(number)
    tokens = tuple(node.token for node in path)
    return {
        "text": path[-1].text,
        "target_tokens": (START, *tokens[:-1]),
        "output_tokens": tokens,
        "steps": tuple(
            Step(
                token=node.token,
                probability=float(np.exp(node.log_probability)),
                log_probability=node.log_probability,
                rank=node.place,
                candidates=search.candidates[node.row],
            )
            for node in path
        ),
        "decoder_attentions": decoder,
        "cross_attentions": cross,
        "mask_reasons": {
            "encoder": encoder_reasons,
            "decoder": (np.triu(np.ones((n_steps, n_steps)), 1) * int(Reason.FUTURE)).astype(np.uint8),
            # A padded key is masked for every query: each row is the encoder's.
            "cross": np.repeat(encoder_reasons[:1], n_steps, 0),
        },
        "finished": "end" if path[-1].state == "end" else "length",
        "alignment": search.alignment[:n_steps],
    }


def _search(trace: Trace) -> Search:
    if trace.search is None:
        raise OptionError('this run was no beam search; decode with strategy="beam"')
    return trace.search
