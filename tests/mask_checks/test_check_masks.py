"""The certificate: passes what is sound, fails for every mistake, and names the right one."""

import json
from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.mask_checks.zoo.parts import Tiny, V
from tests.needs import slow
from transformer_viz.errors import OptionError
from transformer_viz.model.mistakes import MISTAKES

QUICK = {"no-causal", "padded-queries-nan", "wrong-axis"}
"""Mistakes that `make test` makes too: of what is seen, of what becomes of it, and of the softmax."""


@pytest.fixture(scope="module", params=["reverse-small", slow("reverse")])
def shipped(request):
    return tv.load_checkpoint(request.param, "cpu")


@pytest.fixture(scope="module")
def random_checkpoint(make_model, make_tiny):
    return make_tiny(make_model(4, n_encoder_layers=1, n_decoder_layers=2))


def test_every_shipped_checkpoint_is_sound(shipped):
    report = tv.check_masks(shipped)
    assert report.sound and str(report).startswith("Sound")
    assert [report.checked[rule] for rule in ("future", "source padding", "target padding")] == [0, 0, 0]
    # Of some processors' sums not even the last digit changes with who else is in the batch.
    assert 0 <= report.checked["batch invariance"] < 1e-4


@pytest.mark.parametrize("mistake", [mistake if mistake in QUICK else slow(mistake) for mistake in MISTAKES])
def test_it_fails_for_every_mistake_and_names_it(shipped, mistake):
    report = tv.check_masks(shipped, mistake=mistake, replacements=1)
    assert (report.sound, report.causes) == (False, (mistake,))
    assert MISTAKES[mistake].fixed_code in str(report)
    json.dumps(report.to_json(), allow_nan=False)


def test_the_worst_place_is_where_the_leak_is(random_checkpoint):
    """One cell of one head, opened by an edit: query 2 may see token 5, which comes later."""
    report = tv.check_masks(random_checkpoint, edits=["decoder.2.3:2-5"], replacements=1)
    future = next(finding for finding in report.findings if finding.rule == "future")
    look = future.look
    assert look is not None and look.weight > 0 and report.causes == ()
    for each in (look, future):
        assert (each.kind, each.layer, each.head, each.query, each.key) == ("decoder", 1, 2, 1, 4)
    assert "layer 2 head 3, query 2 puts a weight of" in str(report)


@pytest.mark.parametrize(
    ("edits", "rules"),
    [
        ("encoder:off", {"source padding", "batch invariance"}),
        ("decoder:off", {"future", "target padding", "batch invariance"}),
        ("cross.1.1:zero", set()),
        ("cross:2-3", set()),
        ("cross:*=4", {"source padding", "batch invariance"}),
    ],
)
def test_edits_are_certified_as_well(random_checkpoint, edits, rules):
    """Needless masking is noted and is no leak."""
    report = tv.check_masks(random_checkpoint, edits=[edits], replacements=1)
    assert {finding.rule for finding in report.findings} == rules
    assert any("query 2, key 3" in note for note in report.notes) == (edits == "cross:2-3")


def test_half_precision_is_sound_and_what_was_allowed_is_said():
    report = tv.check_masks(Tiny().bfloat16(), vocabulary_size=V, max_length=4, replacements=1)
    precision = report.to_json()["precision"]
    assert report.sound and precision["tolerance"] == {"same_shape": 1e-9, "other_shape": 1e-9}
    assert (precision["own"], precision["computed_in"], precision["why_coarser"]) == ("bfloat16", "float64", "")
    assert "Computed in float64, the model's own is bfloat16. Allowed is a change of 1e-09." in str(report)
    options: dict[str, Any] = {"vocabulary_size": V, "pad_id": None}
    report = tv.check_masks(lambda source, target: torch.rand(*target.shape, V), **options)
    assert report.verdict == "not deterministic" and not report.findings and ".eval()" in str(report)
    report = tv.check_masks(lambda source, target: torch.ones(*target.shape, V) * target.shape[1], **options)
    assert report.verdict == "leaking" and "it depends on the length of the target" in str(report)


@pytest.mark.parametrize(("least", "unchecked"), [(5, "length and padding at its end"), (3, "shorter ones")])
def test_a_callable_that_takes_no_short_targets_is_checked_at_what_it_takes(least, unchecked):
    def long_only(source, target):
        if not least <= target.shape[1] <= 12:
            raise ValueError(f"{least} tokens are needed")
        return torch.ones(*target.shape, V).cumsum(1)

    report = tv.check_masks(long_only, vocabulary_size=V, pad_id=0, max_length=5, replacements=1)
    assert report.sound
    (note,) = report.notes
    assert f"{unchecked} were not checked" in note and f"{least} tokens are needed" in note


@pytest.mark.parametrize(
    ("f", "options", "named"),
    [
        (lambda s, t: t, {}, "returned a tensor"),
        (lambda s, t: None, {}, "NoneType"),
        (lambda s, t: 1 / 0, {}, "ZeroDivisionError"),
        (lambda s, t: t, {"vocabulary_size": None}, "vocabulary_size is needed"),
        (lambda s, t: t, {"pad_id": V}, "pad_id=20"),
        (lambda s, t: t, {"vocabulary_size": 3, "avoid": [1]}, "at least 2"),
        (lambda s, t: t, {"max_length": 1}, "max_length=1"),
        (lambda s, t: t, {"replacements": 0}, "replacements=0"),
        (lambda s, t: t, {"mistake": "no-causal"}, "need a checkpoint"),
        (lambda s, t: t, {"on_progress": print}, "on_progress needs a checkpoint.* max_length, avoid, replacements and seed"),
        (lambda s, t: np.ones((*t.shape, V)), {}, "returned ndarray .* torch tensor"),
    ],
)
def test_impossible_questions_are_named(tiny, f, options, named):
    given: dict[str, Any] = {"vocabulary_size": V, **options}
    with pytest.raises(OptionError, match=named):
        tv.check_masks(f, **given)


@pytest.mark.parametrize("given", [{"vocabulary_size": V}, {"pad_id": 7}, {"pad_id": 0}, {"pad_id": None}, {"max_length": 4}])
def test_what_a_loaded_model_knows_itself_is_refused(tiny, given):
    with pytest.raises(OptionError, match=r"pad_id, max_length, avoid and causal are for callables.* Allowed are texts"):
        tv.check_masks(tiny, **given)


def test_progress_counts_every_pass_and_may_end_the_check(random_checkpoint):
    shares = []
    report = tv.check_masks(random_checkpoint, replacements=1, on_progress=shares.append)
    assert shares == [n / report.replacements for n in range(report.replacements)]

    def enough(share):
        if share > 0.5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        tv.check_masks(random_checkpoint, on_progress=enough)
