"""A covered run tells nothing of the steps from there on, and everything of those before."""

from dataclasses import replace

import numpy as np
import pytest

from tests.trace import planted
from transformer_viz import Trace, decode, load_checkpoint
from transformer_viz.terms import KINDS
from transformer_viz.trace.hidden_answer import HIDDEN, cover_rows, hide_answer


@pytest.fixture(scope="module")
def run() -> Trace:
    return decode(load_checkpoint("reverse", "cpu"), "hello", record=("weights", "scores"))


@pytest.mark.parametrize("step", range(7))
def test_only_what_is_before_the_step_is_told(run: Trace, step: int) -> None:
    hidden = hide_answer(run, step)
    assert hidden.output_tokens == (*run.output_tokens[:step], *[HIDDEN] * (6 - step))
    assert hidden.target_tokens == (*run.target_tokens[: step + 1], *[HIDDEN] * (6 - step - 1))
    assert hidden.text.startswith("olleh"[:step]) and set(hidden.text[step:]) <= {HIDDEN}
    assert hidden.steps[:step] == run.steps[:step]
    assert all(found.candidates == () and found.rank is None and found.probability == 0 for found in hidden.steps[step:])
    for kind in KINDS:
        weights, known = hidden.attentions[kind].weights, run.attentions[kind].weights
        n = len(hidden.attentions[kind].queries) if kind == "encoder" else step
        np.testing.assert_array_equal(weights[:, :, :n], known[:, :, :n])
        np.testing.assert_array_equal(hidden.attentions[kind].mask[:n], run.attentions[kind].mask[:n])
        assert not weights[:, :, n:].any() and hidden.attentions[kind].mask[n:].all()
    assert hidden.expected is hidden.expected_tokens is hidden.is_right is None
    assert set(hidden.alignment) == {None}
    assert [kind for kind in KINDS if hidden.attentions[kind].scores is not None] == ["encoder"]


def test_words_are_kept_apart_and_what_is_not_recorded_stays_so(run: Trace) -> None:
    words = replace(run, text="o l l e h")
    assert hide_answer(words, 2).text == "o l ? ? ? ?"
    unwritten = Trace.from_arrays(decoder=np.eye(3), target_tokens=["<s>", "the", "cat"], normalised=False)
    hidden = hide_answer(unwritten, 1)
    assert (hidden.target_tokens, hidden.output_tokens, hidden.steps, hidden.kinds) == (
        ("<s>", "the", HIDDEN),
        (),
        (),
        ("decoder",),
    )


def test_what_may_stand_at_mask_tokens_is_not_told() -> None:
    run = planted.filled()
    assert run.fills and hide_answer(run, 0).fills == ()
    assert hide_answer(run, 0).source_tokens == run.source_tokens


def test_of_a_prompt_what_was_given_is_never_covered_and_what_is_covered_has_no_ids() -> None:
    """They would tell what the labels hide."""
    trace = planted.grouped(planted.run((3, 4, 2)))
    hidden = hide_answer(trace, 0)
    assert hidden.output_tokens == (*trace.output_tokens[:3], HIDDEN, HIDDEN, HIDDEN)
    np.testing.assert_array_equal(hidden.decoder.weights[:, :, :3], trace.decoder.weights[:, :, :3])
    assert not hidden.decoder.weights[:, :, 3:].any()
    hidden = hide_answer(trace, 4)
    assert hidden.output_tokens == (*trace.output_tokens[:4], HIDDEN, HIDDEN)
    assert (hidden.target_ids, hidden.output_ids, hidden.groups) == (None, None, {})
    assert {step.token_id for step in hidden.steps[4:]} == {None}
    assert hidden.text == " ".join((trace.output_tokens[3], HIDDEN, HIDDEN))


def test_rows_of_one_kind_are_covered_alone(run: Trace) -> None:
    covered = cover_rows(run, "encoder", range(2, 3))
    assert covered.encoder.is_covered.tolist() == [False, False, True, False, False, False, False]
    assert not covered.encoder.weights[:, :, 2].any() and covered.encoder.weights[:, :, [1, 3]].all()
    assert not covered.decoder.is_covered.any() and covered.text == run.text
    masks = cover_rows(hide_answer(run, 3), "decoder", range(run.n_steps))
    assert masks.decoder.is_covered.all() and masks.cross.covered == range(3, 6) and masks.output_tokens[2] == "l"
