"""The fixed numbers around one layer's attention: the scale of the scores, the output projection, the norm."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from transformer_viz.model.config import NormPlacement

if TYPE_CHECKING:
    from torch import Tensor

NormKind = Literal["layer", "rms"]


@dataclass(frozen=True)
class Norm:
    """γ ⊙ (u − mean u) / √(variance u + ε) + β, or without the mean (RMSNorm); None = there is none of γ or β.

    Attributes:
        kind: `layer`, or `rms`, which takes no mean away.
        weight: γ, (d_model,).
        bias: β, (d_model,).
        epsilon: ε.
    """

    kind: NormKind
    weight: "Tensor | None"
    bias: "Tensor | None"
    epsilon: float


@dataclass(frozen=True)
class AttentionBlock:
    """The fixed parts around one kind of attention in one layer. What a reader cannot tell for sure is None.

    Attributes:
        scale: what query · key is multiplied by; None where scores are not known.
        softcap: c of c · tanh(score / c), where scores are capped.
        out: W_O by heads, (head, d_v, d_model).
        out_bias: of the output projection, (d_model,); None also where it has none.
        placement: where the norm stands: pre: x + f(norm(x)); post: norm(x + f(x)); residual-post: x + norm(f(x)).
        norm: that norm.
    """

    scale: float | None = None
    softcap: float | None = None
    out: "Tensor | None" = None
    out_bias: "Tensor | None" = None
    placement: NormPlacement | None = None
    norm: Norm | None = None
