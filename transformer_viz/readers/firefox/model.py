"""Firefox's translators: an encoder as Vaswani et al. 2017 have it, and a decoder that remembers in a recurrence.

The recurrence is the SSRU (Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
Translation"), which stands where masked self-attention would:

    f_t = σ(x_t W_f + b_f)        c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ x_t W        LayerNorm(x_t + ReLU(c_t))

Everything else is made of the modules of `model/blocks.py`.
"""

import math
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor, nn

from transformer_viz.decoding.reader import Rules
from transformer_viz.model import initialization
from transformer_viz.model.attention import attend_last
from transformer_viz.model.blocks import EncoderLayer, FeedForward, MultiHeadAttention, ResidualConnection, surroundings
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.incremental import around_of, entries_of, feed_forward_of, joined_of
from transformer_viz.model.sizes import Sizes, sizes_of
from transformer_viz.model.surroundings import Surroundings
from transformer_viz.model.tap import Look, Site, Tap, looking, unseen
from transformer_viz.terms import Kind, ModelKind

END_ID = 0
EPSILON = 1e-9
"""Of Marian's norms."""


class Recurrence(nn.Module):
    """The SSRU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.take = nn.Linear(width, width, bias=False)
        self.keep = nn.Linear(width, width)

    def step(self, x: Tensor, cell: Tensor | None) -> Tensor:
        """(batch, d_model) -> the cell after one more step; None is zeros."""
        kept = torch.sigmoid(self.keep(x))
        new = (1 - kept) * self.take(x)
        return new if cell is None else new.addcmul_(kept, cell)

    def forward(self, x: Tensor, look: Look = unseen) -> Tensor:
        """What each step adds, (batch, step, d_model)."""
        kept, taken = look("kept", torch.sigmoid(self.keep(x))), look("taken", self.take(x))
        new = (1 - kept) * taken
        cells = [new[:, 0]]
        for step in range(1, x.shape[1]):
            cells.append(kept[:, step] * cells[-1] + new[:, step])
        return torch.relu(look("cell", torch.stack(cells, 1)))


class DecoderLayer(nn.Module):
    """Recurrence, cross-attention onto the encoder's output, feed-forward."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.recurrence = Recurrence(config.d_model)
        self.cross_attention = MultiHeadAttention(config, "cross", layer)
        self.feed_forward = FeedForward(config)
        self.around_recurrence = ResidualConnection(config)
        self.around_cross_attention = ResidualConnection(config)
        self.around_feed_forward = ResidualConnection(config)

    def forward(self, x: Tensor, memory: Tensor, source_masked: Tensor | None, tap: Tap | None = None) -> Tensor:
        """(batch, step, d_model) -> the same; `memory` (batch, source, d_model); the mask (batch, 1, 1, source) or None."""

        def cross_attention(y: Tensor) -> Tensor:
            return self.cross_attention(y, memory, source_masked, tap=tap)

        look = looking(tap, "decoder", self.layer)
        x = self.around_recurrence(x, lambda y: self.recurrence(y, look))
        x = self.around_cross_attention(x, cross_attention, look=looking(tap, "cross", self.layer))
        return look("state", self.around_feed_forward(x, self.feed_forward))


class FirefoxReader(nn.Module):
    """See `decoding.reader.Reader`: embeddings, two stacks and the projection onto the vocabulary.

    The decoder first reads a vector of zeros, as a token beyond the vocabulary, which is never written.
    """

    kind, end_ids, pad_id = ModelKind.ENCODER_DECODER, (END_ID,), END_ID

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.positions: Tensor
        self.rules: Rules | None = None
        self.start_id = config.target_vocabulary_size
        # A column a token: so a row of logits takes a quarter of the time.
        self.embedding = nn.Parameter(initialization.normal(config.d_model, config.target_vocabulary_size))
        self.encoder = nn.ModuleList(EncoderLayer(config, i) for i in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, i) for i in range(config.n_decoder_layers))
        self.output_bias = nn.Parameter(torch.zeros(config.target_vocabulary_size))
        self.register_buffer("positions", torch.empty(config.max_positions, config.d_model))
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = EPSILON

    @cached_property
    def sizes(self) -> Sizes:
        """Of both stacks; there is no attention of the decoder's onto itself."""
        sizes = sizes_of(self.config)
        layers = {kind: numbers for kind, numbers in sizes.layers.items() if kind != "decoder"}
        heads = {kind: sizes.heads[kind] for kind in layers}
        return replace(sizes, layers=layers, heads=heads, cached=0, recurrences=sizes.layers["decoder"])

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Tensor:
        """Reads the source once: int (batch, source) -> memory (batch, source, d_model)."""
        x = looking(tap, "encoder", -1)("state", self.embedded(source))
        masked = _for_keys(source_padding)
        for layer in self.encoder:
            x = layer(x, masked, tap)
        return x

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        """Logits of the token after each target token: int (batch, step) -> (batch, step, vocabulary).

        A step reads those before it alone, so that padding behind a target changes none of its steps.
        """
        x = looking(tap, "decoder", -1)("state", self.embedded(target))
        masked = _for_keys(source_padding)
        for layer in self.decoder:
            x = layer(x, memory, masked, tap)
        return self.logits(x)

    def incremental(self, memory: Tensor, source_padding: Tensor | None = None) -> "FirefoxReading":
        """Begins to write."""
        return FirefoxReading(self, memory, source_padding)

    def surroundings(self, kind: Kind, layer: int) -> Surroundings:
        """What stands around one layer's attention; references to the parameters."""
        block = (self.encoder if kind == "encoder" else self.decoder)[layer]
        if isinstance(block, EncoderLayer):
            return surroundings(block.attention, block.around_attention)
        assert isinstance(block, DecoderLayer)
        return surroundings(block.cross_attention, block.around_cross_attention)

    def embedded(self, ids: Tensor, first: int = 0) -> Tensor:
        """int (batch, position) -> (batch, position, d_model), of which the first stands at position `first`."""
        is_start = (ids == self.start_id)[..., None]
        columns = self.embedding[:, ids.clamp_max(self.start_id - 1)].movedim(0, -1)
        scaled = columns.masked_fill(is_start, 0.0) * math.sqrt(self.config.d_model)
        return scaled + self.positions[first : first + ids.shape[1]]

    def logits(self, x: Tensor) -> Tensor:
        """(…, d_model) -> (…, vocabulary)."""
        return torch.addmm(self.output_bias, x, self.embedding) if x.dim() == 2 else x @ self.embedding + self.output_bias


class FirefoxReading:
    """See `decoding.reader.Reading`: of each decoder layer the cell of its recurrence, and keys and values of the memory."""

    def __init__(self, reader: FirefoxReader, memory: Tensor, source_padding: Tensor | None) -> None:
        self._reader = reader
        self._layers = [
            _LayerReading(layer, reader.config, memory) for layer in reader.decoder if isinstance(layer, DecoderLayer)
        ]
        self._masked = _for_keys(source_padding)
        self._n_read = 0

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """int (batch,) -> (batch, vocabulary)."""
        x = self._reader.embedded(tokens[:, None], self._n_read)[:, 0]
        for layer in self._layers:
            x = layer.read(x, Site("cross", layer.number, self._n_read), self._masked, tap)
        self._n_read += 1
        return self._reader.logits(x)

    def reorder(self, rows: Tensor) -> None:
        """Cells, memory and padding of each row."""
        for layer in self._layers:
            layer.reorder(rows)
        self._masked = None if self._masked is None else self._masked.index_select(0, rows)


class _LayerReading:
    """One decoder layer on its way through a target; an entry is one head of one sentence, as in `attend_last`."""

    def __init__(self, layer: DecoderLayer, config: ModelConfig, memory: Tensor) -> None:
        self.number, self._n_heads = layer.layer, config.n_heads
        self._recurrence, self._cell = layer.recurrence, None
        attention = layer.cross_attention
        keys, values = attention.keys_and_values(memory)
        self._memory = keys.transpose(-2, -1).flatten(0, 1).contiguous(), values.flatten(0, 1).contiguous()
        self._query, self._joined = entries_of(attention.query, config.key_width), joined_of(attention)
        self._feed_forward = feed_forward_of(layer.feed_forward)
        residuals = (layer.around_recurrence, layer.around_cross_attention, layer.around_feed_forward)
        self._around = [around_of(each, None) for each in residuals]

    def read(self, x: Tensor, site: Site, masked: Tensor | None, tap: Tap | None) -> Tensor:
        """(batch, d_model) -> the same."""

        def recurrence(y: Tensor) -> Tensor:
            self._cell = self._recurrence.step(y, self._cell)
            return torch.relu(self._cell)

        def cross_attention(y: Tensor) -> Tensor:
            query = self._query(y)[:, None]
            return self._joined(attend_last(query, *self._memory, masked, self._n_heads, site=site, tap=tap))

        for around, sublayer in zip(self._around, (recurrence, cross_attention, self._feed_forward), strict=True):
            x = around(x, sublayer)
        return x

    def reorder(self, rows: Tensor) -> None:
        entries = (rows[:, None] * self._n_heads + torch.arange(self._n_heads, device=rows.device)).flatten()
        keys, values = self._memory
        self._memory = keys.index_select(0, entries), values.index_select(0, entries)
        self._cell = None if self._cell is None else self._cell.index_select(0, rows)


def positions(n: int, d_model: int) -> Tensor:
    """(position, d_model): all sines, then all cosines, of wavelengths from 2π to 2π·10000, as Marian has them."""
    half = d_model // 2
    frequency = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000) / max(1, half - 1)))
    angles = torch.arange(n, dtype=torch.float64)[:, None] * frequency
    return torch.cat([angles.sin(), angles.cos()], 1).float()


def _for_keys(padding: Tensor | None) -> Tensor | None:
    """(batch, key) -> (batch, 1, 1, key): a padded key is masked for every head and query."""
    return None if padding is None else padding[:, None, None, :]
