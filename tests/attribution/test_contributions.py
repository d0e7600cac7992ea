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


def watched(small, trace):
    """(kind, layer) -> weights, what attention was called with, and its sublayer's input and output; by hooks."""
    source, read, _ = plain.ids(small, trace)
    seen: dict[tuple[str, int], dict[str, Any]] = {}
    around: list[tuple[np.ndarray, np.ndarray]] = []
    hooks = []

    def of_attention(module, given, options, output):
        keys = given[0] if given[1] is None else given[1]
        seen[module.kind, module.layer] = {"module": module, "keys": keys[0].numpy(), "added": output[0].numpy()}

    def of_residual(module, given, options, output):
        around.append((given[0][0].numpy(), output[0].numpy()))

    for module in small.model.modules():
        for kind, hook in ((MultiHeadAttention, of_attention), (ResidualConnection, of_residual)):
            if isinstance(module, kind):
                hooks.append(module.register_forward_hook(hook, with_kwargs=True))

    def keep(site, name, value):
        if name == "weights":
            weights[site.kind, site.layer] = value[0].numpy()
        return value

    weights: dict[tuple[str, int], np.ndarray] = {}
    plain.log_p(small, source, read, keep)
    for hook in hooks:
        hook.remove()
    is_attention = [True, False] * small.model.config.n_encoder_layers + [
        True,
        True,
        False,
    ] * small.model.config.n_decoder_layers
    streams = [one for one, is_one in zip(around, is_attention, strict=True) if is_one]
    for (place, found), (before, after) in zip(seen.items(), streams, strict=True):
        found |= {"weights": weights[place], "before": before, "after": after}
    return seen


def given_by(found, h: int, i: int, j: int) -> np.ndarray:
    """What head h gives query i from key j: α (x_j W_V + b_V) W_O."""
    module, d_v = found["module"], SMALL["d_v"]
    rows = slice(h * d_v, (h + 1) * d_v)
    value = module.value.weight.numpy()[rows] @ found["keys"][j]
    if module.value.bias is not None:
        value = value + module.value.bias.numpy()[rows]
    return found["weights"][h, i, j] * (module.out.weight.numpy()[:, rows] @ value)


def norm_around(small, kind: str, layer: int):
    block = (small.model.encoder if kind == "encoder" else small.model.decoder)[layer]
    return (block.around_cross_attention if kind == "cross" else block.around_attention).norm or block.norm


def shares(small, kind: str, layer: int, found) -> np.ndarray:
    """(query, key + 1): of each key, and in cross-attention of the row itself."""
    placement, norm = small.model.config.norm, norm_around(small, kind, layer)
    n_queries, n_keys = found["weights"].shape[1:]
    shares = np.zeros((n_queries, n_keys + 1))
    for i in range(n_queries):
        x, y = found["before"][i], found["after"][i]
        u = {"pre": None, "post": x + found["added"][i], "residual-post": found["added"][i]}[placement]

        def normalised(vector: np.ndarray, u: Any = u) -> np.ndarray:
            if u is None:
                return vector
            gamma = np.ones(len(vector)) if norm.weight is None else norm.weight.numpy()
            return gamma * (vector - vector.mean()) / np.sqrt(((u - u.mean()) ** 2).mean() + norm.eps)

        terms = []
        for j in range(n_keys):
            f = np.sum([given_by(found, h, i, j) for h in range(SMALL["n_heads"])], axis=0)
            own = x if kind != "cross" and i == j else np.zeros_like(x)
            terms.append(normalised(f) + own if placement == "residual-post" else normalised(f + own))
        residual = np.zeros_like(x) if kind != "cross" else normalised(x) if placement == "post" else x
        for place, term in enumerate([*terms, residual]):
            shares[i, place] = max(0.0, np.abs(y).sum() - np.abs(y - term).sum())
        shares[i] /= shares[i].sum()
    return shares


def test_alti_is_its_formula(small, trace):
    n_source, n_steps = len(trace.source_tokens), trace.n_steps
    encoder, rows = np.eye(n_source), np.concatenate([np.zeros((n_steps, n_source)), np.eye(n_steps)], 1)
    for (kind, layer), found in watched(small, trace).items():
        each = shares(small, kind, layer, found)
        if kind == "encoder":
            encoder = each[:, :-1] @ encoder
        elif kind == "decoder":
            rows = each[:, :-1] @ rows
        else:
            seen = np.concatenate([encoder, np.zeros((n_source, n_steps))], 1)
            rows = each[:, :-1] @ seen + np.diag(each[:, -1]) @ rows
    both = [tv.attribute(small, trace, "alti", kind=kind).values for kind in ("cross", "decoder")]
    assert np.allclose(np.concatenate(both, 1), rows, rtol=0, atol=1e-6)
    assert np.allclose(rows.sum(1), 1) and 0.02 < rows[:, :n_source].sum(1).max() < 0.98


def test_value_weighted_norms_are_their_formula(small, trace):
    seen = watched(small, trace)
    for kind in ("cross", "decoder"):
        by_head, of_all = (tv.attribute(small, trace, name, kind=kind) for name in ("value_weighted", "value_weighted_sum"))
        assert by_head.layers == of_all.layers == (0, 1) and of_all.values.shape[1] == 1
        for layer, head, i, j in np.ndindex(by_head.values.shape):
            each = [given_by(seen[kind, layer], h, i, j) for h in range(SMALL["n_heads"])]
            assert np.isclose(by_head.values[layer, head, i, j], np.linalg.norm(each[head]), rtol=1e-5, atol=1e-9)
            assert np.isclose(of_all.values[layer, 0, i, j], np.linalg.norm(sum(each)), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    "edits", [(), ("cross.1.2:zero", "decoder.2.1:zero", "decoder.1.1:*=uniform")], ids=["plain", "edited"]
)
def test_the_terms_and_the_biases_are_the_row(small, edits, monkeypatch):
    run = Run.of(small, tv.decode(small, "hello", target="olleh", edits=edits))
    for most in (2**22, 60):  # all rows at once, or one after the other
        monkeypatch.setattr("transformer_viz.attribution.contributions.MOST", most)
        found = sublayers(run, "ALTI+", streams=("residual_before", "added", "residual_after"))
        assert [each.site.kind for each in found] == ["encoder"] * 2 + ["decoder", "cross"] * 2
        for each in found:
            rows = torch.cat([of_keys.sum(1) + own for _, of_keys, own in each.terms()]) + each.bias_terms()
            assert (rows - each.stream["residual_after"]).abs().max() < 1e-12


@pytest.mark.parametrize("method", ["alti", "value_weighted_sum"])
def test_rows_may_be_taken_one_after_the_other(tiny, hello, method, monkeypatch):
    whole = tv.attribute(tiny, hello, method).values
    monkeypatch.setattr("transformer_viz.attribution.contributions.MOST", 1)
    assert np.allclose(tv.attribute(tiny, hello, method).values, whole, rtol=1e-6)


@pytest.mark.parametrize("method", ["alti", "value_weighted", "value_weighted_sum"])
def test_nothing_leaks_from_the_future(tiny, hello, method):
    written = hello.output_tokens[:-1]
    for kind in ("cross", "decoder"):
        whole = tv.attribute(tiny, hello, method, kind=kind).values
        for n in range(len(written)):
            part = tv.attribute(tiny, tv.decode(tiny, "hello", target=written[:n]), method, kind=kind).values
            n_keys = part.shape[-1]
            assert np.allclose(part[..., :n, :], whole[..., :n, :n_keys], rtol=1e-5, atol=1e-9)
            assert kind == "cross" or not whole[..., :n, n_keys:].any()
