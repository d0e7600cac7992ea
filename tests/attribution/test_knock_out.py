"""Heads ablated, against edits that do the same, plain loops, and models whose heads are known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attribution import plain, planted
from transformer_viz.addresses import HeadAddress
from transformer_viz.attribution.knock_out import all_heads, knock_out, remove_heads
from transformer_viz.errors import OptionError
from transformer_viz.model.tap import ReplaceTap, Site

TEXTS = ("hello", "abc", "lo ad")


@pytest.fixture(scope="module")
def traces(tiny):
    return [tv.decode(tiny, text) for text in TEXTS]


def lost_by_edits(tiny, edits: list[str], texts: Sequence[str] = TEXTS) -> tuple[np.ndarray, list[bool]]:
    """Over the true answers: the change of log p of every token, and whether greedy decoding writes them."""
    change, exact = [], []
    for text in texts:
        answer = tuple(reversed(text))
        before, after = (tv.decode(tiny, text, target=answer, edits=each) for each in ([], edits))
        change += [b.log_probability - a.log_probability for a, b in zip(before.steps, after.steps, strict=True)]
        exact.append(tv.decode(tiny, text, edits=edits).is_right)
    return np.array(change), exact


@pytest.mark.parametrize(("how", "edit"), [("zero", "{}:zero"), ("uniform", "{}:*=uniform")])
def test_it_is_what_edits_do(tiny, traces, how, edit):
    """Uniform over the allowed keys: the edit spreads over all keys, which are the allowed ones in cross-attention."""
    found = knock_out(tiny, traces, how=how)
    kinds = ("encoder", "decoder", "cross") if how == "zero" else ("encoder", "cross")
    assert len(found.heads) == 5 * (2 + 3 + 3) and found.n_known == 3
    for each in (each for each in found.heads if each.place.kind in kinds and each.place.head == 2):
        change, exact = lost_by_edits(tiny, [edit.format(each.place)])
        assert each.log_p.value == pytest.approx(change.mean(), abs=1e-9)
        assert each.exact.value == np.mean(exact)
    assert max(abs(each.log_p.value) for each in found.heads) > 0.05


def test_uniform_is_over_the_allowed_keys_alone(tiny, traces):
    """In the decoder row t may look at t keys: an edit of each row spreads its weight over them."""
    rows = [f"decoder.2.4:{t}={'+'.join(f'{key}@{1 / t:.6f}' for key in range(1, t + 1))}" for t in range(1, 7)]
    change = [lost_by_edits(tiny, rows[: len(text) + 1], [text])[0] for text in TEXTS]
    expected = np.concatenate(change).mean()
    assert knock_out(tiny, traces, how="uniform").at("decoder.2.4").log_p.value == pytest.approx(expected, abs=1e-5)


def test_the_mean_is_one_vector_a_head_over_all_rows_of_all_texts(tiny, traces):
    """Put into each text by hand, with the answer read."""
    site, head, lost = Site("cross", 1), 4, []
    answers = [tv.decode(tiny, text, target=tuple(reversed(text))) for text in TEXTS]
    mean = torch.tensor(np.concatenate([plain.kept(tiny, trace, "heads")[site][head] for trace in answers]).mean(0))

    def put(at, heads):
        heads = heads.clone()
        heads[:, head] = mean if at == site else heads[:, head]
        return heads

    for trace in answers:
        source, read, written = plain.ids(tiny, trace)
        before, after = (plain.log_p(tiny, source, read, tap) for tap in (None, ReplaceTap("heads", put)))
        lost += [after[t, token] - before[t, token] for t, token in enumerate(written)]
    found = knock_out(tiny, traces, how="mean").at("cross.2.5")
    assert found.log_p.value == pytest.approx(np.mean(lost), abs=1e-12)


def test_what_is_left_suffices_and_none_of_it_can_be_spared():
    two = planted.copying(0, 1)
    runs = [tv.decode(two, text) for text in (planted.TEXT, "abba")]
    found = knock_out(two, runs)
    assert [each.exact.value for each in found.heads] == [1.0] * 12 and found.exact_before.value == 1.0
    gone, left = remove_heads(two, runs)
    assert len(gone) == 11 and len(left) == 1 and str(left[0]) in ("cross.1.1", "cross.1.2")
    assert {*gone, *left} == set(all_heads(two.network.sizes))
    assert remove_heads(two, runs, least=0.0)[1] == ()
    without = [f"{place}:zero" for place in gone]
    assert all(tv.decode(two, trace.source, edits=without).is_right for trace in runs)
    assert not tv.decode(two, "abba", edits=[*without, f"{left[0]}:zero"]).is_right


def test_one_head_alone_is_as_among_all(tiny, traces):
    place, shares = HeadAddress("cross", 1, 2), list[float]()
    [alone] = knock_out(tiny, traces, heads=[place], on_progress=shares.append).heads
    among = knock_out(tiny, traces).at("cross.2.3")
    assert [knock_out(tiny, traces, heads=one).heads for one in (place, "cross.2.3")] == [(alone,), (alone,)], "without a list"
    assert alone.log_p.value == pytest.approx(among.log_p.value, abs=1e-12)
    assert (alone.place, alone.exact, alone.stays.value) == (place, among.exact, pytest.approx(among.stays.value, nan_ok=True))
    assert shares == [0, 1 / 3, 2 / 3]
    with pytest.raises(OptionError, match=r"tiny has no head cross.9.1; .* layers 1 to 3, and heads 1 to 5"):
        knock_out(tiny, traces, heads=[HeadAddress("cross", 8, 0)])
    with pytest.raises(OptionError, match="how='half' is not known; choose one of zero, mean, uniform"):
        knock_out(tiny, traces, how="half")
    with pytest.raises(OptionError, match="over a list of one or more runs"):
        knock_out(tiny, [])


def test_answers_that_stay_are_of_those_that_were_right():
    """Of one text the true answer is never written, since its run was of other letters."""
    one = planted.copying(0)
    runs = [tv.decode(one, "abba"), replace(tv.decode(one, "hgfe"), expected_tokens=("a", "<end>"))]
    found = knock_out(one, runs)
    assert found.exact_before.value == 0.5
    assert [found.at(HeadAddress("cross", 0, head)).exact.value for head in (0, 1)] == [0, 0.5]
    assert [found.at(HeadAddress("cross", 0, head)).stays.value for head in (0, 1)] == [0, 1]
    assert np.isnan(knock_out(one, runs[1:]).at("cross.1.2").stays.value)
