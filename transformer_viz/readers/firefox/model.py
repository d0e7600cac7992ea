"""Firefox's translators: an encoder as Vaswani et al. 2017 have it, and a decoder that remembers in a recurrence.

The recurrence is the SSRU (Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
Translation"), which stands where masked self-attention would:

    f_t = σ(x_t W_f + b_f)        c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ x_t W        LayerNorm(x_t + ReLU(c_t))

Everything else is made of the modules of `model/blocks.py`.
"""

import math
from dataclasses import replace
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from transformer_viz.decoding.reader import Rules
from transformer_viz.model.blocks import Cache, EncoderLayer, FeedForward, MultiHeadAttention, ResidualConnection
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.sizes import Sizes, sizes_of
from transformer_viz.model.tap import Site, Tap
from transformer_viz.model.transformer import EncoderDecoder, random_normal

END_ID = 0
EPSILON = 1e-9
"""ε of Marian's norms."""


class Recurrence(nn.Module):
    """The SSRU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.take = nn.Linear(width, width, bias=False)
        self.keep = nn.Linear(width, width)

    def forward(self, x: Tensor, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Computes what each step adds, (batch, step, d_model), and the cell after the last step, (batch, d_model).

        `before` is the cell before the first step; None is zeros.
        """
        kept = torch.sigmoid(self.keep(x))
        new = (1 - kept) * self.take(x)
        cells = []
        for step in range(x.shape[1]):
            before = new[:, step] if before is None else kept[:, step] * before + new[:, step]
            cells.append(before)
        return torch.relu(torch.stack(cells, 1)), cells[-1]


class DecoderLayer(nn.Module):
    """Recurrence, cross-attention onto the encoder's output, feed-forward."""

    norm = None

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.recurrence = Recurrence(config.d_model)
        self.cross_attention = MultiHeadAttention(config, "cross", layer)
        self.feed_forward = FeedForward(config)
        self.around_recurrence = ResidualConnection(config)
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
        """See `model.blocks.DecoderLayer`. A step reads those before it alone, so that no padding behind it needs a mask."""
        place, first = ("decoder", self.layer), cache.length if cache else 0

        def recurrence(y: Tensor) -> Tensor:
            (before,) = cache.tensors.get(place, (None,)) if cache else (None,)
            added, cell = self.recurrence(y, before)
            if cache:
                cache.tensors[place] = (cell,)
            return added

        x = self.around_recurrence(x, recurrence)
        cross_attention = partial(self.cross_attention, memory=memory, padding=source_padding, tap=tap, cache=cache)
        x = self.around_cross_attention(x, cross_attention, None, tap, Site("cross", self.layer, first))
        x = self.around_feed_forward(x, self.feed_forward)
        return tap(Site("decoder", self.layer, first), "state", x) if tap is not None and "state" in tap.names else x


class FirefoxReader(EncoderDecoder):
    """See `decoding.reader.Reader`: embeddings, two stacks and the projection onto the vocabulary.

    The decoder first reads a vector of zeros, as a token beyond the vocabulary, which is never written.
    """

    end_ids, pad_id = (END_ID,), END_ID

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.positions: Tensor
        self.rules: Rules | None = None
        self.start_id = config.target_vocabulary_size
        # A column a token: so a row of logits takes a quarter of the time.
        self.embedding = nn.Parameter(random_normal(config.d_model, config.target_vocabulary_size))
        self.encoder = nn.ModuleList(EncoderLayer(config, i) for i in range(config.n_encoder_layers))
        self.encoder_norm = nn.Identity()
        self.decoder = nn.ModuleList(DecoderLayer(config, i) for i in range(config.n_decoder_layers))
        self.output_bias = nn.Parameter(torch.zeros(config.target_vocabulary_size))
        self.register_buffer("positions", torch.empty(config.max_positions, config.d_model))
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = EPSILON

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes of both stacks; the decoder has no self-attention."""
        sizes = sizes_of(self.config)
        layers = {kind: numbers for kind, numbers in sizes.layers.items() if kind != "decoder"}
        heads = {kind: sizes.heads[kind] for kind in layers}
        return replace(sizes, layers=layers, heads=heads, cached=0, recurrences=sizes.layers["decoder"])

    def embed_source(self, ids: Tensor) -> Tensor:
        return self.embed_target(ids, 0)

    def embed_target(self, ids: Tensor, first: int) -> Tensor:
        is_start = (ids == self.start_id)[..., None]
        columns = self.embedding[:, ids.clamp_max(self.start_id - 1)].movedim(0, -1)
        scaled = columns.masked_fill(is_start, 0.0) * math.sqrt(self.config.d_model)
        return scaled + self.positions[first : first + ids.shape[1]]

    def logits(self, x: Tensor) -> Tensor:
        return x @ self.embedding + self.output_bias


def positions(n: int, d_model: int) -> Tensor:
    """(position, d_model): all sines, then all cosines, of wavelengths from 2π to 2π·10000, as Marian has them."""
    half = d_model // 2
    frequency = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000) / max(1, half - 1)))
    angles = torch.arange(n, dtype=torch.float64)[:, None] * frequency
    return torch.cat([angles.sin(), angles.cos()], 1).float()
