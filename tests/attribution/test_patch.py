"""Outputs of one run put into another, against plain loops, what must come out equal, and a model whose head is known."""

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attribution import plain, planted
from transformer_viz import edits as plain_edits
from transformer_viz.addresses import AttentionAddress, HeadAddress
from transformer_viz.attribution import patch as attribution_patch
from transformer_viz.attribution.knock_out import all_heads
from transformer_viz.attribution.patch import BY, extent, patched, patched_run
from transformer_viz.attribution.result.patching import PatchEffect
from transformer_viz.errors import OptionError
from transformer_viz.model.tap import RecordTap, ReplaceTap, Site, TapName, compose
from transformer_viz.tracing.edit_tap import changing_tap

A, B = "hello", "hallo"


def log_p(checkpoint, trace, n, tap=None):
    """(step, vocabulary) of a run's first rows, with its edits."""
    source, read, _ = plain.ids(checkpoint, trace)
    changing = changing_tap(plain_edits.read(trace.edits), None, checkpoint.network.sizes)
    return plain.log_p(checkpoint, source, read[:n], compose(changing, tap))


def putting(keep: RecordTap, name: TapName, here: Site, at: tuple[int, ...]) -> ReplaceTap:
    """Puts what was kept at one place of one attention, in one head or all."""

    def put(site, value):
        if site == here:
            value = value.clone()
            value[0, *at] = keep.kept[here][name][0, *at]
        return value

    return ReplaceTap(name, put)


@pytest.mark.parametrize(("by", "edits"), [("head", ()), ("layer", ()), ("layer", ("cross.1:*-2", "encoder.2.1:zero"))])
def test_every_place_is_a_pass_of_its_own(tiny, by, edits):
    a, b = tv.decode(tiny, A), tv.decode(tiny, "ollao", edits=edits)
    found = tv.patch(tiny, a, b, by=by)
    parted = [x != y for x, y in zip(a.output_tokens, b.output_tokens, strict=False)].index(True)
    assert (found.step, found.tokens) == (parted, (a.output_tokens[parted], b.output_tokens[parted]))
    y_a, y_b = tiny.task.target_vocabulary.encode(found.tokens)
    keep = RecordTap(BY[by])

    def lead(rows):
        return rows[parted, y_a] - rows[parted, y_b]

    of_a, of_b = lead(log_p(tiny, a, parted + 1, keep)), lead(log_p(tiny, b, parted + 1))
    assert found.differences == pytest.approx((of_a, of_b), abs=1e-9)
    assert set(found.effects) == {"encoder", "decoder", "cross"}
    for kind, effects in found.effects.items():
        n_queries = len(a.source_tokens) if kind == "encoder" else parted + 1
        assert effects.shape[-1] == n_queries and effects.ndim == (3 if by == "head" else 2)
        for layer, *at in np.ndindex(*effects.shape):
            put = putting(keep, BY[by], Site(kind, layer), tuple(at))
            expected = (lead(log_p(tiny, b, parted + 1, put)) - of_b) / (of_a - of_b)
            assert effects[layer, *at] == pytest.approx(expected, abs=1e-9)
        assert kind == "decoder" or np.abs(effects).max() > 0.05


def test_with_all_heads_of_cross_attention_of_a_it_is_a_and_a_layer_is_all_its_heads(tiny):
    """What was read is the same up to there, and of the source nothing else comes in."""
    a, b = tv.decode(tiny, A), tv.decode(tiny, B)
    found = tv.patch(tiny, a, b, by="layer")
    heads = [place for place in all_heads(tiny.network.sizes) if place.kind == "cross"]
    of_every, of_none = (torch.as_tensor(patched(tiny, a, b, some)).log_softmax(-1).numpy() for some in (heads, []))
    of_a, of_b = (log_p(tiny, run, found.step + 1) for run in (a, b))
    assert np.allclose(of_every, of_a, atol=1e-12) and of_every.shape == of_a.shape
    assert np.allclose(of_none, of_b, atol=1e-12) and np.abs(of_every - of_b).max() > 0.1
    y_a, y_b = tiny.task.target_vocabulary.encode(found.tokens)
    before = found.differences[1]
    for kind, layer, query in (("encoder", 1, 2), ("cross", 0, found.step), ("decoder", 2, found.step)):
        logits = patched(tiny, a, b, [HeadAddress(kind, layer, head) for head in range(5)], query)
        effect = (logits[-1, y_a] - logits[-1, y_b] - before) / (found.differences[0] - before)
        assert found.effects[kind][layer, query] == pytest.approx(effect, abs=1e-9)


def test_the_head_that_copies_is_found_where_the_letter_is_written():
    """Alone it does all of it; of two each does half; the rest nothing, and no other row matters."""
    for copiers in ((0,), (0, 1)):
        model = planted.copying(*copiers)
        a, b = tv.decode(model, "cafedbgh"), tv.decode(model, "caffdbgh")
        found = tv.patch(model, a, b)
        assert (found.step, found.tokens) == (3, ("e", "f"))
        expected = np.zeros((1, 4, 4))
        expected[0, copiers, 3] = 1 / len(copiers)
        assert np.allclose(found.effects["cross"], expected, atol=1e-6)
        best = found.largest(len(copiers))
        assert {(str(each.place), each.query) for each in best} == {(f"cross.1.{head + 1}", 3) for head in copiers}
        assert best[0].value == pytest.approx(1 / len(copiers))
        assert not found.effects["encoder"].any() and not found.effects["decoder"].any()
        if copiers == (0,):  # With it b writes what a wrote, and with another what it wrote itself.
            copies, decorates = (patched_run(model, a, b, AttentionAddress("cross", 0, head), 3) for head in (0, 1))
            of_a, of_b, of_patched = copies.of_both
            assert copies.tokens[:4] == tuple("cafe") and of_patched == pytest.approx(of_a) and of_a[0] > 0.9 > 0.1 > of_b[0]
            assert decorates.tokens == b.output_tokens and decorates.of_both[2] == pytest.approx(of_b)


@pytest.mark.parametrize(("place", "query"), [("cross.1.2", 1), ("encoder.2.3", 2), ("cross.1", 1), ("decoder.1.4", 0)])
def test_the_run_that_comes_of_it_is_greedy_with_the_place_in_every_pass(tiny, place, query):
    """Step by step through the model, without anything of `attribution`."""
    a, b = tv.decode(tiny, A), tv.decode(tiny, B, edits=["encoder.1.1:zero"])
    kind, layer, *head = place.split(".")
    where = AttentionAddress(kind, int(layer) - 1, *(int(number) - 1 for number in head))
    found = patched_run(tiny, a, b, where, query)
    step = tv.patch(tiny, a, b).step
    name = BY["head" if head else "layer"]
    keep = RecordTap(name)
    put = putting(keep, name, Site(where.kind, int(layer) - 1), (*(() if where.head is None else (where.head,)), query))
    of_a, of_b = (log_p(tiny, run, step + 1, tap)[step] for run, tap in ((a, keep), (b, None)))
    source, read, written = plain.ids(tiny, b)
    changing = changing_tap(plain_edits.read(b.edits), None, tiny.network.sizes)
    read, ids = read[: step + 1], written[:step]
    while True:
        rows = plain.log_p(tiny, source, read, compose(changing, put))
        if len(ids) == step:
            of_patched, before = rows[step], [rows[t, token] for t, token in enumerate(ids)]
        ids.append(int(rows[-1].argmax()))
        before.append(rows[-1].max())
        if tiny.task.target_vocabulary.decode([ids[-1]])[0] == "<end>" or len(ids) == max(a.n_steps, b.n_steps):
            break
        read.append(ids[-1])
    assert found.tokens == tuple(tiny.task.target_vocabulary.decode(ids))
    assert found.probabilities == pytest.approx(np.exp(before), abs=1e-9)
    both = tiny.task.target_vocabulary.encode([run.output_tokens[step] for run in (a, b)])
    assert np.allclose(found.of_both, [[np.exp(rows[token]) for token in both] for rows in (of_a, of_b, of_patched)])


def test_what_it_takes_is_said_beforehand_and_bounded(tiny, monkeypatch):
    a, b = tv.decode(tiny, A), tv.decode(tiny, B)
    found = tv.patch(tiny, a, b)
    asked, shares = extent(tiny, a, b), []
    assert asked.n_places == sum(each.size for each in found.effects.values())
    assert asked.n_layers == sum(map(len, found.layers.values())) == 8
    some = tv.patch(tiny, a, b, where=["encoder.1", "decoder.1", "decoder.3", "cross.1", "cross.3"], on_progress=shares.append)
    for kind, effects in some.effects.items():
        assert some.layers[kind] == ((0,) if kind == "encoder" else (0, 2))
        assert np.allclose(effects, found.effects[kind][list(some.layers[kind])], atol=1e-12)
        assert some.at(AttentionAddress(kind, 0, 1), 1) == PatchEffect(AttentionAddress(kind, 0, 1), 1, effects[0, 1, 1])
        assert (
            some.at(AttentionAddress(kind, 1, 1), 1)
            is None
            is found.at(AttentionAddress(kind, 1), 1)
            is found.at(AttentionAddress(kind, 1, 5), 1)
        )
    assert shares == sorted(shares) and shares[-1] == 1
    with pytest.raises(OptionError, match=r"tiny has no layer decoder\.4; its decoder attention has layers 1 to 3"):
        tv.patch(tiny, a, b, where="decoder.4")
    monkeypatch.setattr(attribution_patch, "MOST_WORK", asked.n_tokens * tiny.n_parameters * asked.n_places * 0.5)
    with pytest.raises(OptionError, match=rf"{asked.n_places} places are too many for tiny.*, or 4 of 8 layers by head"):
        tv.patch(tiny, a, b)
    assert tv.patch(tiny, a, b, by="layer").effects["cross"].shape == (3, found.step + 1)


def test_what_cannot_be_patched_is_refused(tiny):
    a, b = tv.decode(tiny, A), tv.decode(tiny, B)
    drawn = [tv.decode(tiny, A, target=letters) for letters in ("ol", "oe")]
    refused = {
        "A read 7 source tokens and B 4: patching needs the same number": lambda: tv.patch(tiny, a, tv.decode(tiny, "lo")),
        "both runs write the same tokens": lambda: tv.patch(tiny, a, a),
        "in run B an edit or a mistake lets rows": lambda: tv.patch(tiny, a, tv.decode(tiny, B, edits=["decoder:off"])),
        "both runs prefer A's token equally": lambda: tv.patch(tiny, *drawn),
        "by='row' is not known; choose one of head, layer": lambda: tv.patch(tiny, a, b, by="row"),
        "'self': kind 'self' is not known; choose one of encoder": lambda: tv.patch(tiny, a, b, where="self"),
        r"cross\.1\.1 is one head": lambda: tv.patch(tiny, a, b, where="cross.1.1"),
        "where is empty": lambda: tv.patch(tiny, a, b, where=[]),
        r"tiny has no head cross\.1\.6": lambda: patched(tiny, a, b, [HeadAddress("cross", 0, 5)]),
        r"query=7 is not possible for encoder\.1\.1; it has rows 0 to 6": lambda: patched(
            tiny, a, b, [HeadAddress("encoder", 0, 0)], 7
        ),
        "b is str, not a Trace": lambda: tv.patch(tiny, a, B),  # ty: ignore
    }
    for match, call in refused.items():
        with pytest.raises(OptionError, match=match):
            call()
