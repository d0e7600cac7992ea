"""The encoder-decoder Transformer (Vaswani et al. 2017), one implementation for every variant."""

import math
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.blocks import (
    Cache,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    attention_block,
    layer_norm,
)
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.sizes import Sizes, sizes_of
from transformer_viz.model.tap import Site, Tap
from transformer_viz.terms import Kind, ModelKind
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

_ROWS = 512
"""Rows of a table of positions that are computed at once."""


class EncoderDecoder(nn.Module):
    """Two stacks of layers between embeddings and logits, which a subclass makes.

    Padding is given as bool (batch, length), True = padding, or None when there is none.
    """

    kind = ModelKind.ENCODER_DECODER
    config: ModelConfig
    encoder: nn.ModuleList
    encoder_norm: nn.Module
    decoder: nn.ModuleList

    def embed_source(self, ids: Tensor) -> Tensor:
        """Embeds a source for the first encoder layer: int (batch, source) -> (batch, source, d_model)."""
        raise NotImplementedError

    def embed_target(self, ids: Tensor, first: int) -> Tensor:
        """Embeds a target for the first decoder layer: int (batch, query), of which the first stands at position `first`."""
        raise NotImplementedError

    def logits(self, x: Tensor) -> Tensor:
        """Projects the output of the last decoder layer -> (batch, query, target vocabulary)."""
        raise NotImplementedError

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Tensor:
        """Reads the source once. `source` int (batch, source) -> memory (batch, source, d_model)."""
        x = self.embed_source(source)
        if tap is not None and "state" in tap.names:
            x = tap(Site("encoder", -1), "state", x)
        for layer in self.encoder:
            x = layer(x, source_padding, tap)
        return self.encoder_norm(x)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Logits of the token after each target token; all rows at once.

        Args:
            target: int (batch, query).
            memory: (batch, source, d_model) from `encode`.
            source_padding: bool (batch, source).
            target_padding: bool (batch, target).
            tap: sees every intermediate of every attention.
            cache: of the tokens before these; these are added to it. There is no `target_padding` then.

        Returns:
            (batch, query, target vocabulary).
        """
        first = cache.length if cache else 0
        x = self.embed_target(target, first)
        if tap is not None and "state" in tap.names:
            x = tap(Site("decoder", -1, first), "state", x)
        for layer in self.decoder:
            x = layer(x, memory, target_padding, source_padding, tap=tap, cache=cache)
        if cache:
            cache.length += target.shape[1]
        return self.logits(x)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        """Teacher forcing: (batch, source), (batch, target) -> logits (batch, target, target vocabulary)."""
        memory = self.encode(source, source_padding, tap=tap)
        return self.decode(target, memory, source_padding, target_padding, tap=tap)

    def start_decoding(self, memory: Tensor, source_padding: Tensor | None = None) -> "CachedDecoder":
        """Reads the target token by token; arguments as `decode`."""
        return CachedDecoder(self, memory, source_padding)

    def attention_block(self, kind: Kind, layer: int) -> AttentionBlock:
        """The output projection, norm and residual connection of one layer's attention; references to the parameters."""
        block: Any = (self.encoder if kind == "encoder" else self.decoder)[layer]
        if kind == "cross":
            return attention_block(block.cross_attention, block.around_cross_attention, block.norm)
        return attention_block(block.attention, block.around_attention, block.norm)


class CachedDecoder:
    """A batch of sentences that is being written; see `decoding.reader.IncrementalDecoder`.

    It reads the target token by token, and computes the new row only: causal attention never changes an earlier token's key or
    value.

    Args:
        model: in eval mode.
        memory: (batch, source, d_model) from its encoder.
        source_padding: bool (batch, source), or None when nothing is padded.
    """

    def __init__(self, model: EncoderDecoder, memory: Tensor, source_padding: Tensor | None) -> None:
        self._model, self._memory, self._source_padding = model, memory, source_padding
        self._cache = Cache()

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """Logits (batch, 1, vocabulary) of the token after each new one, int (batch, 1). The tap sees the new row alone."""
        return self._model.decode(tokens, self._memory, self._source_padding, tap=tap, cache=self._cache)

    def reorder(self, rows: Tensor) -> None:
        """Row i of the batch becomes the former row `rows[i]`; rows may repeat or be left out, as a beam search goes on."""
        self._memory = self._memory.index_select(0, rows)
        if self._source_padding is not None:
            self._source_padding = self._source_padding.index_select(0, rows)
        for place, tensors in self._cache.tensors.items():
            self._cache.tensors[place] = tuple(tensor.index_select(0, rows) for tensor in tensors)


def sinusoid(n_positions: int, d_model: int, base: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """(position, d_model): sin on even, cos on odd channels, wavelengths 2π … 2π·base.

    Computed in float64 and rounded once, so that a wide model has exact tables; some rows at a time, so that they take little
    more memory than the table.
    """
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(n_positions, d_model, dtype=dtype)
    for start in range(0, n_positions, _ROWS):
        angles = torch.arange(start, min(start + _ROWS, n_positions), dtype=torch.float64)[:, None] * frequency
        table[start : start + _ROWS, 0::2] = angles.sin()
        table[start : start + _ROWS, 1::2] = angles.cos()
    return table


class Positions(nn.Module):
    """Adds each token's position to its embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table: Tensor | None
        if config.position == "learned":
            self.table = nn.Parameter(random_normal(config.max_positions, config.d_model, 0.02))
        elif config.position == "sinusoid":
            size = config.max_positions, config.d_model
            is_needed = are_weights_needed()
            table = sinusoid(*size, config.sinusoid_base, torch.get_default_dtype()) if is_needed else torch.empty(size)
            self.register_buffer("table", table, persistent=False)
        else:
            self.table = None

    def forward(self, embedded: Tensor, first: int = 0) -> Tensor:
        """(batch, length, d_model) -> the same; the first token stands at position `first`."""
        return embedded if self.table is None else embedded + self.table[first : first + embedded.shape[1]]


class Transformer(EncoderDecoder):
    """Embeddings, two stacks and the projection onto the target vocabulary."""

    # What decoding asks for (`decoding/reader.py`).
    start_id, end_ids, pad_id, rules = START_ID, (END_ID,), PAD_ID, None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        # A tied weight is held once, by the target embedding, so that a file holds it once too.
        self.source_embedding = (
            None if config.tied_embeddings == "all" else _embedding(config.source_vocabulary_size, config.d_model)
        )
        self.target_embedding = _embedding(config.target_vocabulary_size, config.d_model)
        self.positions = Positions(config)
        self.source_norm, self.target_norm = (layer_norm(config) if config.embedding_norm else nn.Identity() for _ in range(2))
        self.embedding_dropout = nn.Dropout(config.dropout_at("embeddings"))
        self.encoder = nn.ModuleList(EncoderLayer(config, i) for i in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, i) for i in range(config.n_decoder_layers))
        self.encoder_norm = layer_norm(config) if config.final_norm else nn.Identity()
        self.decoder_norm = layer_norm(config) if config.final_norm else nn.Identity()
        if config.tied_embeddings == "none":
            self.output = nn.Linear(config.d_model, config.target_vocabulary_size, bias=config.output_bias)
        else:
            self.output = TiedOutput(config)
        if not are_weights_needed() or config.initialization == "torch":
            return
        if config.initialization == "xavier":
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
            return
        for module in (*self.encoder.modules(), *self.decoder.modules()):
            if isinstance(module, MultiHeadAttention):
                module.initialize_as_torch()
            elif isinstance(module, FeedForward):
                nn.init.xavier_uniform_(module.inner.weight)
                nn.init.xavier_uniform_(module.outer.weight)

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes of both stacks."""
        # Asked for at every step.
        return sizes_of(self.config)

    def embed_source(self, ids: Tensor) -> Tensor:
        x = (self.source_embedding or self.target_embedding)(ids)
        x = x if self.config.embedding_scale == "none" else x * math.sqrt(self.config.d_model)
        return self.embedding_dropout(self.source_norm(self.positions(x)))

    def embed_target(self, ids: Tensor, first: int) -> Tensor:
        x = self.target_embedding(ids)
        x = x * math.sqrt(self.config.d_model) if self.config.embedding_scale == "both" else x
        return self.embedding_dropout(self.target_norm(self.positions(x, first)))

    def logits(self, x: Tensor) -> Tensor:
        is_tied = not isinstance(self.output, nn.Linear)
        return F.linear(self.decoder_norm(x), self.target_embedding.weight if is_tied else self.output.weight, self.output.bias)


class TiedOutput(nn.Module):
    """The rest of an output projection whose matrix is the target embedding: the bias, or nothing."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(config.target_vocabulary_size)) if config.output_bias else None


def _embedding(n_tokens: int, d_model: int) -> nn.Embedding:
    """Draws the weights as `nn.Embedding` does."""
    return nn.Embedding.from_pretrained(random_normal(n_tokens, d_model), freeze=False)


def are_weights_needed() -> bool:
    """Tells whether first weights are drawn: not of a model that is made for its shapes alone, under `torch.device("meta")`.

    There torch would run every operation without effect, and for many of them first import its compiler: 1.4 s in each new
    process.
    """
    return torch.get_default_device().type != "meta"


def random_normal(rows: int, columns: int, deviation: float = 1.0) -> Tensor:
    """(rows, columns), drawn from a normal distribution around zero."""
    if not are_weights_needed():
        return torch.empty(rows, columns)
    return torch.randn(rows, columns) * deviation
