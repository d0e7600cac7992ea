"""Incremental decoding: a few new rows at a time, the keys and values of earlier ones from a cache.

The formulas are those of the decoder's modules in `blocks.py`, applied to their parameters without calling them: a step
is a hundred tiny operations, and calling a module costs as much as what a small one computes. What comes out is
the pass over the whole target, row by row; a test says so for every norm placement, variant and tap.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_viz.model.attention import attend
from transformer_viz.model.blocks import DecoderLayer, FeedForward, MultiHeadAttention, Residual
from transformer_viz.model.cache import KeyValueCache
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.tap import Site, Tap

Rows = Callable[[Tensor], Tensor]
"""From rows (batch · new, width) to rows."""

_FUSED_UP_TO = 256
"""d_model up to which query, key and value are one matrix product. Beyond, reading the weights is what takes the time."""


class IncrementalDecoder:
    """The decoder of a model in eval mode, reading one target after the other.

    Args:
        config: the model's.
        layers: the model's decoder.
        embedding: the target embedding, (token, d_model).
        positions: (position, d_model), or None.
        norms: after the embedding and after the last layer.
        output: weight and bias of the projection onto the vocabulary.
        memory: (batch, source, d_model) from `Transformer.encode`.
        source_padding: bool (batch, source), or None when nothing is padded.
    """

    def __init__(
        self,
        config: ModelConfig,
        layers: Sequence[DecoderLayer],
        embedding: Tensor,
        positions: Tensor | None,
        norms: tuple[nn.Module, nn.Module],
        output: tuple[Tensor, Tensor | None],
        memory: Tensor,
        source_padding: Tensor | None,
    ) -> None:
        self._layers = [_Layer(layer, config, memory) for layer in layers]
        self._embedding, self._positions, self._output = embedding, positions, output
        self._scale = math.sqrt(config.d_model) if config.embedding_scale == "both" else None
        self._embedding_norm, self._final_norm = map(_norm, norms)
        self._source_masked = None if source_padding is None else source_padding[:, None, None]
        self.length = 0
        """How many target tokens have been read."""

    def read(self, tokens: Tensor, target_padding: Tensor | None = None, *, tap: Tap | None = None) -> Tensor:
        """Logits of the token after each new one.

        Args:
            tokens: int (batch, new).
            target_padding: bool (batch, all tokens so far and the new ones), or None when nothing is padded.
            tap: sees every intermediate of every attention; its rows begin at `length`.

        Returns:
            (batch, new, target vocabulary).
        """
        n_new = tokens.shape[1]
        x = F.embedding(tokens, self._embedding)
        if self._scale is not None:
            x = x * self._scale
        if self._positions is not None:
            x = x + self._positions[self.length : self.length + n_new]
        x = self._embedding_norm(x.flatten(0, 1))
        masked = None if target_padding is None else target_padding[:, None, None]
        for layer in self._layers:
            x = layer.read(x, n_new, masked, self._source_masked, self.length, tap)
        self.length += n_new
        return F.linear(self._final_norm(x), *self._output).unflatten(0, tokens.shape)

    def reorder(self, rows: Tensor) -> None:
        """Follows the hypotheses that go on: row i of the batch becomes the former row `rows[i]`; rows may repeat."""
        for layer in self._layers:
            layer.reorder(rows)
        if self._source_masked is not None:
            self._source_masked = self._source_masked.index_select(0, rows)


class _Layer:
    """One decoder layer's parameters, its cache, and the keys and values of the encoder's output."""

    def __init__(self, layer: DecoderLayer, config: ModelConfig, memory: Tensor) -> None:
        self.number = layer.layer
        self.cache = KeyValueCache()
        self.memory = layer.cross_attention.keys_and_values(memory)
        self.self_attention, self.cross_attention = layer.attention, layer.cross_attention
        self.own = _projections(layer.attention, fused=config.d_model <= _FUSED_UP_TO)
        self.feed_forward = _feed_forward(layer.feed_forward)
        self.around = [
            _around(residual, layer.norm)
            for residual in (layer.around_attention, layer.around_cross_attention, layer.around_feed_forward)
        ]

    def read(
        self, x: Tensor, n_new: int, masked: Tensor | None, source_masked: Tensor | None, first: int, tap: Tap | None
    ) -> Tensor:
        """(batch · new, d_model) -> the same."""

        def attention(y: Tensor) -> Tensor:
            query, key, value = (_split(part, n_new, self.self_attention.n_heads) for part in self.own(y))
            site = Site("decoder", self.number, first)
            heads = attend(query, *self.cache.append(key, value), masked, causal=True, site=site, tap=tap)
            return _joined(heads, self.self_attention)

        def cross_attention(y: Tensor) -> Tensor:
            projection = self.cross_attention.query
            query = _split(F.linear(y, projection.weight, projection.bias), n_new, self.cross_attention.n_heads)
            site = Site("cross", self.number, first)
            heads = attend(query, *self.memory, source_masked, causal=False, site=site, tap=tap)
            return _joined(heads, self.cross_attention)

        for around, sublayer in zip(self.around, (attention, cross_attention, self.feed_forward), strict=True):
            x = around(x, sublayer)
        return x

    def reorder(self, rows: Tensor) -> None:
        self.cache.reorder(rows)
        key, value = self.memory
        self.memory = key.index_select(0, rows), value.index_select(0, rows)


def _projections(attention: MultiHeadAttention, *, fused: bool) -> Callable[[Tensor], Sequence[Tensor]]:
    """Rows -> their queries, keys and values."""
    parts = (attention.query, attention.key, attention.value)
    if not fused:
        return lambda y: [F.linear(y, part.weight, part.bias) for part in parts]
    weight = torch.cat([part.weight for part in parts])
    biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
    bias = torch.cat(biases) if biases else None
    widths = [part.out_features for part in parts]
    return lambda y: F.linear(y, weight, bias).split(widths, -1)


def _feed_forward(module: FeedForward) -> Rows:
    inner, outer, activation = module.inner, module.outer, module.activation
    weights = (inner.weight, inner.bias, outer.weight, outer.bias)

    def apply(y: Tensor) -> Tensor:
        into, into_bias, out, out_bias = weights
        return F.linear(activation(F.linear(y, into, into_bias)), out, out_bias)

    return apply


def _around(residual: Residual, shared: nn.LayerNorm | None) -> Callable[[Tensor, Rows], Tensor]:
    """The way round a sublayer, as `Residual`, without dropout."""
    module = residual.norm if shared is None else shared
    assert module is not None
    norm = _norm(module)
    if residual.placement == "pre":
        return lambda x, sublayer: x + sublayer(norm(x))
    if residual.placement == "post":
        return lambda x, sublayer: norm(x + sublayer(x))
    return lambda x, sublayer: x + norm(sublayer(x))


def _norm(module: nn.Module) -> Rows:
    """A LayerNorm, or what stands in its place and does nothing."""
    if not isinstance(module, nn.LayerNorm):
        return lambda x: x
    shape, weight, bias, eps = module.normalized_shape, module.weight, module.bias, module.eps
    return lambda x: F.layer_norm(x, shape, weight, bias, eps)


def _split(x: Tensor, n_new: int, n_heads: int) -> Tensor:
    """(batch · new, heads · width) -> (batch, head, new, width)."""
    if n_new == 1:
        return x.view(-1, n_heads, 1, x.shape[-1] // n_heads)
    return x.view(-1, n_new, n_heads, x.shape[-1] // n_heads).transpose(1, 2)


def _joined(heads: Tensor, attention: MultiHeadAttention) -> Tensor:
    """(batch, head, new, d_v) through the output projection -> (batch · new, d_model)."""
    rows = heads.flatten(1) if heads.shape[2] == 1 else heads.transpose(1, 2).flatten(2).flatten(0, 1)
    return F.linear(rows, attention.out.weight, attention.out.bias)
