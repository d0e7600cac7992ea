"""Which known mistake looks like what was seen. From the weights alone: nobody says which mistake was made."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.mask_checks.result import Cause
from transformer_viz.model import masks
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.terms import Kind


@dataclass(frozen=True)
class Seen:
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
        """By the rule: bool (batch, query, key)."""
        if kind == "decoder":
            return masks.masked(masks.decoder_reasons(self.target_padding))
        return masks.masked(masks.padding_reasons(self.padded_keys(kind), self.padded_queries(kind).shape[1]))

    def looked(self, kind: Kind) -> Tensor:
        """bool (batch, query, key): where any head of any layer puts any weight; nowhere, where there is no such attention."""
        if kind not in self.weights:
            return torch.zeros_like(self.forbidden(kind))
        return (self.weights[kind] > 0).flatten(1, 2).any(1)


def named(*names: str) -> tuple[Cause, ...]:
    """These mistakes (see `model.mistakes`) in words."""
    return tuple(Cause(name, MISTAKES[name].title, MISTAKES[name].fixed_code) for name in names)


def causes(seen: Seen) -> tuple[Cause, ...]:
    """What looks like this; none where nothing known does."""
    return named(*_names(seen))


def _names(seen: Seen) -> tuple[str, ...]:
    if any(bool(weights.isnan().any()) for weights in seen.weights.values()):
        return ("padded-queries-nan",)
    if _is_inverted(seen):
        return ("wrong-sign",)
    return tuple(cause for cause in (_future_cause(seen), _padding_cause(seen)) if cause)


def _is_inverted(seen: Seen) -> bool:
    """Real queries that have something masked look at nothing but that."""
    forbidden, looked = seen.forbidden("decoder"), seen.looked("decoder")
    rows = forbidden.any(-1) & ~seen.target_padding
    on_allowed = (looked & ~forbidden).any(-1)[rows]
    on_forbidden = (looked & forbidden).any(-1)[rows]
    return bool(rows.any()) and bool(on_forbidden.all()) and not bool(on_allowed.any())


def _future_cause(seen: Seen) -> str | None:
    real = ~seen.target_padding
    pairs = real[:, :, None] & real[:, None, :]
    n = real.shape[1]
    ahead = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    possible = (pairs & (ahead > 0)).any(0)
    looked = (seen.looked("decoder") & pairs & (ahead > 0)).any(0)
    if not bool(looked.any()):
        return None
    if torch.equal(looked, possible & (ahead == 1)):
        return "causal-off-by-one"
    return "no-causal" if bool((looked == possible).all()) else None


def _padding_cause(seen: Seen) -> str | None:
    of_keys, of_queries = seen.source_padding, seen.source_padding
    encoder, cross = seen.looked("encoder"), seen.looked("cross")
    real_to_padding = bool((encoder & ~of_queries[:, :, None] & of_keys[:, None, :]).any())
    padding_to_padding = bool((encoder & of_queries[:, :, None] & of_keys[:, None, :]).any())
    padding_to_real = bool((encoder & of_queries[:, :, None] & ~of_keys[:, None, :]).any())
    if real_to_padding and not padding_to_padding:
        return "invalid-by-invalid" if padding_to_real else "wrong-axis"
    cross_to_padding = bool((cross & ~seen.target_padding[:, :, None] & of_keys[:, None, :]).any())
    return "source-mask-forgotten" if cross_to_padding and not real_to_padding else None
