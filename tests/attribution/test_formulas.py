"""Gradient × attention, rollout, value-weighted norms and ALTI+ against plain loops from their formulas, in all variants."""

import copy
from collections.abc import Sequence
from dataclasses import replace
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
from transformer_viz.model.tap import ReplaceTap, Site, Tap
from transformer_viz.terms import Kind

H = 1e-5
Cell = tuple[Kind, int, int, int, int]


def nudged(cells: Sequence[Cell], by: float) -> Tap:
    """Adds to one weight in each text of a batch: text i has cell i."""

    def nudge(site: Site, weights: torch.Tensor) -> torch.Tensor:
        weights = weights.clone()
        for text, (kind, layer, *cell) in enumerate(cells):
            if (kind, layer) == (site.kind, site.layer):
                weights[(text, *cell)] += by
        return weights

    return ReplaceTap("weights", nudge)


def gradients(small, trace) -> dict[Kind, np.ndarray]:
    """∂ log p(y_t) / ∂ weight, (step, layer, head, query, key) of each kind, by central differences."""
    source, read, written = plain.ids(small, trace)
    shapes = {kind: trace.attentions[kind].weights.shape for kind in trace.kinds}
    cells = [(kind, *at) for kind, shape in shapes.items() for at in np.ndindex(shape)]

    def log_p(by: float) -> np.ndarray:
        texts, reads = torch.tensor([source]).expand(len(cells), -1), torch.tensor([read]).expand(len(cells), -1)
        found = small.network(texts, reads, tap=nudged(cells, by)).log_softmax(-1)
        return found[:, torch.arange(len(written)), torch.tensor(written)].numpy()

    slopes = (log_p(H) - log_p(-H)) / (2 * H)
    found = {kind: np.zeros((len(written), *shape)) for kind, shape in shapes.items()}
    for (kind, *at), slope in zip(cells, slopes, strict=True):
        found[kind][(slice(None), *at)] = slope
    return found


def exact_weights(small, trace) -> dict[Kind, np.ndarray]:
    """In float64: those of the trace are single precision."""
    kept = plain.kept(small, trace, "weights")
    return {kind: np.stack([kept[Site(kind, n)] for n in trace.attentions[kind].layers]) for kind in trace.kinds}


def normalised(r: np.ndarray) -> np.ndarray:
    rest = r - np.eye(len(r))
    sums = rest.sum(1, keepdims=True)
    return np.divide(rest, sums, out=np.zeros_like(r), where=sums != 0) + np.eye(len(r))


def relevance(slopes: dict[Kind, np.ndarray], weights: dict[Kind, np.ndarray], t: int) -> tuple[np.ndarray, np.ndarray]:
    """Row t of R_qs and of R_qq (Chefer et al. 2021, equations 5 to 11)."""

    def of(kind: Kind, layer: int) -> np.ndarray:
        heads = [np.maximum(slopes[kind][t, layer, h] * weights[kind][layer, h], 0) for h in range(len(weights[kind][layer]))]
        return sum(heads) / len(heads)

    n_steps, n_source = weights["cross"].shape[-2:]
    ss, qq, qs = np.eye(n_source), np.eye(n_steps), np.zeros((n_steps, n_source))
    for layer in range(len(weights["encoder"])):
        ss = ss + of("encoder", layer) @ ss
    for layer in range(len(weights["decoder"])):
        own = of("decoder", layer)
        qq, qs = qq + own @ qq, qs + own @ qs
        qs = qs + normalised(qq).T @ of("cross", layer) @ normalised(ss)
    return qs[t], qq[t]


def test_gradient_times_attention_is_the_formulas_with_gradients_by_differences(small, trace):
    slopes, weights = gradients(small, trace), exact_weights(small, trace)
    found = {kind: tv.attribute(small, trace, "gradient", kind=kind).values for kind in ("cross", "decoder")}
    for t in range(trace.n_steps):
        qs, qq = relevance(slopes, weights, t)
        assert np.allclose(found["cross"][t], qs, rtol=1e-4, atol=1e-9)
        assert np.allclose(found["decoder"][t], qq, rtol=1e-4, atol=1e-9)
    assert found["cross"].max() > 1e-3


def test_rollout_is_its_formula(small, trace):
    n_steps, n_source = trace.n_steps, len(trace.source_tokens)
    mean = {kind: each.mean(1) for kind, each in exact_weights(small, trace).items()}
    encoder = np.eye(n_source)
    for each in mean["encoder"]:
        encoder = (each / 2 + np.eye(n_source) / 2) @ encoder
    rows = np.concatenate([np.zeros((n_steps, n_source)), np.eye(n_steps)], 1)
    seen = np.concatenate([encoder, np.zeros((n_source, n_steps))], 1)
    for own, cross in zip(mean["decoder"], mean["cross"], strict=True):
        rows = (own / 2 + np.eye(n_steps) / 2) @ rows
        rows = cross / 2 @ seen + rows / 2
    found = [tv.attribute(small, trace, "rollout", kind=kind).values for kind in ("cross", "decoder")]
    assert np.allclose(np.concatenate(found, 1), rows, atol=1e-7)
    assert np.allclose(rows.sum(1), 1)


def test_gradients_may_be_asked_for_in_inference_mode(tiny, hello):
    with torch.inference_mode():
        found = tv.attribute(tiny, hello, "gradient").values
    assert np.array_equal(found, tv.attribute(tiny, hello, "gradient").values)


def test_a_token_that_is_all_but_sure_has_a_gradient_too():
    """Its probability is 1 to single precision, whose own gradient would be noise."""
    shipped = tv.load_checkpoint("reverse", "cpu")
    trace = tv.decode(shipped, "hello")
    sure = [t for t, step in enumerate(trace.steps) if -1e-7 < step.log_probability < 0]
    assert len(sure) >= 3
    found = tv.attribute(shipped, trace, "gradient").values
    exact = tv.attribute(replace(shipped, network=copy.deepcopy(shipped.network).double()), trace, "gradient").values
    assert np.allclose(found[sure], exact[sure], rtol=0.02, atol=0.001 * exact[sure].max())
    assert (exact[sure].max(1) > 0).all()


def recorded(small, trace):
    """Weights of each attention, what it was called with, and its sublayer's input and output; by hooks."""
    seen: dict[Site, dict[str, Any]] = {}
    hooks = []

    def of_attention(module, given, options, output):
        keys = given[0] if options["memory"] is None else options["memory"]
        seen[Site(module.kind, module.layer)] = {"module": module, "keys": keys[0].numpy(), "added": output[0].numpy()}

    def of_residual(module, given, options, output):
        seen[next(reversed(seen))] |= {"before": given[0][0].numpy(), "after": output[0].numpy()}

    for name, module in small.network.named_modules():
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
    block = (small.network.encoder if site.kind == "encoder" else small.network.decoder)[site.layer]
    norm = (block.around_cross_attention if site.kind == "cross" else block.around_attention).norm or block.norm
    placement, (n_queries, n_keys) = small.network.config.norm, seen["weights"].shape[1:]
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
            monkeypatch.setattr("transformer_viz.attribution.contributions.WORKING", most)
            rows = torch.cat([of_keys.sum(1) + own for _, of_keys, own in layer.terms()]) + plain.bias_terms(layer)
            assert (rows - layer.stream["residual_after"]).abs().max() < 1e-12
            assert torch.allclose(torch.cat([part for _, part in layer.parts()]), whole, rtol=0, atol=1e-12)
