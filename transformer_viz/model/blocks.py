"""The layers of the two stacks (Vaswani et al. 2017, section 3.1).

Holds the parameters; the attention itself is the pure function in `attention.py`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_viz.model.attention import attend
from transformer_viz.model.attention_block import AttentionBlock, Norm
from transformer_viz.model.config import DropoutSite, ModelConfig
from transformer_viz.model.tap import Site, Tap
from transformer_viz.terms import Kind

_ROOM = 32
"""Tokens for which a cache has room at first."""


@dataclass
class Cache:
    """The keys and values of the tokens that a decoder has read.

    Attributes:
        length: how many tokens were read.
        tensors: for each sublayer (its kind and layer), with a row for each sentence: keys and values, (batch, head, key,
            d_head), with room for more tokens; for a recurrence its memory.
    """

    length: int = 0
    tensors: dict[tuple[str, int], tuple[Tensor, ...]] = field(default_factory=dict)

    def append(self, place: tuple[str, int], *new: Tensor) -> tuple[Tensor, ...]:
        """Adds keys or values, (batch, head, key, d_head), behind those that were read, and returns all of them.

        There is room for more behind them, so that the whole is not copied at every step.
        """
        end = self.length + new[0].shape[2]
        rooms = self.tensors.get(place)
        if rooms is None or rooms[0].shape[2] < end:
            grown = tuple(tensor.new_empty(*tensor.shape[:2], max(_ROOM, 2 * end), tensor.shape[3]) for tensor in new)
            for room, before in zip(grown, rooms or (), strict=False):
                room[:, :, : self.length] = before[:, :, : self.length]
            self.tensors[place] = rooms = grown
        for room, tensor in zip(rooms, new, strict=True):
            room[:, :, self.length : end] = tensor
        return tuple(room[:, :, :end] for room in rooms)


class MultiHeadAttention(nn.Module):
    """Projections into heads, attention, and the projection back (section 3.2.2)."""

    def __init__(self, config: ModelConfig, kind: Kind, layer: int) -> None:
        super().__init__()
        self.kind: Kind = kind
        self.layer = layer
        self.n_heads = config.n_heads
        self.dropout = config.dropout_at("elsewhere")
        keys, values = config.n_heads * config.key_width, config.n_heads * config.value_width
        self.query = nn.Linear(config.d_model, keys, bias=config.attention_bias)
        self.key = nn.Linear(config.d_model, keys, bias=config.attention_bias)
        self.value = nn.Linear(config.d_model, values, bias=config.attention_bias)
        self.out = nn.Linear(values, config.d_model, bias=config.attention_bias)

    def initialize_as_torch(self) -> None:
        """Initialises as `nn.MultiheadAttention` does: queries, keys and values are one Xavier matrix, every bias is 0."""
        parts = (self.query, self.key, self.value)
        bound = math.sqrt(6 / (self.query.in_features + sum(part.out_features for part in parts)))
        for part in parts:
            nn.init.uniform_(part.weight, -bound, bound)
        nn.init.xavier_uniform_(self.out.weight)
        for linear in (*parts, self.out):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        padding: Tensor | None,
        *,
        tap: Tap | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """(batch, query, d_model) -> the same; keys and values are made of `memory` (batch, key, d_model), or of `x` itself.

        `padding` is bool (batch, key), or None: a padded key is masked for every head and query.
        With a cache `x` are the rows of new tokens, and the keys are those of all tokens.
        """
        site = Site(self.kind, self.layer, cache.length if cache else 0)
        if tap is not None and "entered" in tap.names:
            x = tap(site, "entered", x)
        place, n = (self.kind, self.layer), self.n_heads
        before = None if cache is None else cache.tensors.get(place)
        if memory is not None and before:
            key, value = before
        else:
            read = x if memory is None else memory
            shape = (*read.shape[:2], n, -1)
            key, value = self.key(read).view(shape).transpose(1, 2), self.value(read).view(shape).transpose(1, 2)
            if cache is not None:
                if memory is not None:
                    # A key is a column: so lies the matrix that each step multiplies with its query.
                    key, value = key.mT.contiguous().mT, value.contiguous()
                    cache.tensors[place] = key, value
                else:
                    key, value = cache.append(place, key, value)
        dropout = self.dropout if self.training else 0.0
        query = self.query(x).view(*x.shape[:2], n, -1).transpose(1, 2)
        masked = None if padding is None else padding[:, None, None]
        causal = self.kind == "decoder"
        heads = attend(query, key, value, masked, causal=causal, site=site, tap=tap, dropout=dropout)
        added = self.out(heads.transpose(1, 2).flatten(2))
        return tap(site, "added", added) if tap is not None and "added" in tap.names else added


class FeedForward(nn.Module):
    """Two linear layers with an activation between them (section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff, bias=config.feed_forward_bias)
        self.outer = nn.Linear(config.d_ff, config.d_model, bias=config.feed_forward_bias)
        self.activation = F.relu if config.activation == "relu" else F.gelu
        self.dropout = nn.Dropout(config.dropout_at("elsewhere"))

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) -> (…, d_model)."""
        return self.outer(self.dropout(self.activation(self.inner(x))))


class ResidualConnection(nn.Module):
    """The residual connection around a sublayer: where the norm stands, and dropout on what is added."""

    def __init__(self, config: ModelConfig, place: DropoutSite = "elsewhere") -> None:
        super().__init__()
        self.placement = config.norm
        self.norm = None if config.shared_norm else layer_norm(config)
        self.dropout = nn.Dropout(config.dropout_at(place))

    def forward(
        self,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        shared: nn.LayerNorm | None = None,
        tap: Tap | None = None,
        site: Site | None = None,
    ) -> Tensor:
        """(batch, length, d_model) -> the same.

        `shared` is the block's one norm, where it has one; `site` is that of an attention, whose residual stream a tap sees.
        """
        norm = self.norm if shared is None else shared
        assert norm is not None
        if tap is not None and site is not None and "residual_before" in tap.names:
            x = tap(site, "residual_before", x)
        match self.placement:
            case "pre":
                after = x + self.dropout(sublayer(norm(x)))
            case "post":
                after = norm(x + self.dropout(sublayer(x)))
            case "residual-post":
                after = x + self.dropout(norm(sublayer(x)))
            case _:
                assert_never(self.placement)
        if tap is not None and site is not None and "residual_after" in tap.names:
            after = tap(site, "residual_after", after)
        return after


def attention_block(
    attention: MultiHeadAttention, around: ResidualConnection, shared: nn.LayerNorm | None = None
) -> AttentionBlock:
    """The output projection, norm and residual of an attention, by reference; `shared` is the block's one norm."""
    norm = around.norm or shared
    assert norm is not None
    return AttentionBlock(
        scale=1 / math.sqrt(attention.key.out_features // attention.n_heads),
        out=attention.out.weight.T.unflatten(0, (attention.n_heads, -1)),
        out_bias=attention.out.bias,
        placement=around.placement,
        norm=Norm("layer", norm.weight, norm.bias, norm.eps),
    )


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """A LayerNorm over the residual stream, with or without weight and bias."""
    return nn.LayerNorm(config.d_model, elementwise_affine=config.norm_affine)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.norm = layer_norm(config) if config.shared_norm else None
        self.attention = MultiHeadAttention(config, "encoder", layer)
        self.feed_forward = FeedForward(config)
        self.around_attention = ResidualConnection(config, "encoder-attention")
        self.around_feed_forward = ResidualConnection(config)

    def forward(self, x: Tensor, padding: Tensor | None, tap: Tap | None = None) -> Tensor:
        """(batch, source, d_model) -> the same; `padding` bool (batch, source) or None."""
        site, attention = Site("encoder", self.layer), partial(self.attention, memory=None, padding=padding, tap=tap)
        x = self.around_attention(x, attention, self.norm, tap, site)
        x = self.around_feed_forward(x, self.feed_forward, self.norm)
        return tap(site, "state", x) if tap is not None and "state" in tap.names else x


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention onto the encoder's output, feed-forward."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.norm = layer_norm(config) if config.shared_norm else None
        self.attention = MultiHeadAttention(config, "decoder", layer)
        self.cross_attention = MultiHeadAttention(config, "cross", layer)
        self.feed_forward = FeedForward(config)
        self.around_attention = ResidualConnection(config)
        self.around_cross_attention = ResidualConnection(config)
        self.around_feed_forward = ResidualConnection(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        target_padding: Tensor | None,
        source_padding: Tensor | None,
        *,
        tap: Tap | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """(batch, query, d_model) -> the same; `memory` (batch, source, d_model); padding bool (batch, key) or None."""
        attention = partial(self.attention, memory=None, padding=target_padding, tap=tap, cache=cache)
        cross_attention = partial(self.cross_attention, memory=memory, padding=source_padding, tap=tap, cache=cache)
        site = Site("decoder", self.layer, cache.length if cache else 0)
        x = self.around_attention(x, attention, self.norm, tap, site)
        x = self.around_cross_attention(x, cross_attention, self.norm, tap, site._replace(kind="cross"))
        x = self.around_feed_forward(x, self.feed_forward, self.norm)
        return tap(site, "state", x) if tap is not None and "state" in tap.names else x
