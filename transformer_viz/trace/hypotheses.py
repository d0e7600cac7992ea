"""One hypothesis of a recorded beam search as a run of its own, with its own attention."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from transformer_viz.errors import OptionError
from transformer_viz.terms import Kind, Reason
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
    return replace(trace, search=None, **hypothesis_parts(_search(trace), number, trace.mask_reasons))


def hypothesis_parts(search: Search, number: int, reasons: Mapping[Kind, np.ndarray]) -> dict[str, Any]:
    """The fields of a Trace in which hypotheses differ.

    Args:
        search: the search.
        number: of the node.
        reasons: masks of the same source, at least those of the encoder or of cross-attention where the search has
            the latter: a padded key is masked for every query, so one row tells all.
    """
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
        "mask_reasons": _masks(search, n_steps, reasons),
        "finished": "end" if path[-1].state == "end" else "length",
        "alignment": search.alignment[:n_steps],
    }


def _masks(search: Search, n_steps: int, reasons: Mapping[Kind, np.ndarray]) -> dict[Kind, np.ndarray]:
    found: dict[Kind, np.ndarray] = {"encoder": reasons["encoder"]} if "encoder" in reasons else {}
    if "decoder" in search.rows:
        found["decoder"] = (np.triu(np.ones((n_steps, n_steps)), 1) * int(Reason.FUTURE)).astype(np.uint8)
    if "cross" in search.rows:
        source = reasons["encoder"] if "encoder" in reasons else reasons["cross"]
        found["cross"] = np.repeat(source[:1], n_steps, 0)
    return found


def _search(trace: Trace) -> Search:
    if trace.search is None:
        raise OptionError('this run was no beam search; decode with strategy="beam"')
    return trace.search
