"""Finds the known mistakes that would explain a leak, from the weights alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.mask_checks.result import Cause
from transformer_viz.model import masks
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.terms import Kind


@dataclass(frozen=True)
class ObservedWeights:
    """Weights of one padded, teacher-forced batch, and what of it is padding.

    Attributes:
        weights: of each kind that the model has (batch, layer, head, query, key).
        source_padding: bool (batch, source).
        target_padding: bool (batch, target).
    """

    weights: dict[Kind, Tensor]
    source_padding: Tensor
    target_padding: Tensor

    def padded_queries(self, kind: Kind) -> Tensor:
        """bool (batch, query)."""
        return self.source_padding if kind == "encoder" else self.target_padding

    def padded_keys(self, kind: Kind) -> Tensor:
        """bool (batch, key)."""
        return self.target_padding if kind == "decoder" else self.source_padding

    def forbidden(self, kind: Kind) -> Tensor:
        """The keys that the rule forbids, bool (batch, query, key)."""
        if kind == "decoder":
            return masks.decoder_reasons(self.target_padding) > 0
        return masks.padding_reasons(self.padded_keys(kind), self.padded_queries(kind).shape[1]) > 0

    def looked(self, kind: Kind) -> Tensor:
        """bool (batch, query, key): where any head of any layer puts any weight; nowhere, where there is no such attention."""
        if kind not in self.weights:
            return torch.zeros_like(self.forbidden(kind))
        return (self.weights[kind] > 0).flatten(1, 2).any(1)


NO_BORDERS = Cause(
    "no-borders",
    "Sequences packed without borders",
    "masked = future | (sequence_of[:, None] != sequence_of[None, :])  # which of the packed sequences each position is of",
)
"""Each sentence of a batch sees those before it. Our models pack nothing, so that it is none of their mistakes."""


def causes_of(*names: str) -> tuple[Cause, ...]:
    """These mistakes (see `model.mistakes`) in words."""
    return tuple(Cause(name, MISTAKES[name].title, MISTAKES[name].fixed_code) for name in names)


def likely_causes(seen: ObservedWeights) -> tuple[Cause, ...]:
    """The known mistakes that look like this; empty where none does."""
    if any(bool(weights.isnan().any()) for weights in seen.weights.values()):
        return causes_of("padded-queries-nan")
    forbidden, decoder, real = seen.forbidden("decoder"), seen.looked("decoder"), ~seen.target_padding
    # Real queries that have something masked look at nothing but that.
    rows = forbidden.any(-1) & real
    on_allowed, on_forbidden = (decoder & ~forbidden).any(-1)[rows], (decoder & forbidden).any(-1)[rows]
    if bool(rows.any()) and bool(on_forbidden.all()) and not bool(on_allowed.any()):
        return causes_of("wrong-sign")
    names: list[str] = []
    n = real.shape[1]
    ahead = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    is_later = real[:, :, None] & real[:, None, :] & (ahead > 0)
    possible, looked = is_later.any(0), (decoder & is_later).any(0)
    if bool(looked.any()):
        if torch.equal(looked, possible & (ahead == 1)):
            names.append("causal-off-by-one")
        elif bool((looked == possible).all()):
            names.append("no-causal")
    encoder, cross, padding = seen.looked("encoder"), seen.looked("cross"), seen.source_padding
    of_queries, of_keys = padding[:, :, None], padding[:, None, :]
    real_to_padding = bool((encoder & ~of_queries & of_keys).any())
    if real_to_padding and not bool((encoder & of_queries & of_keys).any()):
        padding_to_real = bool((encoder & of_queries & ~of_keys).any())
        names.append("invalid-by-invalid" if padding_to_real else "wrong-axis")
    elif not real_to_padding and bool((cross & real[:, :, None] & of_keys).any()):
        names.append("source-mask-forgotten")
    return causes_of(*names)
