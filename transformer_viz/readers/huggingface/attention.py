"""Attention inside a Hugging Face model, through our tap, for every family that calls it through their `AttentionInterface`.

One function is registered for good under one name. It calls the model's own eager attention, so that nothing is computed in
another way than they do; what a tap changes is put in its place. Who sees a call is a `ContextVar`, so that threads that share
a model keep apart.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import ModelError
from transformer_viz.model import masks
from transformer_viz.model.tap import Site, Tap, TapName
from transformer_viz.terms import Kind

NAME = "transformer-viz"
Place = tuple[Kind, int]
"""Kind and layer of a call."""


@dataclass
class Pass:
    """One pass through a model: kind and layer of each call of attention, in order, and the tap that sees them."""

    places: Sequence[Place]
    tap: Tap
    first_query: int = 0
    n_seen: int = 0

    def site(self) -> Site:
        """The site of the call that comes now."""
        kind, layer = self.places[self.n_seen]
        self.n_seen += 1
        return Site(kind, layer, self.first_query)


@dataclass(frozen=True)
class Call:
    """One call of attention: its arguments and results. `masked` is what `masked_by` makes of its mask."""

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    masked: Tensor
    options: dict[str, Any]
    weights: Tensor
    output: Tensor

    def is_applied(self, tolerance: float) -> bool:
        """Tells whether the output is the values weighted with the weights, as far as the shapes allow it to be told.

        `tolerance` is how far it may be from that, of its largest number.
        """
        if self.weights.shape[1] % self.value.shape[1] or self.value.shape[-2] != self.weights.shape[-1]:
            return True
        made = (self.weights @ _repeated(self.value, self.weights.shape[1])).transpose(1, 2)
        if made.shape != self.output.shape:
            return True
        return bool((made - self.output).abs().max() <= tolerance * self.output.abs().max())


Witness = Callable[[Call], None]
"""A callback that gets every call of attention after it was made."""
_NOW: ContextVar[Pass | Witness | None] = ContextVar("transformer-viz-pass", default=None)


def register() -> None:
    """Makes `NAME` known to transformers: the attention, and the mask that it is given.

    Without the second it is given none, and the future is seen without a word.
    """
    attention_interface, mask_interface, eager_mask = interfaces()
    attention_interface.register(NAME, _attention)
    mask_interface.register(NAME, eager_mask)


def interfaces() -> tuple[Any, Any, Any]:
    """Finds where transformers looks for attentions by their names, and for their masks, and the mask of its eager attention.

    Raises:
        ImportError: this version of transformers has none.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    return AttentionInterface, AttentionMaskInterface, eager_mask


@contextmanager
def observe_attention(now: Pass | Witness | None) -> Generator[None]:
    """Sends every call of attention inside the `with` block to a pass or a witness, in this thread alone."""
    token = _NOW.set(now)
    try:
        yield
    finally:
        _NOW.reset(token)


def is_now(this: Pass) -> bool:
    """Tells whether calls of attention go to this pass now, in this thread."""
    return _NOW.get() is this


def masked_by(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor:
    """True = masked, (batch or 1, head or 1, query, key), from the mask that attention is given; None masks nothing."""
    if mask is None:
        return torch.zeros(1, 1, query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
    mask = mask[..., : key.shape[2]]
    return ~mask if mask.dtype == torch.bool else masks.hidden_by(mask)


def scores_of(query: Tensor, key: Tensor, options: dict[str, Any]) -> Tensor:
    """The scores before the mask, as eager attention computes them: scaled, capped, with a position bias."""
    scale = options.get("scaling")
    key = _repeated(key, query.shape[1])
    scores = torch.matmul(query, key.transpose(2, 3)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if (cap := options.get("softcap")) is not None:
        scores = torch.tanh(scores / cap) * cap
    bias = options.get("position_bias")
    return scores if bias is None else scores + bias


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor]:
    # The attention that the authors of this module wrote out, which computes every weight.
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        raise ModelError(
            f"{type(module).__name__} cannot be shown here: attention is recorded in eager_attention_forward, which its module "
            "lacks."
        )
    if attention_mask is not None and attention_mask.dtype == torch.float64:
        attention_mask = attention_mask.clamp(min=_lowest(torch.float64))
    now = _NOW.get()
    if isinstance(now, Pass):
        return _tapped(now, eager, (module, query, key, value, attention_mask), options)
    output, weights = eager(module, query, key, value, attention_mask, **options)
    if now is not None:
        now(Call(module, query, key, value, masked_by(attention_mask, query, key), options, weights, output))
    return output, weights


def _tapped(now: Pass, eager: Callable[..., Any], given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Their attention, with what the tap changes of it."""
    module, query, key, value, mask = given
    site, tap = now.site(), now.tap
    query = tap(site, "query", query) if "query" in tap.names else query
    key, own_value = _seen(tap, site, "key", key, query), value
    value = _seen(tap, site, "value", value, query)
    if "bias" in tap.names and (bias := options.get("position_bias")) is not None:
        options = {**options, "position_bias": tap(site, "bias", bias)}
    if "scores" in tap.names:
        tap(site, "scores", scores_of(query, key, options))
    before = masked_by(mask, query, key)
    masked = tap(site, "mask", before) if "mask" in tap.names else before
    is_changed = masked is not before and not (masked.shape == before.shape and torch.equal(masked, before))
    if is_changed:
        mask = torch.zeros(masked.shape, dtype=query.dtype, device=query.device)
        mask = mask.masked_fill(masked, _lowest(query.dtype))
    output, weights = eager(module, query, key, own_value, mask, **options)
    # Where all is masked theirs is uniform, over what is masked; ours is zeros, by rule. Padding before a prompt is cropped.
    own = weights.masked_fill(masked, 0.0) if is_changed else weights
    looked = tap(site, "weights", own) if "weights" in tap.names else own
    is_weighted_here = looked is not weights or value is not own_value
    heads = torch.matmul(looked, _repeated(value, query.shape[1])) if is_weighted_here else output.transpose(1, 2)
    written = tap(site, "heads", heads) if "heads" in tap.names else heads
    if written is not heads or is_weighted_here:
        output = written.transpose(1, 2).contiguous()
    return output, weights


def _lowest(dtype: torch.dtype) -> float:
    """The number that is added to a masked score: finite in float32 too, in which many families take the softmax of any type.

    The least float64 is −∞ there, and a row that may see nothing, as padding before a prompt, would be NaN.
    """
    return max(torch.finfo(dtype).min, torch.finfo(torch.float32).min)


def _seen(tap: Tap, site: Site, name: TapName, keys: Tensor, query: Tensor) -> Tensor:
    """Keys or values as a tap leaves them, which sees those that heads share once for each head."""
    if name not in tap.names:
        return keys
    each = _repeated(keys, query.shape[1])
    if (seen := tap(site, name, each)) is each:
        return keys
    if name == "key" and each is not keys:
        raise ModelError(
            "Several heads of this model share their keys, so keys cannot be changed; change scores, weights or heads"
        )
    return seen


def _repeated(keys: Tensor, n_heads: int) -> Tensor:
    """Keys or values that several heads share, one for each head."""
    n_shared = n_heads // keys.shape[1]
    return keys if n_shared == 1 else keys.repeat_interleave(n_shared, dim=1)
