"""Small ports of three families, written by hand as people write them, with faults of masks that can be planted in each."""

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

V, WIDTH, HEADS, PAD = 23, 24, 2, 0


class Attention(nn.Module):
    """Attention with a mask that says what may be seen, (batch or 1, query, key)."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen[:, None], -1e9)
        y = (scores.softmax(-1) @ v).transpose(1, 2)
        return self.out(y.reshape(*y.shape[:2], WIDTH))


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary positions, of (batch, head, token, n)."""
    n = x.shape[-1] // 2
    angle = positions[:, None, :, None].to(x.dtype) / 100.0 ** (torch.arange(n, dtype=x.dtype) / n)
    a, b = x[..., :n], x[..., n:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Block(nn.Module):
    """One layer, after its norms."""

    def __init__(self, has_cross: bool = False) -> None:
        super().__init__()
        self.attention, self.norm = Attention(), nn.LayerNorm(WIDTH)
        self.cross, self.cross_norm = (Attention(), nn.LayerNorm(WIDTH)) if has_cross else (None, None)
        self.ffn = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 40), nn.GELU(), nn.Linear(40, WIDTH))


class Decoder(nn.Module):
    """A decoder alone, with learned positions (as GPT) or rotary ones (as Llama), perhaps with a window and a prefix."""

    def __init__(
        self, fault: str = "", *, rotary: bool = False, window: int | None = None, prefix: int = 0, n: int = 2
    ) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.fault, self.rotary, self.window, self.prefix = fault, rotary, window, prefix
        self.tokens, self.places = nn.Embedding(V, WIDTH), nn.Embedding(128, WIDTH)
        self.blocks: Any = nn.ModuleList(Block() for _ in range(n))
        self.head = nn.Linear(WIDTH, V)

    def seen(self, layer: int, n_before: int, real: Tensor) -> Tensor:
        n = real.shape[1]
        query, key = torch.arange(n_before, n)[:, None], torch.arange(n)[None, :]
        ahead = {"sees next": 1, "sees next but one": 2}.get(self.fault, 0)
        seen = key <= query + ahead
        if self.fault == "no causal":
            seen = torch.ones_like(seen)
        if self.fault == "one layer without causal" and layer == 1:
            seen = torch.ones_like(seen)
        if self.window is not None and not (self.fault == "window of one layer missing" and layer == 1):
            width = self.window + {"window too wide": 1, "window too narrow": -1}.get(self.fault, 0)
            if self.fault == "cache without window" and n_before:
                width = n
            seen = seen & (key > query - width)
        prefix = self.prefix + {"prefix too short": -1, "prefix too long": 1, "prefix not seen": -self.prefix}.get(
            self.fault, 0
        )
        # Counted from the first real token, wherever that stands.
        places = real.long().cumsum(-1) - 1
        if n_before and self.fault == "cache forgets the first":
            seen = seen & (key > 0)
        seen = seen[None] | ((places < prefix)[:, None] & (places < prefix)[:, n_before:, None])
        if self.fault == "padding not masked":
            return seen
        if self.fault == "padding of the first text":
            real = real[:1].expand_as(real)
        if self.fault == "padding off by one":
            real = real | (real.roll(1, 1) & (torch.arange(n) > 0)) | (real.roll(-1, 1) & (torch.arange(n) < n - 1))
        # A query that may see nothing sees itself, so that no row is empty.
        return (seen & real[:, None]) | (key == query)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, past_key_values: Any = None) -> Any:
        n_before = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        if attention_mask is None:
            attention_mask = torch.ones(len(input_ids), n_before + input_ids.shape[1], dtype=torch.long)
        real = attention_mask.bool()
        positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)
        if self.fault == "positions count padding":
            positions = torch.arange(real.shape[1]).expand_as(real)
        positions = positions[:, n_before:]
        if self.fault == "cache one place off" and n_before:
            positions = positions + 1
        if self.fault == "cache begins anew" and n_before:
            positions = positions * 0
        x = self.tokens(input_ids)
        x = x if self.rotary else x + self.places(positions)
        cache = []
        for layer, block in enumerate(self.blocks):
            y = block.norm(x)
            q, k, v = (block.attention.split(one(y)) for one in (block.attention.q, block.attention.k, block.attention.v))
            if self.rotary:
                q, k = rotated(q, positions), rotated(k, positions)
            if past_key_values is not None:
                k, v = (torch.cat([old, new], 2) for old, new in zip(past_key_values[layer], (k, v), strict=True))
            cache.append((k, v))
            x = x + block.attention(q, k, v, self.seen(layer, n_before, real))
            x = x + block.ffn(x)
        if self.fault == "mean of the batch":
            x = x + x.mean(0, keepdim=True)
        return SimpleNamespace(logits=self.head(x), past_key_values=cache)


class Pair(nn.Module):
    """An encoder and a decoder that know padding by its id."""

    def __init__(self, fault: str = "", *, window: int | None = None, n: int = 2) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.fault, self.window = fault, window
        self.source, self.target, self.places = nn.Embedding(V, WIDTH), nn.Embedding(V, WIDTH), nn.Embedding(128, WIDTH)
        self.encoder: Any = nn.ModuleList(Block() for _ in range(n))
        self.decoder: Any = nn.ModuleList(Block(True) for _ in range(n))
        self.head = nn.Linear(WIDTH, V)

    def attended(self, attention: Attention, queries: Tensor, keys: Tensor, seen: Tensor) -> Tensor:
        return attention(*(attention.split(x) for x in (attention.q(queries), attention.k(keys), attention.v(keys))), seen)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real, n, m = source != PAD, source.shape[1], target.shape[1]
        x = self.source(source) + self.places(torch.arange(n))
        seen = real[:, None].expand(-1, n, -1)
        if self.fault == "encoder padding not masked":
            seen = torch.ones_like(seen)
        if self.fault == "encoder is causal":
            seen = seen & torch.ones(n, n, dtype=torch.bool).tril()
        for block in self.encoder:
            y = block.norm(x)
            x = x + self.attended(block.attention, y, y, seen)
            x = x + block.ffn(x)
        query, key = torch.arange(m)[:, None], torch.arange(m)[None, :]
        own = key <= query + int(self.fault == "decoder sees next")
        if self.fault == "decoder not causal":
            own = torch.ones_like(own)
        if self.window is not None:
            own = own & (key > query - self.window - int(self.fault == "window too wide"))
        own = own[None].expand(len(source), -1, -1)
        across = real[:, None].expand(-1, m, -1)
        if self.fault == "cross padding not masked" or (self.fault == "cross mask dropped in a batch" and len(source) > 1):
            across = torch.ones_like(across)
        if self.fault == "cross mask of the first text":
            across = across[:1].expand_as(across)
        if self.fault == "cross without the last key":
            across = across & (torch.arange(n) < n - 1)
        z = self.target(target) + self.places(torch.arange(m))
        for block in self.decoder:
            y = block.norm(z)
            z = z + self.attended(block.attention, y, y, own)
            z = z + self.attended(block.cross, block.cross_norm(z), x, across)
            z = z + block.ffn(z)
        return self.head(z)
