"""Modules by a seeded generator, of every kind that the tap could mistake for another: right, or refused, never wrong."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.attention_ways import PAD, WAYS, WIDTH, Own, OwnAttention, independent
from transformer_viz import trace_module
from transformer_viz.errors import OptionError

N_MODULES = 60
TWISTS = (
    *("none", "prefix", "second encoder", "image", "table", "router", "router by bmm", "soft embedding", "pooling"),
    *("layer pooling", "sigmoid", "one key more", "trimmed", "reversed", "source looks at target", "scaled weights"),
)
"""What is unusual about a module; the first is nothing."""
REFUSED = {"prefix", "second encoder", "image", "table", "pooling", "one key more", "trimmed", "source looks at target"}
REFUSED |= {"scaled weights", "reversed"}


class Twisted(nn.Module):
    """A model of somebody's own with something beside or instead of its attention."""

    def __init__(self, inner: Own, twist: str) -> None:
        super().__init__()
        self.inner, self.twist = inner, twist
        way = inner.way_of_all
        self.more = OwnAttention(way)
        self.table, self.image = nn.Parameter(torch.randn(7, WIDTH)), nn.Parameter(torch.randn(1, 5, WIDTH))
        self.experts = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(3)])
        self.route, self.layer_weights = nn.Linear(WIDTH, 3), nn.Parameter(torch.randn(4))
        self.query = nn.Parameter(torch.randn(1, 1, WIDTH))

    def forward(self, *ids: Tensor) -> Tensor:
        embed, out = self.inner.embedding, self.inner.output
        first, last = ids[0], ids[-1]
        nothing = lambda x, y: torch.zeros(len(x), 1, x.shape[1], y.shape[1], dtype=torch.bool)  # noqa: E731
        x = embed(last)
        extra: Any = 0.0
        if self.twist == "prefix":
            whole = torch.cat(ids, 1)
            return self.inner(*[whole] * len(ids))[:, -last.shape[1] :]
        if self.twist == "second encoder":
            # Beside a decoder alone, or an encoder, it is a second one of those.
            y = embed(first)
            extra = self.more(y, y, nothing(y, y)).mean()
        if self.twist == "image":
            picture = self.image * embed(first).mean(1, keepdim=True)
            extra = self.more(x, picture, nothing(x, picture))
        if self.twist == "table":
            rows = self.more.v(self.table)
            extra = (x @ self.more.k(self.table).mT).softmax(-1) @ rows
        if self.twist == "router":
            weights, chosen = self.route(x).softmax(-1).topk(2, dim=-1)
            outputs = torch.stack([expert(x) for expert in self.experts], -2)
            extra = (outputs.gather(-2, chosen[..., None].expand(-1, -1, -1, WIDTH)) * weights[..., None]).sum(-2)
        if self.twist == "router by bmm":
            outputs = torch.stack([expert(x) for expert in self.experts], -2).flatten(0, 1)
            extra = torch.bmm(self.route(x).softmax(-1).flatten(0, 1)[:, None], outputs).view_as(x)
        if self.twist == "soft embedding":
            extra = out(x).softmax(-1) @ embed.weight
        if self.twist == "pooling":
            extra = (self.query @ x.mT).softmax(-1) @ x
        if self.twist == "layer pooling":
            extra = torch.einsum("l,lbnd->bnd", self.layer_weights.softmax(0), torch.stack([x, 2 * x, 3 * x, 4 * x]))
        if self.twist == "sigmoid":
            extra = x * self.route(x).sigmoid().mean(-1, keepdim=True)
        if self.twist == "one key more":
            longer = torch.cat([x, self.image[:, :1].expand(len(x), -1, -1)], 1)
            extra = self.more(x, longer, nothing(x, longer))
        if self.twist == "trimmed":
            shorter = x[:, :-1]
            extra = nn.functional.pad(self.more(shorter, shorter, nothing(shorter, shorter)), (0, 0, 0, 1))
        if self.twist == "source looks at target":
            y = embed(first)
            extra = self.more(y, x, nothing(y, x)).mean()
        if self.twist == "scaled weights":
            extra = ((x @ x.mT).softmax(-1) * 0.5) @ x
        if self.twist == "reversed":
            # Weights over queries for each key, summed over queries: no row of it sums to 1.
            extra = (x @ x.mT / 3).softmax(-2) @ x
        return self.inner(*ids) + out(x + extra)


def generated(number: int) -> tuple[Twisted, tuple[str, str, str]]:
    draw = random.Random(number)
    way, twist = draw.choice([*WAYS]), TWISTS[number % len(TWISTS)]
    stacks = (
        "both"
        if twist in ("prefix", "source looks at target", "second encoder")
        else draw.choice(["both", "decoder", "encoder"])
    )
    torch.manual_seed(number)
    inner = Own(WAYS[way], stacks, draw.choice(["nested", "flat", "shared"]))
    model = Twisted(inner, twist).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.requires_grad_(False), (way, stacks, twist)


@pytest.mark.parametrize("part", range(6))
def test_a_generated_module_is_right_or_refused(part):
    for number in range(part, N_MODULES, 6):
        model, case = generated(number)
        _, stacks, twist = case
        draw = random.Random(number + 1000)
        source = [draw.randrange(1, 13) for _ in range(draw.randrange(2, 6))] + [PAD] * draw.randrange(2)
        target = [draw.randrange(1, 13) for _ in range(draw.randrange(2, 6))]
        ids = (None if stacks == "decoder" else source, None if stacks == "encoder" else target)
        try:
            trace = trace_module(model, *ids, pad_id=PAD)
        except OptionError:
            assert twist in REFUSED, (number, case, "refused without a reason")
            continue
        assert twist not in REFUSED, (number, case, trace)
        want, _ = independent(model.inner, *ids)
        assert set(trace.kinds) == set(want), (number, case)
        for kind in trace.kinds:
            seen, weights = trace.attentions[kind].weights, want[kind].numpy()
            assert seen.shape == weights.shape, (number, case, kind)
            np.testing.assert_allclose(seen, weights, atol=1e-6, err_msg=str((number, case, kind)))


def test_every_twist_was_generated():
    assert {generated(number)[1][2] for number in range(N_MODULES)} == set(TWISTS)
