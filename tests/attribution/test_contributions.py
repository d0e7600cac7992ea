"""Value-weighted norms and ALTI+ against plain loops from the parameters, in all variants; the terms of a row add up to it."""

from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attribution import plain
from tests.attribution.plain import SMALL
from transformer_viz.attribution.contributions import sublayers
from transformer_viz.attribution.rerun import Run
from transformer_viz.model.blocks import MultiHeadAttention, ResidualConnection
from transformer_viz.model.tap import Site


def recorded(small, trace):
    """Weights of each attention, what it was called with, and its sublayer's input and output; by hooks."""
    seen: dict[Site, dict[str, Any]] = {}
    hooks = []

    def of_attention(module, given, options, output):
        keys = given[0] if given[1] is None else given[1]
        seen[Site(module.kind, module.layer)] = {"module": module, "keys": keys[0].numpy(), "added": output[0].numpy()}

    def of_residual(module, given, options, output):
        seen[next(reversed(seen))] |= {"before": given[0][0].numpy(), "after": output[0].numpy()}

    for name, module in small.model.named_modules():
        if isinstance(module, MultiHeadAttention):
            hooks.append(module.register_forward_hook(of_attention, with_kwargs=True))
        elif isinstance(module, ResidualConnection) and name.endswith("attention"):
            hooks.append(module.register_forward_hook(of_residual, with_kwargs=True))
    for site, weights in plain.kept(small, trace, "weights").items():
        seen[site]["weights"] = weights
    for hook in hooks:
        hook.remove()
    return seen


def given_by(seen, h: int, i: int, j: int) -> np.ndarray:
    """What head h gives query i from key j: α (x_j W_V + b_V) W_O."""
    module, d_v = seen["module"], SMALL["d_v"]
    rows = slice(h * d_v, (h + 1) * d_v)
    value = module.value.weight.numpy()[rows] @ seen["keys"][j]
    if module.value.bias is not None:
        value = value + module.value.bias.numpy()[rows]
    return seen["weights"][h, i, j] * (module.out.weight.numpy()[:, rows] @ value)


def shares(small, site: Site, seen) -> np.ndarray:
    """(query, key + 1): of each key, and in cross-attention of the row itself."""
    block = (small.model.encoder if site.kind == "encoder" else small.model.decoder)[site.layer]
    norm = (block.around_cross_attention if site.kind == "cross" else block.around_attention).norm or block.norm
    placement, (n_queries, n_keys) = small.model.config.norm, seen["weights"].shape[1:]
    shares = np.zeros((n_queries, n_keys + 1))
    for i in range(n_queries):
        x, y = seen["before"][i], seen["after"][i]
        u = {"pre": None, "post": x + seen["added"][i], "residual-post": seen["added"][i]}[placement]

        def normalised(vector: np.ndarray, u: Any = u) -> np.ndarray:
            if u is None:
                return vector
            gamma = np.ones(len(vector)) if norm.weight is None else norm.weight.numpy()
            return gamma * (vector - vector.mean()) / np.sqrt(((u - u.mean()) ** 2).mean() + norm.eps)

        terms = []
        for j in range(n_keys):
            f = np.sum([given_by(seen, h, i, j) for h in range(SMALL["n_heads"])], axis=0)
            own = x if site.kind != "cross" and i == j else np.zeros_like(x)
            terms.append(normalised(f) + own if placement == "residual-post" else normalised(f + own))
        residual = np.zeros_like(x) if site.kind != "cross" else normalised(x) if placement == "post" else x
        for place, term in enumerate([*terms, residual]):
            shares[i, place] = max(0.0, np.abs(y).sum() - np.abs(y - term).sum())
        shares[i] /= shares[i].sum()
    return shares


def test_alti_is_its_formula(small, trace):
    n_source, n_steps = len(trace.source_tokens), trace.n_steps
    encoder, rows = np.eye(n_source), np.concatenate([np.zeros((n_steps, n_source)), np.eye(n_steps)], 1)
    for site, seen in recorded(small, trace).items():
        share = shares(small, site, seen)
        if site.kind == "encoder":
            encoder = share[:, :-1] @ encoder
        elif site.kind == "decoder":
            rows = share[:, :-1] @ rows
        else:
            source = np.concatenate([encoder, np.zeros((n_source, n_steps))], 1)
            rows = share[:, :-1] @ source + np.diag(share[:, -1]) @ rows
    both = [tv.attribute(small, trace, "alti", kind=kind).values for kind in ("cross", "decoder")]
    assert np.allclose(np.concatenate(both, 1), rows, rtol=0, atol=1e-6)
    assert np.allclose(rows.sum(1), 1) and 0.02 < rows[:, :n_source].sum(1).max() < 0.98


def test_value_weighted_norms_are_their_formula(small, trace):
    seen = recorded(small, trace)
    for kind in ("cross", "decoder"):
        by_head, of_all = (tv.attribute(small, trace, name, kind=kind) for name in ("value_weighted", "value_weighted_sum"))
        assert by_head.layers == of_all.layers == (0, 1) and of_all.values.shape[1] == 1
        for layer, head, i, j in np.ndindex(by_head.values.shape):
            each = [given_by(seen[Site(kind, layer)], h, i, j) for h in range(SMALL["n_heads"])]
            assert np.isclose(by_head.values[layer, head, i, j], np.linalg.norm(each[head]), rtol=1e-5, atol=1e-9)
            assert np.isclose(of_all.values[layer, 0, i, j], np.linalg.norm(sum(each)), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    "edits", [(), ("cross.1.2:zero", "decoder.2.1:zero", "decoder.1.1:*=uniform")], ids=["plain", "edited"]
)
def test_the_terms_and_the_biases_are_the_row(small, edits, monkeypatch):
    run = Run.of(small, tv.decode(small, "hello", target="olleh", edits=edits))
    layers = sublayers(run, "ALTI+", streams=("residual_before", "added", "residual_after"))
    assert [layer.site.kind for layer in layers] == ["encoder"] * 2 + ["decoder", "cross"] * 2
    for layer in layers:
        monkeypatch.undo()
        [(_, whole)] = layer.parts()
        for most in (2**22, 60, 1):  # all rows at once, or one after the other
            monkeypatch.setattr("transformer_viz.attribution.contributions.MOST", most)
            rows = torch.cat([of_keys.sum(1) + own for _, of_keys, own in layer.terms()]) + plain.bias_terms(layer)
            assert (rows - layer.stream["residual_after"]).abs().max() < 1e-12
            assert torch.allclose(torch.cat([part for _, part in layer.parts()]), whole, rtol=0, atol=1e-12)
