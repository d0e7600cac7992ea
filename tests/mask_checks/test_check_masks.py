"""The certificate: passes what is sound, fails for every mistake, and names the right one."""

import json
from functools import partial

import pytest
import torch

import transformer_viz as tv
from tests.mask_checks.zoo.parts import Tiny, V
from transformer_viz.errors import OptionError
from transformer_viz.model.mistakes import MISTAKES

slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["reverse-small", slow("reverse")])
def shipped(request):
    return tv.load_checkpoint(request.param, "cpu")


@pytest.fixture(scope="module")
def random_checkpoint(make_model, make_tiny):
    return make_tiny(make_model(4, n_encoder_layers=1, n_decoder_layers=2))


def test_every_shipped_checkpoint_is_sound(shipped):
    report = tv.check_masks(shipped)
    assert report.sound
    assert str(report).startswith("Sound")
    assert report.checked["future"] == report.checked["source padding"] == report.checked["target padding"] == 0
    # Of some processors' sums not even the last digit changes with who else is in the batch.
    assert 0 <= report.checked["batch invariance"] < 1e-4


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_fails_for_every_mistake_and_names_it(shipped, mistake):
    report = tv.check_masks(shipped, mistake=mistake, replacements=1)
    assert not report.sound
    assert report.causes == (mistake,)
    assert MISTAKES[mistake].fixed_code in str(report)
    json.dumps(report.to_json(), allow_nan=False)


@pytest.mark.parametrize("seed", [1, *map(slow, (2, 3))])
@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_on_random_models_and_several_seeds_too(random_checkpoint, mistake, seed):
    report = tv.check_masks(random_checkpoint, mistake=mistake, seed=seed, replacements=1)
    assert report.sound == (mistake is None)
    assert report.causes == (() if mistake is None else (mistake,))


def test_the_worst_place_is_where_the_leak_is(random_checkpoint):
    """One cell of one head, opened by an edit: query 2 may see token 5, which comes later."""
    report = tv.check_masks(random_checkpoint, edits=["decoder.2.3:2-5"], replacements=1)
    future = next(finding for finding in report.findings if finding.rule == "future")
    look = future.look
    assert look is not None
    assert (look.kind, look.layer, look.head, look.query, look.key) == ("decoder", 1, 2, 1, 4)
    assert report.causes == ()
    assert look.weight > 0
    assert (future.kind, future.layer, future.head, future.query, future.key) == ("decoder", 1, 2, 1, 4)
    assert "layer 2 head 3, query 2 puts a weight of" in str(report)


@pytest.mark.parametrize(
    ("edits", "rules"),
    [
        ("cross:off", {"source padding", "batch invariance"}),
        ("encoder:off", {"source padding", "batch invariance"}),
        ("decoder:off", {"future", "target padding", "batch invariance"}),
        ("cross.1.1:zero", set()),
        ("cross:2-2", set()),
        ("cross:*=4", {"source padding", "batch invariance"}),
    ],
)
def test_edits_are_certified_as_well(random_checkpoint, edits, rules):
    report = tv.check_masks(random_checkpoint, edits=edits.split(","), replacements=1)
    assert {finding.rule for finding in report.findings} == rules


def test_needless_masking_is_noted_and_is_no_leak(random_checkpoint):
    report = tv.check_masks(random_checkpoint, edits=["cross:2-3"], replacements=1)
    assert report.sound
    assert any("query 2, key 3" in note for note in report.notes)


def test_two_answers_to_one_question_are_no_leak():
    report = tv.check_masks(lambda source, target: torch.rand(*target.shape, V), vocabulary_size=V, pad_id=0)
    assert report.verdict == "not deterministic"
    assert not report.sound and not report.findings
    assert ".eval()" in str(report)


def test_half_precision_is_sound_and_what_was_allowed_is_said():
    report = tv.check_masks(Tiny().bfloat16(), vocabulary_size=V, max_length=4, replacements=1)
    assert report.sound
    precision = report.to_json()["precision"]
    assert (precision["own"], precision["computed_in"], precision["why_coarser"]) == ("bfloat16", "float64", "")
    assert precision["tolerance"] == {"same_shape": 1e-9, "other_shape": 1e-9}
    assert "Computed in float64, the model's own is bfloat16. Allowed is a change of 1e-09." in str(report)


def test_a_model_that_depends_on_the_length_of_the_target_is_named():
    def from_the_end(source, target):
        return torch.arange(target.shape[1]).flip(0)[None, :, None] * torch.ones(len(target), 1, V)

    report = tv.check_masks(from_the_end, vocabulary_size=V, pad_id=None, replacements=1)
    assert [finding.rule for finding in report.findings] == ["target length"]
    assert "it depends on the length of the target" in str(report)
    assert report.verdict == "leaking" and report.causes == ()
    assert report.to_json()["findings"][0]["rule"] == "target length"


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
        (lambda s, t: t, {"vocabulary_size": V}, "returned a tensor"),
        (lambda s, t: None, {"vocabulary_size": V}, "NoneType"),
        (lambda s, t: 1 / 0, {"vocabulary_size": V}, "ZeroDivisionError"),
        (lambda s, t: t, {}, "vocabulary_size=None"),
        (lambda s, t: t, {"vocabulary_size": V, "pad_id": V}, "pad_id=20"),
        (lambda s, t: t, {"vocabulary_size": 3, "avoid": [1]}, "at least 2"),
        (lambda s, t: t, {"vocabulary_size": V, "max_length": 1}, "max_length=1"),
        (lambda s, t: t, {"vocabulary_size": V, "replacements": 0}, "replacements=0"),
        (lambda s, t: t, {"vocabulary_size": V, "mistake": "no-causal"}, "need a checkpoint"),
    ],
)
def test_impossible_questions_are_named(f, options, named):
    with pytest.raises(OptionError, match=named):
        tv.check_masks(f, **options)


def test_a_checkpoint_knows_its_own_vocabulary(tiny):
    with pytest.raises(OptionError, match="are for callables"):
        tv.check_masks(tiny, vocabulary_size=V)


def test_progress_counts_every_pass_and_may_end_the_check(random_checkpoint):
    shares = []
    report = tv.check_masks(random_checkpoint, on_progress=shares.append)
    assert shares == [n / report.replacements for n in range(report.replacements)]

    def enough(share):
        if share > 0.5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        tv.check_masks(random_checkpoint, on_progress=enough)
