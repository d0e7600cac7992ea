"""Gradient × attention and rollout against plain loops from their formulas, in all variants."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attribution import plain
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
        found = small.model(texts, reads, tap=nudged(cells, by)).log_softmax(-1)
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


@pytest.mark.parametrize("method", ["gradient", "rollout", "alti", "value_weighted", "value_weighted_sum"])
def test_nothing_leaks_from_the_future(tiny, hello, method):
    """The rows of a run that ends earlier are the same rows."""
    written = hello.output_tokens[:-1]
    for kind in ("cross", "decoder"):
        whole = tv.attribute(tiny, hello, method, kind=kind).values
        for n in range(len(written)):
            part = tv.attribute(tiny, tv.decode(tiny, "hello", target=written[:n]), method, kind=kind).values
            n_keys = part.shape[-1]
            assert np.allclose(part[..., :n, :], whole[..., :n, :n_keys], rtol=1e-5, atol=1e-9)
            assert kind == "cross" or not whole[..., :n, n_keys:].any()


def test_a_token_that_is_all_but_sure_has_a_gradient_too():
    """Its probability is 1 to single precision, whose own gradient would be noise."""
    shipped = tv.load_checkpoint("reverse", "cpu")
    trace = tv.decode(shipped, "hello")
    sure = [t for t, step in enumerate(trace.steps) if -1e-7 < step.log_probability < 0]
    assert len(sure) >= 3
    found = tv.attribute(shipped, trace, "gradient").values
    exact = tv.attribute(replace(shipped, model=copy.deepcopy(shipped.model).double()), trace, "gradient").values
    assert np.allclose(found[sure], exact[sure], rtol=0.02, atol=0.001 * exact[sure].max())
    assert (exact[sure].max(1) > 0).all()
