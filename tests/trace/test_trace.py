"""A Trace's parts must fit together, and it never changes."""

import dataclasses

import numpy as np
import pytest

from tests.attentions import unmasked, with_parts
from transformer_viz.errors import OptionError, TraceError

KINDS = ("encoder", "decoder", "cross")


def test_a_trace_cannot_be_changed(hello):
    for kind in KINDS:
        for array in (hello.attentions[kind].weights, hello.attentions[kind].reasons, hello.attentions[kind].mask):
            with pytest.raises(ValueError, match="read-only"):
                array[..., 0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        hello.text = "olleh"
    with pytest.raises(dataclasses.FrozenInstanceError):
        hello.steps[0].token = "x"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del hello.steps


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: {"target_tokens": t.target_tokens[1:]}, ["target_tokens", "steps"]),
        (lambda t: {"output_tokens": (*t.output_tokens, "x")}, ["output_tokens", "steps"]),
        (lambda t: {"alignment": ()}, ["alignment", "0 entries"]),
        (lambda t: {"source_letters": t.source_letters[1:]}, ["source_letters", "7 source tokens"]),
        (
            lambda t: {"attentions": with_parts(t, "cross", weights=t.cross.weights.transpose(0, 1, 3, 2).copy())},
            ["cross", "query", "key"],
        ),
        (lambda t: {"attentions": with_parts(t, "cross", weights=t.cross.weights[0])}, ["cross", "layer, head"]),
        (lambda t: {"attentions": with_parts(t, "encoder", weights=t.encoder.weights[:0])}, ["encoder", "(0, 5, 7, 7)"]),
        (lambda t: {"attentions": with_parts(t, "decoder", weights=t.decoder.weights[..., :-1])}, ["decoder"]),
        (
            lambda t: {"attentions": with_parts(t, "encoder", weights=t.encoder.weights.astype(np.float64))},
            ["encoder", "float64"],
        ),
        (lambda t: {"attentions": {**t.attentions, "self": t.cross}}, ["'self'", "encoder, decoder, cross"]),
        (lambda t: {"attentions": with_parts(t, "cross", reasons=t.cross.mask)}, ["cross", "mask", "bool", "uint8"]),
        (lambda t: {"attentions": with_parts(t, "cross", reasons=t.cross.reasons.T)}, ["cross", "mask"]),
        (
            lambda t: {"attentions": with_parts(t, "cross", reasons=t.cross.reasons + np.uint8(9))},
            ["cross", "mask", "9"],
        ),
        (
            lambda t: {"attentions": with_parts(t, "cross", weights=t.cross.weights * np.float32("nan"))},
            ["cross", "not finite"],
        ),
        (lambda t: {"attentions": with_parts(t, "cross", scores=t.cross.weights[0])}, ["cross", "scores", "float32"]),
        (lambda t: {"attentions": with_parts(t, "cross", weights=-t.cross.weights)}, ["cross", "negative"]),
        (
            lambda t: {
                "steps": (),
                "output_tokens": (),
                "target_tokens": (),
                "alignment": (),
                "attentions": {"decoder": unmasked(np.zeros((3, 5, 0, 0), np.float32))},
            },
            ["decoder", "(3, 5, 0, 0)"],
        ),
    ],
)
def test_parts_that_do_not_fit_are_named(hello, change, named):
    with pytest.raises(TraceError) as caught:
        dataclasses.replace(hello, **change(hello))
    for part in named:
        assert part in str(caught.value)


def test_only_a_named_mistake_may_hold_nan(hello):
    broken = np.full_like(hello.cross.weights, np.nan)
    assert dataclasses.replace(hello, attentions=with_parts(hello, "cross", weights=broken), mistake="forgotten mask").mistake


def test_a_kind_that_a_run_does_not_have_is_absent(hello):
    """Decoder-only models have no encoder; nothing after the Trace may assume one."""
    trace = dataclasses.replace(hello, attentions={"decoder": hello.decoder})
    assert trace.kinds == ("decoder",)
    with pytest.raises(OptionError, match="this run has no cross attention; it has decoder"):
        _ = trace.cross
    assert set(trace.to_frame()["kind"]) == {"decoder"}


def test_masks_may_differ_by_layer_and_head(hello):
    reasons = np.zeros(hello.cross.weights.shape, np.uint8)
    reasons[1, 2, :, 3] = 4
    trace = dataclasses.replace(hello, attentions=with_parts(hello, "cross", reasons=reasons))
    assert trace.cross.mask.shape == hello.cross.weights.shape
    assert int(trace.cross.mask.sum()) == len(hello.steps)


def test_queries_and_keys_are_the_tokens_of_the_right_side(hello):
    assert hello.encoder.queries == hello.encoder.keys == hello.cross.keys == hello.source_tokens
    assert hello.decoder.queries == hello.decoder.keys == hello.cross.queries == hello.target_tokens
    with pytest.raises(OptionError, match=r"'self'.*encoder, decoder, cross"):
        _ = hello.attentions["self"]


def test_is_right_needs_the_answer_and_the_end(hello):
    assert dataclasses.replace(hello, text="olleh").is_right is True
    assert dataclasses.replace(hello, text="olleh", finished="length").is_right is False
    assert dataclasses.replace(hello, text="oleh").is_right is False
    assert dataclasses.replace(hello, expected=None, alignment=(None,) * hello.n_steps).is_right is None


def test_true_tokens_are_those_of_the_answer_by_position(hello):
    known = dataclasses.replace(hello, expected_tokens=("o", "l", "<end>"))
    assert [known.true_token(t) for t in range(5)] == ["o", "l", "<end>", None, None]
    assert dataclasses.replace(hello, expected_tokens=None).true_token(0) is None
    assert [hello.true_token(t) for t in range(7)] == [*"olleh", "<end>", None]


def test_what_was_not_recorded_is_empty(hello):
    """Outputs without probabilities, and neither; the query rows are those of the tokens that were read."""
    silent = dataclasses.replace(hello, steps=())
    assert silent.output_tokens == hello.output_tokens
    assert silent.n_steps == hello.n_steps == len(hello.steps)
    assert dataclasses.replace(silent, output_tokens=()).n_steps == hello.n_steps
