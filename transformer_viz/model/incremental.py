"""Incremental decoding: one new row at a time, the keys and values of earlier ones from a cache.

The formulas are those of the decoder's modules in `blocks.py`, applied to their parameters without calling them: a step
is two dozen tiny operations a layer, and calling a module costs as much as what a small one computes. What comes out is
the pass over the whole target, row by row; a test says so for every norm placement, variant and tap.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_viz.model.attention import attend_last
from transformer_viz.model.blocks import DecoderLayer, FeedForward, MultiHeadAttention, ResidualConnection
from transformer_viz.model.cache import KeyValueCache
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.tap import Site, Tap

Rows = Callable[[Tensor], Tensor]
"""From rows (batch, width) to rows."""

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
        self._embedding, self._positions, self._output = embedding, positions, _linear(*output)
        self._scale = math.sqrt(config.d_model) if config.embedding_scale == "both" else 1.0
        self._embedding_norm, self._final_norm = map(_norm, norms)
        self._source_masked = None if source_padding is None else source_padding[:, None, None]
        self.length = 0
        """How many target tokens have been read."""

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """Logits of the token after each new one.

        Args:
            tokens: int (batch,), one new token for each sentence.
            tap: sees every intermediate of every attention; its only row stands at `length`.

        Returns:
            (batch, target vocabulary).
        """
        x = self._embedding.index_select(0, tokens)
        if self._positions is not None:
            x = torch.add(self._positions[self.length], x, alpha=self._scale)
        elif self._scale != 1:
            x = x * self._scale
        x = self._embedding_norm(x)
        for layer in self._layers:
            x = layer.read(x, self.length, self._source_masked, tap)
        self.length += 1
        return self._output(self._final_norm(x))

    def reorder(self, rows: Tensor) -> None:
        """Follows the hypotheses that go on: row i of the batch becomes the former row `rows[i]`; rows may repeat."""
        for layer in self._layers:
            layer.reorder(rows)
        if self._source_masked is not None:
            self._source_masked = self._source_masked.index_select(0, rows)


class _Layer:
    """One decoder layer's parameters, its cache, and the keys and values of the encoder's output.

    An entry is one head of one sentence, as in `attend_last`.
    """

    def __init__(self, layer: DecoderLayer, config: ModelConfig, memory: Tensor) -> None:
        self.number, self.n_heads = layer.layer, config.n_heads
        self.cache = KeyValueCache()
        key, value = layer.cross_attention.keys_and_values(memory)
        self.memory = key.transpose(-2, -1).flatten(0, 1).contiguous(), value.flatten(0, 1).contiguous()
        self.own = _own(layer.attention, config)
        self.query = entries_of(layer.cross_attention.query, config.key_width)
        self.joined, self.cross_joined = joined_of(layer.attention), joined_of(layer.cross_attention)
        self.feed_forward = feed_forward_of(layer.feed_forward)
        self.around = [
            around_of(residual, layer.norm)
            for residual in (layer.around_attention, layer.around_cross_attention, layer.around_feed_forward)
        ]

    def read(self, x: Tensor, position: int, source_masked: Tensor | None, tap: Tap | None) -> Tensor:
        """(batch, d_model) -> the same."""

        def attention(y: Tensor) -> Tensor:
            query, key, value = self.own(y)
            keys, values = self.cache.append(key, value)
            site = Site("decoder", self.number, position)
            return self.joined(attend_last(query[:, None], keys, values, None, self.n_heads, site=site, tap=tap))

        def cross_attention(y: Tensor) -> Tensor:
            site = Site("cross", self.number, position)
            query = self.query(y)[:, None]
            return self.cross_joined(attend_last(query, *self.memory, source_masked, self.n_heads, site=site, tap=tap))

        for around, sublayer in zip(self.around, (attention, cross_attention, self.feed_forward), strict=True):
            x = around(x, sublayer)
        return x

    def reorder(self, rows: Tensor) -> None:
        entries = (rows[:, None] * self.n_heads + torch.arange(self.n_heads, device=rows.device)).flatten()
        self.cache.reorder(entries)
        keys, values = self.memory
        self.memory = keys.index_select(0, entries), values.index_select(0, entries)


def _own(attention: MultiHeadAttention, config: ModelConfig) -> Callable[[Tensor], Sequence[Tensor]]:
    """Rows -> their queries, keys and values, each (entry, width)."""
    parts = (attention.query, attention.key, attention.value)
    if config.d_model > _FUSED_UP_TO or config.key_width != config.value_width:
        widths = (config.key_width, config.key_width, config.value_width)
        each = [entries_of(part, width) for part, width in zip(parts, widths, strict=True)]
        return lambda y: [entries(y) for entries in each]
    n_heads, width = config.n_heads, config.key_width
    weight = torch.cat([part.weight for part in parts])
    biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
    project = _linear(weight, torch.cat(biases) if biases else None)

    def fused(y: Tensor) -> Sequence[Tensor]:
        whole = project(y).view(-1, 3, n_heads, width)
        return whole.transpose(0, 1).reshape(3, -1, width).unbind()

    return fused


def entries_of(part: nn.Linear, width: int) -> Rows:
    """Rows -> their projection into heads, (entry, width)."""
    project = _linear(part.weight, part.bias)
    return lambda y: project(y).view(-1, width)


def joined_of(attention: MultiHeadAttention) -> Rows:
    """(batch, head, 1, d_v) through the output projection -> (batch, d_model)."""
    project = _linear(attention.out.weight, attention.out.bias)
    return lambda heads: project(heads.flatten(1))


def feed_forward_of(module: FeedForward) -> Rows:
    """Rows through the feed-forward layer."""
    inner, outer = (_linear(part.weight, part.bias) for part in (module.inner, module.outer))
    activation = module.activation
    return lambda y: outer(activation(inner(y)))


def around_of(residual: ResidualConnection, shared: nn.LayerNorm | None) -> Callable[[Tensor, Rows], Tensor]:
    """The residual connection around a sublayer, as `ResidualConnection`, without dropout."""
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
    # Without the wrapper of `torch.nn.functional`, which takes a third of its time.
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


def _linear(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """`F.linear` with these parameters: from rows (batch, in) to rows (batch, out)."""
    # By place: a keyword costs more than the call around it.
    return lambda x: F.linear(x, weight, bias)
