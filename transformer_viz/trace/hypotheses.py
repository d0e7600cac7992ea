"""Makes the parts of a Trace that differ from hypothesis to hypothesis of a recorded beam search, attention included."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.search import Search
from transformer_viz.trace.steps import Step


def hypothesis_parts(
    search: Search,
    number: int,
    layers: Mapping[Kind, tuple[int, ...]],
    source_reasons: np.ndarray | None,
    *,
    given_steps: Sequence[Step] = (),
    given_decoder: np.ndarray | None = None,
    given_cross: np.ndarray | None = None,
) -> dict[str, Any]:
    """The fields of a Trace in which hypotheses differ; the attention is that of the decoder's kinds.

    Args:
        search: the search.
        number: of the node.
        layers: numbers of the recorded layers, of the kinds of which the search has rows.
        source_reasons: why source tokens are masked, uint8 (source,), where the search has cross-attention: a padded key is
            masked for every query.
        given_steps: the steps of the opening but for its last position, which all hypotheses share.
        given_decoder: self-attention of these positions (layer, head, position, position), or None.
        given_cross: cross-attention of these positions (layer, head, position, source), or None.
    """
    path = search.path(number)
    n_steps, rows = len(path), [node.row for node in path]
    n_rows = search.n_given + n_steps
    attentions: dict[Kind, Attention] = {}
    if search.decoder_rows is not None:
        reasons = search.decoder_reasons
        if reasons is None:
            reasons = (np.triu(np.ones((n_rows, n_rows)), 1) * int(Reason.FUTURE)).astype(np.uint8)
        reasons = np.ascontiguousarray(reasons[..., :n_rows, :n_rows])
        weights = _weights(given_decoder, search.decoder_rows[rows][..., :n_rows])
        attentions["decoder"] = Attention(weights=weights, reasons=reasons, layers=layers["decoder"])
    if search.cross_rows is not None and source_reasons is not None:
        reasons, weights = np.repeat(source_reasons[None], n_rows, 0), _weights(given_cross, search.cross_rows[rows])
        attentions["cross"] = Attention(weights=weights, reasons=reasons, layers=layers["cross"])
    tokens = tuple(node.token for node in path)
    steps = [
        Step(
            token=node.token,
            probability=float(np.exp(node.log_probability)),
            log_probability=node.log_probability,
            rank=node.place,
            candidates=search.candidates[node.row],
            token_id=node.token_id,
            candidate_ids=search.candidate_ids[node.row] if search.candidate_ids else (),
        )
        for node in path
    ]
    ids = tuple(node.token_id for node in path if node.token_id is not None)
    opening_ids = search.opening_ids if len(ids) == len(path) else None
    return {
        "text": path[-1].text,
        "target_tokens": (*search.opening, *tokens[:-1]),
        "output_tokens": (*search.opening[1:], *tokens),
        "steps": (*given_steps, *steps),
        "attentions": attentions,
        "finished": "end" if path[-1].state == "end" else "length",
        "alignment": (*(None,) * search.n_given, *search.alignment[:n_steps]),
        "n_given": search.n_given,
        "target_ids": None if opening_ids is None else (*opening_ids, *ids[:-1]),
        "output_ids": None if opening_ids is None else (*opening_ids[1:], *ids),
    }


def _weights(given: np.ndarray | None, recorded: np.ndarray) -> np.ndarray:
    """Recorded rows (step, layer, head, key) as (layer, head, row, key), below the given ones, which have no later keys."""
    rows = np.ascontiguousarray(np.moveaxis(recorded, 0, 2))
    if given is None or not given.shape[2]:
        return rows
    later = rows.shape[-1] - given.shape[-1]
    return np.concatenate([np.pad(given, [(0, 0)] * 3 + [(0, later)]), rows], 2)
