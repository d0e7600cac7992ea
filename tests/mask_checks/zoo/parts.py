"""What the zoo is made of: a list of cases, and a tiny Transformer whose every mask can be left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

V, D, PAD = 20, 8, 0
"""Ids are 0 to 19, and 0 is padding."""

Model = Callable[[Tensor, Tensor], Any]


@dataclass(frozen=True)
class Case:
    """One callable and what the certificate has to say of it: the verdict, and the rule of a fault that must be among the
    findings, or None where there must be none; `options` are those of `check_masks`. A slow one differs from others by how its
    numbers are scaled alone."""

    name: str
    make: Callable[[], Model]
    verdict: str
    rule: str | None
    options: dict[str, Any]
    is_slow: bool = False


class Cases(list[Case]):
    """A list that callables of source and target join, or functions without arguments that make one."""

    def case(self, rule: str | None = None, verdict: str = "", **options: Any) -> Callable[[Any], Any]:
        """Above one of them: sound, or leaking under a rule."""

        def join(f: Any) -> Any:
            self.cases({f.__name__: f}, rule, verdict, **options)
            return f

        return join

    def cases(
        self, functions: Mapping[str, Any], rule: str | None = None, verdict: str = "", *, is_slow: bool = False, **options: Any
    ) -> None:
        """Several, by name; s and t are the ids of source and target."""
        verdict = verdict or ("leaking" if rule else "sound")
        options = {"pad_id": PAD, "vocabulary_size": V, "max_length": 3, "replacements": 1, **options}
        for name, f in functions.items():
            make = f if len(signature(f).parameters) < 2 else lambda f=f: f
            self.append(Case(name, make, verdict, rule, options, is_slow))


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """The same random numbers each time, in float32."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


E, P, W = numbers(V, D), numbers(64, D, seed=1), numbers(D, V, seed=2) / 3
"""Embeddings, positions, and the projection onto the vocabulary."""


def embedded(ids: Tensor) -> Tensor:
    """(batch, length, D), with positions."""
    return E[ids] + P[: ids.shape[1]]


def causal(n: int, ahead: int = 0) -> Tensor:
    """bool (query, key), True = may look; `ahead` tokens too far."""
    return torch.ones(n, n, dtype=torch.bool).tril(ahead)


def counted(ids: Tensor) -> Tensor:
    """1, 2, 3 … as (length, 1)."""
    return torch.arange(1, ids.shape[1] + 1)[:, None]


def before(x: Tensor) -> Tensor:
    """Each step's mean of itself and all earlier ones: what a sound decoder may know."""
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


def read(source: Tensor) -> Tensor:
    """(batch, 1, D): the mean of the real source tokens, which is sound."""
    real = (source != PAD)[..., None]
    return ((embedded(source) * real).sum(1) / real.sum(1).clamp_min(1))[:, None]


def states(source: Tensor, target: Tensor) -> Tensor:
    """(batch, target, D): of a model that does nothing wrong. Faults are built beside it."""
    return before(embedded(target)) + read(source)


def logits(source: Tensor, target: Tensor) -> Tensor:
    """Of the same model."""
    return states(source, target) @ W


def whole(target: Tensor) -> Tensor:
    """(batch, target, V): the whole target at every step, the plainest leak."""
    return E[target].sum(1, keepdim=True).expand(-1, target.shape[1], -1) @ W


class Tiny(nn.Module):
    """A pre-norm encoder-decoder Transformer without its feed-forward parts. Every fault is a method that is replaced."""

    def __init__(self, n_layers: int = 1) -> None:
        super().__init__()
        self.n_heads = 2
        self.embedding, self.output, self.norm = nn.Embedding(V, D), nn.Linear(D, V), nn.LayerNorm(D)
        self.projections = nn.ParameterList(torch.empty(3 * D, D) for _ in range(3 * n_layers))
        self.places = nn.Parameter(torch.empty(64, D))
        for seed, parameter in enumerate(self.parameters()):
            parameter.data = numbers(*parameter.shape, seed=seed) * 0.6
        self.eval().requires_grad_(False)

    def encoder_mask(self, source: Tensor) -> Tensor:
        """bool, broadcasts to (batch, head, query, key); True = may look."""
        return (source != PAD)[:, None, None]

    def cross_mask(self, source: Tensor) -> Tensor:
        return (source != PAD)[:, None, None]

    def decoder_mask(self, target: Tensor, layer: int) -> Tensor:
        return causal(target.shape[1])[None, None]

    def place(self, ids: Tensor) -> Tensor:
        return self.places[: ids.shape[1]]

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, x = (self.embedding(ids) + self.place(ids) for ids in (source, target))
        for i in range(0, len(self.projections), 3):
            memory = memory + self.attention(i, memory, memory, self.encoder_mask(source))
            x = x + self.attention(i + 1, x, x, self.decoder_mask(target, i // 3))
            x = x + self.attention(i + 2, x, memory, self.cross_mask(source))
        return self.output(self.norm(x))

    def attention(self, i: int, queries: Tensor, keys: Tensor, may_look: Tensor) -> Tensor:
        weights = self.projections[i].chunk(3)
        q, k, v = (self.heads(self.norm(x) @ weight.mT) for x, weight in zip((queries, keys, keys), weights, strict=True))
        scores = (q @ k.mT / (D / self.n_heads) ** 0.5).masked_fill(~may_look, -torch.inf)
        return (self.weights(scores, may_look) @ v).transpose(1, 2).flatten(2)

    def weights(self, scores: Tensor, may_look: Tensor) -> Tensor:
        return scores.softmax(-1)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


def tiny(n_layers: int = 1, **replaced: Callable[..., Any]) -> Tiny:
    """With some of its methods replaced."""
    model = Tiny(n_layers)
    for name, method in replaced.items():
        setattr(model, name, method)
    return model
