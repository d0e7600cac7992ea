"""Weights moved as far as the output does not notice, against plain loops that put every array in by hand."""

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attribution import plain, planted
from transformer_viz import edits as plain_edits
from transformer_viz.attribution.counter_proof import N_HALVINGS, TARGETS, scopes
from transformer_viz.errors import OptionError
from transformer_viz.model.tap import ReplaceTap, Site, compose
from transformer_viz.tracing.edit_tap import changing_tap


def target_weights(target: str, weights: np.ndarray, reasons: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(weights)
    masked = np.broadcast_to(reasons, weights.shape)
    for row in np.ndindex(*weights.shape[:3]):
        allowed = np.flatnonzero(masked[row] == 0)
        if target == "uniform":
            moved[row][allowed] = 1 / len(allowed)
        elif target == "reversed":
            moved[row][allowed] = weights[row][allowed[::-1]]
        else:
            moved[row][allowed[0 if target == "first key" else -1]] = 1
    return moved


@pytest.mark.parametrize(
    ("scope", "layers", "heads", "edits"),
    [
        ("cross", [0, 1, 2], slice(None), ()),
        ("decoder.2", [1], slice(None), ("encoder.1.2:zero",)),
        ("encoder.1.3", [0], slice(2, 3), ("encoder:*-3", "cross.2:2-4")),
    ],
)
def test_it_is_where_a_plain_loop_over_lambda_begins_to_notice(tiny, scope, layers, heads, edits):
    """Each probability from a pass of its own with an array; first over a grid, then to the last halving."""
    kind, epsilon = scope.partition(".")[0], 0.004
    trace = tv.decode(tiny, "hello", edits=edits)
    found = tv.counter_proof(tiny, trace, scope=scope, epsilon=epsilon)
    source, read, _ = plain.ids(tiny, trace)
    changing = changing_tap(plain_edits.read(edits), None, tiny.network.sizes)
    kept = plain.kept(tiny, trace, "weights", changing)
    weights = np.stack([kept[Site(kind, layer)][heads] for layer in layers])
    before = np.exp(plain.log_p(tiny, source, read, changing))
    assert np.allclose(weights, trace.attentions[kind].weights[layers][:, heads], atol=1e-6)
    assert np.array_equal(found.weights, weights.astype(np.float32))
    reasons = trace.attentions[kind].reasons
    reasons = reasons if reasons.ndim == 2 else reasons[layers][:, heads]

    for each in found.moved:
        other = target_weights(each.target, weights, reasons)

        def change(share, other=other):
            applied = ((1 - share) * weights + share * other).astype(np.float32)

            def put(site, value):
                if site.kind == kind and site.layer in layers:
                    value = value.clone()
                    value[0, heads] = torch.tensor(applied[layers.index(site.layer)], dtype=value.dtype)
                return value

            after = np.exp(plain.log_p(tiny, source, read, compose(changing, ReplaceTap("weights", put))))
            return np.abs(after - before).max(), applied

        changes = {share: change(share)[0] for share in np.linspace(0, 1, 17)}
        noticed = [share for share, most in changes.items() if most > epsilon]
        assert max(changes.keys() - set(noticed)) <= each.share <= min(noticed, default=1)
        at_it, applied = change(each.share)
        assert np.allclose(each.weights, applied, atol=1e-7)
        assert each.change <= epsilon and each.change == pytest.approx(at_it, abs=1e-9)
        assert each.share == 1 or change(each.share + 2**-N_HALVINGS)[0] > epsilon
        assert each.distance == pytest.approx(np.abs(applied - weights).sum(-1).mean() / 2, abs=1e-6)
    assert [each.target for each in found.moved] == list(TARGETS)
    assert any(0 < each.share < 1 for each in found.moved)


def test_rows_add_to_one_and_what_is_masked_stays_so(tiny):
    """With padding, and where each row may see other keys than the next; a mistake allows other keys."""
    trace = tv.decode_batch(tiny, ["hello", "lo"], edits=["cross.1.2:2-3"])[1]
    for scope, heads in (("encoder.2", slice(None)), ("decoder", slice(None)), ("cross.1.2", slice(1, 2))):
        found = tv.counter_proof(tiny, trace, scope=scope)
        of_run = trace.attentions[kind := found.heads[0].kind]
        layers = sorted({head.layer for head in found.heads})
        masked = np.broadcast_to(of_run.reasons != 0, of_run.weights.shape)[layers][:, heads]
        real = [kind != "encoder" or token != "<pad>" for token in of_run.queries]
        assert masked.any() and found.weights.shape == masked.shape and all(real) == (kind != "encoder")
        for each in found.moved:
            assert each.weights.dtype == np.float32 and (each.weights[masked] == 0).all()
            assert np.allclose(each.weights.sum(-1), found.weights.sum(-1), atol=1e-6)
            assert np.allclose(each.weights.sum(-1), 1, atol=1e-6) and each.change <= found.epsilon
            elsewhere = np.abs(each.weights - found.weights).sum(-1) / 2
            assert each.distance == pytest.approx(elsewhere[..., real].mean(), abs=1e-6)
    for mistake, last in ((None, 3), ("source-mask-forgotten", 6)):
        trace = tv.decode_batch(tiny, ["hello", "lo"], mistake=mistake)[1]
        moved = tv.counter_proof(tiny, trace, scope="cross.2.3", epsilon=0.9).towards("last key")
        assert moved.share == 1 and (moved.weights[..., last] == 1).all()


def test_heads_that_decorate_may_look_anywhere_and_the_one_that_copies_may_not():
    one = planted.copying(0)
    trace = tv.decode(one, planted.TEXT)
    for head in (2, 3, 4):
        found = tv.counter_proof(one, trace, scope=f"cross.1.{head}")
        assert [each.share for each in found.moved] == [1.0] * 4 and found.farthest.change == 0
        if head == 3:  # Towards where a head looks anyway is no way.
            assert found.towards("first key").distance == pytest.approx(0, abs=1e-6)
            assert found.farthest.target == "last key" and found.farthest.distance == pytest.approx(1)
    copies = tv.counter_proof(one, trace, scope="cross.1.1")
    joint = tv.counter_proof(one, trace, scope="cross")
    assert max(each.share for each in copies.moved) < 0.4
    assert [each.share for each in joint.moved] == [each.share for each in copies.moved]
    assert copies.words.startswith("cross.1.1: the farthest found has 2")
    # Two that copy: either may look anywhere else, and both together may not.
    two = planted.copying(0, 1)
    trace = tv.decode(two, planted.TEXT)
    scopes_of_two = ("cross.1.1", "cross.1.2", "cross")
    shares = [tv.counter_proof(two, trace, scope=scope).towards("uniform").share for scope in scopes_of_two]
    assert shares[0] == shares[1] == 1.0 and 0 < shares[2] < 0.7


def test_scopes_and_what_is_refused(tiny, hello):
    every = scopes(tiny)
    assert len(every) == 5 * 8 + 8 + 3 == len(set(every))
    assert {"encoder.2.5", "cross.3", "decoder"} < set(every)
    nan = tv.decode_batch(tiny, ["hello", "lo"], mistake="padded-queries-nan")[1]
    ahead, unknown = (
        tv.decode(tiny, "hello", edits=["decoder:off"]),
        r"^tiny has no (layer|head) cross|is not an address of attention",
    )
    refused = [(hello, scope, {}, unknown) for scope in ("cross.4", "cross.1.6", "cross.", "", "cross.1.10")]
    refused += [(hello, "cross", {"epsilon": given}, "a change of probability above 0 and below 1") for given in (0, 1, np.nan)]
    refused += [(nan, "cross", {}, "the probabilities of this run NaN"), (ahead, "cross", {}, "each step was computed anew")]
    for trace, scope, more, words in refused:
        with pytest.raises(OptionError, match=words):
            tv.counter_proof(tiny, trace, scope=scope, **more)
