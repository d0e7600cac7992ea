"""Edited and mistaken runs against a second, plain computation of the same change."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.plain_transformer import PlainTransformer
from tests.taps import FunctionTap
from tests.tracing.test_decode import assert_same_run
from transformer_viz import decode, load_trace, save_trace
from transformer_viz.model import mistakes
from transformer_viz.terms import KINDS, MISTAKES


def weights_of(trace, kind) -> np.ndarray:
    return trace.attentions[kind].weights


def by_hand(checkpoint, trace, masked_of, forced=(), dead=()):
    """A teacher-forced pass in which `masked_of(kind, layer, head)` is the mask: in numpy, no tap."""
    plain = PlainTransformer(checkpoint.network)
    plain.masked_of, plain.forced, plain.dead = masked_of, forced, dead
    ids = checkpoint.task.source_vocabulary.ids
    logits = plain.read([ids[token] for token in trace.source_tokens], [ids[token] for token in trace.target_tokens])
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True)), {at: site["weights"] for at, site in plain.sites.items()}


def right_masks(trace):
    n, s = len(trace.steps), len(trace.source_tokens)
    padded = np.array([token == "<pad>" for token in trace.source_tokens])
    return {"encoder": np.tile(padded, (s, 1)), "decoder": np.triu(np.ones((n, n), bool), 1), "cross": np.tile(padded, (n, 1))}


def assert_is_by_hand(checkpoint, trace, masked_of, forced=(), dead=(), last_only=False):
    log_p, weights = by_hand(checkpoint, trace, masked_of, forced, dead)
    for kind in KINDS:
        given = weights_of(trace, kind)
        for layer in range(given.shape[0]):
            for head in range(given.shape[1]):
                np.testing.assert_allclose(given[layer, head], weights[kind, layer][head], atol=1e-6)
                drawn = np.broadcast_to(trace.attentions[kind].mask, given.shape)[layer, head]
                np.testing.assert_array_equal(drawn, masked_of(kind, layer, head))
    steps = [len(trace.steps) - 1] if last_only else range(len(trace.steps))
    for t in steps:
        number = checkpoint.task.target_vocabulary.ids[trace.steps[t].token]
        assert trace.steps[t].log_probability == pytest.approx(log_p[t, number], abs=1e-6)
        assert log_p[t].max() == pytest.approx(log_p[t, number], abs=1e-9)


def test_the_second_computation_agrees_where_nothing_is_changed(tiny):
    trace = decode(tiny, "hello", pad_to=9)
    masks = right_masks(trace)
    assert_is_by_hand(tiny, trace, lambda kind, layer, head: masks[kind])


ALL = slice(None)
FLIPS: list[tuple[str, list[tuple[str, int | None, int | None, Any]]]] = [
    # edits, and the kind, layer, head and cells (query, key) that they flip; None are those of the future
    ("encoder:off", [("encoder", None, None, (ALL, slice(7, 9)))]),
    ("decoder:off", [("decoder", None, None, None)]),
    ("cross:off", [("cross", None, None, (ALL, slice(7, 9)))]),
    ("cross:3-5", [("cross", None, None, (2, 4))]),
    ("cross:3-9", [("cross", None, None, (2, 8))]),
    ("cross:2-*", [("cross", None, None, (1, ALL))]),
    ("cross:*-2", [("cross", None, None, (ALL, 1))]),
    ("encoder:1-4", [("encoder", None, None, (0, 3))]),
    ("encoder:4-*", [("encoder", None, None, (3, ALL))]),
    ("decoder:3-2", [("decoder", None, None, (2, 1))]),
    ("decoder:2-3", [("decoder", None, None, (1, 2))]),
    ("decoder:*-2", [("decoder", None, None, (ALL, 1))]),
    ("cross.2.3:2-4,decoder.3.5:2-1", [("cross", 1, 2, (1, 3)), ("decoder", 2, 4, (1, 0))]),
]


@pytest.mark.parametrize(("edits", "flips"), FLIPS, ids=[edits for edits, _ in FLIPS])
def test_masks_that_are_off_and_flipped_cells_rows_and_columns(tiny, edits, flips):
    trace = decode(tiny, "hello", pad_to=9, edits=[edits])
    assert trace.edits == tuple(edits.split(","))
    right = right_masks(trace)

    def masked_of(kind, layer, head):
        masked = right[kind].copy()
        for of_kind, of_layer, of_head, cells in flips:
            if of_kind == kind and of_layer in (None, layer) and of_head in (None, head):
                flipped = np.triu_indices(len(masked), 1) if cells is None else cells
                masked[flipped] = ~masked[flipped]
        return masked

    # Where rows look ahead, every step is a pass of its own; only the last one is over everything.
    looks_ahead = bool(np.triu(~masked_of("decoder", 0, 0), 1).any())
    assert_is_by_hand(tiny, trace, masked_of, last_only=looks_ahead)
    for kind in KINDS:
        changed = np.broadcast_to(trace.attentions[kind].reasons == 4, weights_of(trace, kind).shape)
        wanted = [[masked_of(kind, layer, head) & ~right[kind] for head in range(5)] for layer in range(len(changed))]
        np.testing.assert_array_equal(changed, wanted)


def test_heads_off_and_forced_rows(tiny):
    trace = decode(tiny, "hello", edits=["cross.2.3:zero,encoder.1.5:zero", "cross.1.2:2=4@0.75+1@0.25", "decoder.3.1:3=2"])
    masks = right_masks(trace)
    row = np.zeros(7)
    row[3], row[0] = 0.75, 0.25
    other = np.zeros(len(trace.steps))
    other[1] = 1.0
    forced = [("cross", 0, 1, 1, row), ("decoder", 2, 0, 2, other)]
    dead = {("cross", 1, 2), ("encoder", 0, 4)}
    assert_is_by_hand(tiny, trace, lambda kind, layer, head: masks[kind], forced, dead)


def test_a_forced_row_is_allowed_where_it_looks(tiny):
    trace = decode(tiny, "hello", pad_to=9, edits=["cross.1.2:2=9"])
    assert weights_of(trace, "cross")[0, 1, 1, 8] == 1
    assert not trace.cross.mask[0, 1, 1, 8]
    assert trace.cross.mask[0, 1, 0, 8]
    for kind in KINDS:
        assert not weights_of(trace, kind)[np.broadcast_to(trace.attentions[kind].mask, weights_of(trace, kind).shape)].any()


def test_every_step_without_a_causal_mask_is_a_pass_over_what_was_read(tiny):
    trace = decode(tiny, "hello", mistake="no-causal")
    source = torch.tensor([tiny.task.source_vocabulary.encode(trace.source_tokens)])
    ids = tiny.task.target_vocabulary.encode(trace.target_tokens)

    @FunctionTap
    def no_mask(site, name, value):
        return torch.zeros_like(value) if name == "mask" and site.kind == "decoder" else value

    for t, step in enumerate(trace.steps):
        log_p = tiny.network(source, torch.tensor([ids[: t + 1]]), tap=no_mask)[0, -1].log_softmax(-1)
        assert step.log_probability == pytest.approx(float(log_p.max()), abs=1e-6)
        assert tiny.task.target_vocabulary.tokens[int(log_p.argmax())] == step.token


OPENING = ("encoder:off", "cross:off", "decoder:off", "cross.1.2:off", "encoder:*-2", "cross:1-*", "cross.2.1:1=uniform")


@pytest.mark.parametrize(
    "change",
    [{"mistake": "no-causal"}, {"mistake": "causal-off-by-one"}, *({"edits": [edit]} for edit in ("decoder:*-2", *OPENING))],
    ids=lambda change: "".join(change.get("edits", change.get("mistake", ""))),
)
def test_a_batch_is_what_its_sentences_are_alone_even_where_rows_look_ahead(tiny, change):
    """Sentences that have ended get tokens appended, and shorter sources are padded; nobody may see those."""
    texts = ["hello", "a", "cad b"]
    together = decode(tiny, texts, **change)
    for text, trace in zip(texts, together, strict=True):
        assert_same_run(trace, decode(tiny, text, **change))


def test_uncached_decoding_is_cached_decoding_where_nothing_looks_ahead(tiny):
    """An edit of the decoder's mask decodes without a cache; this one changes nothing."""
    plain = decode(tiny, ["hello", "bad"])
    for a, b in zip(plain, decode(tiny, ["hello", "bad"], edits=["decoder.1.1:1-1,decoder.1.1:1-1"]), strict=True):
        assert_same_run(a, b)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_leave_the_masks_where_they_do_not_belong(tiny, mistake):
    """What is recorded is what was in force; a run with a mistake is named, saved and loaded."""
    assert tuple(mistakes.MISTAKES) == MISTAKES
    trace = decode(tiny, ["hello", "a"], mistake=mistake, pad_to=9)[0]
    right = decode(tiny, ["hello", "a"], pad_to=9)[0]
    assert trace.mistake == mistake
    encoder, decoder, cross = (not np.array_equal(trace.attentions[kind].mask, right.attentions[kind].mask) for kind in KINDS)
    if mistake in ("no-causal", "causal-off-by-one"):
        assert (encoder, decoder) == (False, True)
    if mistake == "source-mask-forgotten":
        assert (encoder, cross) == (False, True)
    if mistake in ("invalid-by-invalid", "wrong-axis", "wrong-sign", "padded-queries-nan"):
        assert encoder


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistakes_reasons_are_its_own(tiny, mistake):
    """Padding that a mistake forgets is no reason, even where the future masks the cell as well."""
    trace = decode(tiny, ["hello", "a"], target=["olleh", "a"], pad_to=9, pad_target_to=8, mistake=mistake)[1]
    padded = np.arange(8) >= 2
    ahead = np.triu(np.ones((8, 8), dtype=bool), 1)
    by_padding = {
        "invalid-by-invalid": padded[:, None] & padded[None],
        "wrong-axis": padded[:, None] & padded[None],
        "wrong-sign": np.zeros((8, 8), dtype=bool),
    }.get(mistake, np.broadcast_to(padded, (8, 8)))
    by_future = {
        "no-causal": np.zeros((8, 8), dtype=bool),
        "wrong-sign": np.zeros((8, 8), dtype=bool),
        "causal-off-by-one": np.triu(ahead, 2),
    }.get(mistake, ahead)
    reasons = trace.decoder.reasons
    np.testing.assert_array_equal((reasons & 1) > 0, by_padding)
    np.testing.assert_array_equal((reasons & 2) > 0, by_future)
    np.testing.assert_array_equal(trace.decoder.mask & (reasons == 4), trace.decoder.mask & ~by_padding & ~by_future)


def test_only_a_run_with_a_mistake_holds_nan_and_keeps_it_in_its_file(tiny, tmp_path):
    trace = decode(tiny, "hello", mistake="padded-queries-nan", pad_to=9)
    assert np.isnan(weights_of(trace, "encoder")[0, :, 7:]).all()
    assert not np.isnan(weights_of(trace, "encoder")[0, :, :7]).any()
    assert math.isnan(trace.steps[0].probability)
    save_trace(trace, tmp_path / "t.npz")
    again = load_trace(tmp_path / "t.npz")
    assert again.mistake == "padded-queries-nan"
    assert math.isnan(again.steps[0].log_probability)
    np.testing.assert_array_equal(again.encoder.weights, weights_of(trace, "encoder"))


def test_the_wrong_sign_spreads_evenly_over_what_is_forbidden_in_float32(make_tiny, make_model):
    checkpoint = make_tiny(make_model(3).float())
    trace = decode(checkpoint, "hello", target="hello", mistake="wrong-sign")
    n = len(trace.steps)
    for row in range(n - 1):
        np.testing.assert_allclose(weights_of(trace, "decoder")[0, :, row, row + 1 :], 1 / (n - 1 - row), rtol=1e-6)
        assert not weights_of(trace, "decoder")[0, :, row, : row + 1].any()


# ---- teacher forcing


def test_a_forced_target_is_one_pass_with_its_padding_kept(tiny):
    texts, targets = ["hello", "a", "dad"], ["ab", "hello a", ""]
    together = decode(tiny, texts, target=targets, pad_to=8, pad_target_to=9, record=("weights", "scores"))
    for text, target, trace in zip(texts, targets, together, strict=True):
        own = len(target) + 1
        assert trace.text == target
        assert trace.output_tokens == (*target, "<end>", *["<pad>"] * (9 - own))
        assert trace.target_tokens == ("<start>", *target, *["<pad>"] * (9 - own))
        assert len(trace.source_tokens) == 8
        padding = np.arange(9) >= own
        reasons = np.triu(np.full((9, 9), 2), 1) + padding * 1
        np.testing.assert_array_equal(trace.decoder.reasons, reasons)
        alone = decode(tiny, text, target=tuple(target))
        size = len(text) + 2
        np.testing.assert_allclose(weights_of(trace, "cross")[:, :, :own, :size], weights_of(alone, "cross"), atol=1e-6)
        for a, b in zip(alone.steps, trace.steps[:own], strict=True):
            assert a.log_probability == pytest.approx(b.log_probability, abs=1e-6)
        scores = trace.decoder.scores
        assert scores is not None
        weights = np.where(trace.decoder.mask, -np.inf, scores)
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        np.testing.assert_allclose(weights / weights.sum(-1, keepdims=True), weights_of(trace, "decoder"), atol=1e-6)


def test_scores_are_kept_only_when_asked(tiny, hello, tmp_path):
    assert all(attention.scores is None for attention in hello.attentions.values())
    trace = decode(tiny, "hello", record=["scores"])
    assert trace.decoder.scores is not None
    assert np.isnan(trace.decoder.scores).sum() == 3 * 5 * len(trace.steps) * (len(trace.steps) - 1) / 2
    save_trace(trace, tmp_path / "t.npz")
    np.testing.assert_array_equal(load_trace(tmp_path / "t.npz").cross.scores, trace.cross.scores)
