"""Attention as people write it: one formula in many ways, and models around it, in several layouts.

Each way takes queries, keys and values (batch, head, position, width) and a mask, True = masked, and returns what the heads
write, in the same axes.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Way = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def by_matmul(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    return torch.matmul(F.dropout(scores.masked_fill(masked, float("-inf")).softmax(-1), 0.1, False), v)


def by_einsum(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = torch.where(masked, torch.tensor(-1e9, dtype=q.dtype), scores)
    return torch.einsum("bhqk,bhkd->bhqd", torch.softmax(scores, dim=-1), v)


def by_einsum_with_heads_last(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """Scores as (batch, query, key, head), the softmax over the third axis."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = torch.einsum("bqhd,bkhd->bqkh", q, k) / math.sqrt(q.shape[-1])
    scores = scores + masked.squeeze(1).unsqueeze(-1) * -1e9
    return torch.einsum("bqkh,bkhd->bhqd", scores.softmax(2), v)


def by_bmm(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """Batch and heads in one axis, masked with -1e4 before the scale."""
    b, h, n, d = q.shape
    q, k, v = (x.reshape(b * h, x.shape[2], d) for x in (q, k, v))
    scores = torch.bmm(q, k.transpose(1, 2))
    scores = scores.masked_fill(masked.expand(b, h, n, -1).reshape(b * h, n, -1), -1e4) / math.sqrt(d)
    return torch.bmm(nn.Softmax(dim=-1)(scores), v).view(b, h, n, d)


def by_baddbmm(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """The mask is added by the product itself."""
    b, h, n, d = q.shape
    q, k, v = (x.reshape(b * h, x.shape[2], d) for x in (q, k, v))
    added = torch.zeros(b, 1, n, k.shape[1], dtype=q.dtype).masked_fill(masked.expand(b, 1, n, -1), float("-inf"))
    added = added.expand(b, h, -1, -1).reshape(b * h, n, -1)
    return torch.baddbmm(added, q / math.sqrt(d), k.mT).softmax(-1).bmm(v).view(b, h, n, d)


def by_elements(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    scores = (q[:, :, :, None] * k[:, :, None]).sum(-1) / math.sqrt(q.shape[-1])
    weights = (scores + torch.zeros_like(scores).masked_fill(masked, torch.finfo(q.dtype).min)).softmax(-1)
    return (weights[..., None] * v[:, :, None]).sum(-2)


def by_log_softmax(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """Masked by an index, for sentences whose masks are alike."""
    if not bool((masked == masked[:1]).all()):
        return by_matmul(q, k, v, masked)
    scores = (q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).mT
    rows, columns = masked[0, 0].nonzero().unbind(1)
    scores[..., rows, columns] = float("-inf")
    return F.log_softmax(scores, dim=-1).exp() @ v


def by_exponents(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """A softmax by hand."""
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(masked, -1e9)
    exponents = torch.exp(scores - scores.max(-1, keepdim=True).values)
    return exponents / exponents.sum(-1, keepdim=True) @ v


def zeroed_again(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """Masked in place, and once more after the softmax."""
    scores = q @ k.mT
    scores /= math.sqrt(q.shape[-1])
    scores.masked_fill_(masked, -1e9)
    return torch.softmax(scores, -1).masked_fill(masked, 0.0) @ v


def by_torch(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~masked)


def by_torch_with_a_float_mask(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    added = torch.zeros(masked.shape, dtype=q.dtype).masked_fill(masked, float("-inf"))
    scaled = F.scaled_dot_product_attention(q * q.shape[-1] ** -0.5, k, v, attn_mask=added, scale=1.0)
    return scaled


def by_multiplied_mask(q: Tensor, k: Tensor, v: Tensor, masked: Tensor) -> Tensor:
    """As the first code of GPT-2 did, value first in the product."""
    scores, kept = q @ k.mT / math.sqrt(q.shape[-1]), (~masked).to(q.dtype)
    weights = (scores * kept - 1e10 * (1 - kept)).softmax(-1)
    return (v.mT @ weights.mT).mT


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        *(by_matmul, by_einsum, by_einsum_with_heads_last, by_bmm, by_baddbmm, by_elements, by_log_softmax, by_exponents),
        *(zeroed_again, by_torch, by_torch_with_a_float_mask, by_multiplied_mask),
    )
}
WIDTH, HEADS, PAD = 12, 3, 0


class OwnAttention(nn.Module):
    """Multi-head attention of somebody's own."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.way = way

    def forward(self, x: Tensor, y: Tensor, masked: Tensor) -> Tensor:
        split = lambda z: z.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # noqa: E731
        heads = self.way(split(self.q(x)), split(self.k(y)), split(self.v(y)), masked)
        return self.out(heads.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """One layer, its attentions by their names."""

    def __init__(self, way: Way, *names: str) -> None:
        super().__init__()
        self.attentions = nn.ModuleDict({name: OwnAttention(way) for name in names})


class Own(nn.Module):
    """A Transformer of somebody's own: two encoder layers and three decoder layers, or one of both stacks.

    Args:
        way: how attention is written.
        stacks: `both`, `encoder` or `decoder`.
        layout: `nested` in lists of layers, `flat` in one module, or `shared`: one attention for all layers.
        batch_first: whether ids are (batch, length).
        vocabulary: tokens.
    """

    def __init__(
        self, way: Way, stacks: str = "both", layout: str = "nested", *, batch_first: bool = True, vocabulary: int = 13
    ) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(vocabulary, WIDTH), nn.Linear(WIDTH, vocabulary)
        self.stacks, self.layout, self.batch_first, self.way_of_all = stacks, layout, batch_first, way
        self.n_encoder, self.n_decoder = 2 * (stacks != "decoder"), 3 * (stacks != "encoder")
        names = [("encoder", i) for i in range(self.n_encoder)]
        kinds = ("decoder", "cross") if stacks == "both" else ("decoder",)
        names += [(kind, i) for i in range(self.n_decoder) for kind in kinds]
        if layout == "nested":
            self.encoder = nn.ModuleList([Layer(way, "encoder") for _ in range(self.n_encoder)])
            self.decoder = nn.ModuleList([Layer(way, *kinds) for _ in range(self.n_decoder)])
        elif layout == "flat":
            for kind, i in names:
                self.add_module(f"{kind}_{i}", OwnAttention(way))
        else:
            self.one = OwnAttention(way)

    def attend(self, kind: str, i: int) -> Any:
        """The attention of a layer; a method, so that a copy of the module has its own."""
        if self.layout == "nested":
            layers: Any = self.encoder if kind == "encoder" else self.decoder
            return layers[i].attentions[kind]
        return getattr(self, f"{kind}_{i}") if self.layout == "flat" else self.one

    def forward(self, *ids: Tensor) -> Tensor:
        ids = ids if self.batch_first else tuple(each.T for each in ids)
        source = ids[0] if self.stacks != "decoder" else None
        target = ids[-1] if self.stacks != "encoder" else None
        hidden = None if source is None else (source == PAD)[:, None, None]
        x = y = None
        if source is not None and hidden is not None:
            x = self.embedding(source)
            for i in range(self.n_encoder):
                x = x + self.attend("encoder", i)(x, x, hidden.expand(-1, -1, source.shape[1], -1))
        if target is not None:
            y, n = self.embedding(target), target.shape[1]
            future = torch.ones(n, n, dtype=torch.bool).triu(1).expand(len(target), 1, -1, -1)
            for i in range(self.n_decoder):
                y = y + self.attend("decoder", i)(y, y, future)
                if x is not None and hidden is not None:
                    y = y + self.attend("cross", i)(y, x, hidden.expand(-1, -1, n, -1))
        out = self.output(x if y is None else y)
        return out if self.batch_first else out.transpose(0, 1)


def independent(model: Own, source: list[int] | None, target: list[int] | None) -> tuple[dict[str, Tensor], Tensor]:
    """The weights of every layer, (layer, head, query, key), and the logits, computed plainly in float64, weight by weight."""
    found: dict[str, list[Tensor]] = {}
    put = lambda kind, weights: found.setdefault(kind, []).append(weights)  # noqa: E731

    def attended(kind: str, i: int, x: Tensor, y: Tensor, masked: Tensor) -> Tensor:
        own = model.attend(kind, i)
        q, k, v = (
            (z @ part.weight.double().T + part.bias.double()).view(len(z), HEADS, -1)
            for z, part in ((x, own.q), (y, own.k), (y, own.v))
        )
        # (head, query, key): every score as a sum of products, every weight as a share.
        scores = (q.transpose(0, 1)[:, :, None] * k.transpose(0, 1)[:, None]).sum(-1) / math.sqrt(WIDTH // HEADS)
        largest = torch.where(masked, -math.inf, scores).amax(-1, keepdim=True)
        exponents = torch.where(masked, 0.0, (scores - largest).exp())
        weights = exponents / exponents.sum(-1, keepdim=True)
        heads = (weights[..., None] * v.transpose(0, 1)[:, None]).sum(2).transpose(0, 1)
        put(kind, weights)
        return heads.flatten(1) @ own.out.weight.double().T + own.out.bias.double()

    embedding = model.embedding.weight.double()
    x: Any = None
    y: Any = None
    if source is not None:
        x, hidden = embedding[source], torch.tensor(source) == PAD
        for i in range(model.n_encoder):
            x = x + attended("encoder", i, x, x, hidden.expand(len(source), -1))
    if target is not None:
        y, n = embedding[target], len(target)
        for i in range(model.n_decoder):
            y = y + attended("decoder", i, y, y, torch.ones(n, n, dtype=torch.bool).triu(1))
            if source is not None:
                y = y + attended("cross", i, y, x, (torch.tensor(source) == PAD).expand(n, -1))
    out = (x if y is None else y) @ model.output.weight.double().T + model.output.bias.double()
    return {kind: torch.stack(layers) for kind, layers in found.items()}, out
