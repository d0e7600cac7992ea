"""Models to train beside ours, called like ours so that one loop trains all: torch's own, and one as first written."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.model.config import ModelConfig
from transformer_viz.model.positions import sinusoid
from transformer_viz.model.transformer import Transformer


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` with embeddings, positions and output as our variant `torch-reference`, and its weights."""

    table: Tensor
    future: Tensor

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        c = self.config = ours.config
        assert ours.source_embedding is not None and isinstance(ours.output, nn.Linear)
        self.source_embedding, self.target_embedding = (
            nn.Embedding.from_pretrained(e.weight.detach().clone(), freeze=False)
            for e in (ours.source_embedding, ours.target_embedding)
        )
        self.transformer = nn.Transformer(
            c.d_model, c.n_heads, c.n_encoder_layers, c.n_decoder_layers, c.d_ff, dropout=c.dropout, batch_first=True
        )
        # Of evaluation alone; in training it is never used.
        self.transformer.encoder.use_nested_tensor = False
        self.output = nn.Linear(c.d_model, c.target_vocabulary_size)
        self.output.load_state_dict(ours.output.state_dict())
        self.dropout = nn.Dropout(c.dropout)
        self.register_buffer("table", sinusoid(c.max_positions, c.d_model, c.sinusoid_base).float(), persistent=False)
        self.register_buffer("future", torch.ones(c.max_positions, c.max_positions, dtype=torch.bool).triu(1), persistent=False)
        _copy_stacks(ours, self.transformer)

    def forward(
        self, source: Tensor, target: Tensor, source_padding: Tensor | None, target_padding: Tensor | None, *, tap: None = None
    ) -> Tensor:
        """As `Transformer.forward`; there is no tap."""
        n = target.shape[1]
        hidden = self.transformer(
            self._embedded(self.source_embedding, source),
            self._embedded(self.target_embedding, target),
            tgt_mask=self.future[:n, :n],
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        return self.output(hidden)

    def _embedded(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(embedding(ids) + self.table[: ids.shape[1]])


def _copy_stacks(ours: Any, theirs: Any) -> None:
    layers = zip([*theirs.encoder.layers, *theirs.decoder.layers], [*ours.encoder, *ours.decoder], strict=True)
    for there, here in layers:
        _copy_attention(there.self_attn, here.attention)
        there.linear1.load_state_dict(here.feed_forward.inner.state_dict())
        there.linear2.load_state_dict(here.feed_forward.outer.state_dict())
        norms = [here.around_attention, here.around_feed_forward]
        if hasattr(here, "cross_attention"):
            _copy_attention(there.multihead_attn, here.cross_attention)
            norms.insert(1, here.around_cross_attention)
        for number, around in enumerate(norms, start=1):
            getattr(there, f"norm{number}").load_state_dict(around.norm.state_dict())
    theirs.encoder.norm.load_state_dict(ours.encoder_norm.state_dict())
    theirs.decoder.norm.load_state_dict(ours.decoder_norm.state_dict())


def _copy_attention(there: Any, here: Any) -> None:
    with torch.no_grad():
        there.in_proj_weight.copy_(torch.cat([here.query.weight, here.key.weight, here.value.weight]))
        there.in_proj_bias.copy_(torch.cat([here.query.bias, here.key.bias, here.value.bias]))
    there.out_proj.load_state_dict(here.out.state_dict())


class PlainAttention(nn.Module):
    """Scores, an additive mask, softmax; no fused kernel."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, self.n_heads = config.d_model, config.n_heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """(batch, query, d_model) -> the same."""
        q, k, v = (
            part(y).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for part, y in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class PlainBlock(nn.Module):
    """x + norm(f(x)) for every sublayer."""

    def __init__(self, config: ModelConfig, n_attentions: int, dropout: float) -> None:
        super().__init__()
        width = config.d_model
        self.dropout = nn.Dropout(dropout)
        self.attentions = nn.ModuleList(PlainAttention(config) for _ in range(n_attentions))
        self.feed = nn.Sequential(nn.Linear(width, config.d_ff), nn.ReLU(), nn.Linear(config.d_ff, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(n_attentions + 1))

    def forward(self, x: Tensor, memory: Tensor | None, masks: list[Tensor]) -> Tensor:
        """(batch, length, d_model) -> the same; the second attention, where there is one, looks at `memory`."""
        for attention, norm, mask, other in zip(self.attentions, self.norms, masks, (None, memory), strict=False):
            x = x + self.dropout(norm(attention(x, x if other is None else other, mask)))
        return x + self.norms[-1](self.feed(x))


class Plain(nn.Module):
    """The published reversal model as its article writes it: 1+1 layers, masks of -1e9, dropout on the encoder's attention."""

    table: Tensor

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        c = self.config = ours.config
        self.source_embedding, self.target_embedding = (
            nn.Embedding(n, c.d_model) for n in (c.source_vocabulary_size, c.target_vocabulary_size)
        )
        self.encoder, self.decoder = PlainBlock(c, 1, c.dropout), PlainBlock(c, 2, 0.0)
        self.output = nn.Linear(c.d_model, c.target_vocabulary_size)
        self.register_buffer("table", sinusoid(c.max_positions, c.d_model, 1e4).float(), persistent=False)

    def forward(
        self, source: Tensor, target: Tensor, source_padding: Tensor | None, target_padding: Tensor | None, *, tap: None = None
    ) -> Tensor:
        """As `Transformer.forward`; there is no tap."""
        n = target.shape[1]
        x = self.source_embedding(source) * math.sqrt(self.config.d_model) + self.table[: source.shape[1]]
        memory = self.encoder(x, None, [_minus(source, source_padding)])
        future = torch.full((n, n), -1e9, device=target.device).triu(1) + _minus(target, target_padding)
        y = self.target_embedding(target) + self.table[:n]
        return self.output(self.decoder(y, memory, [future, _minus(source, source_padding)]))


def _minus(ids: Tensor, padding: Tensor | None) -> Tensor:
    """-1e9 where a key is padding, (batch, 1, 1, key)."""
    return (torch.zeros_like(ids, dtype=torch.bool) if padding is None else padding)[:, None, None].float() * -1e9
