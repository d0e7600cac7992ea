"""Effects over many strings against decoding them one by one; and batches against sentences alone."""

import numpy as np
import pytest

import transformer_viz as tv
from transformer_viz import batches
from transformer_viz.errors import OptionError
from transformer_viz.mask_checks.effect import Effect, EffectInProgress, effect, fresh_strings


@pytest.fixture(scope="module")
def shipped():
    return tv.load_checkpoint("reverse", "cpu")


def test_nothing_changed_changes_nothing(tiny):
    found = effect(tiny, samples=40)
    assert (found.samples, found.changed) == (40, 0.0)
    assert found.exact_before == found.exact_after


def test_a_head_off_is_what_single_decodes_say(shipped):
    """No padding matters here, so the same strings alone must give the same shares."""
    found = effect(shipped, edits=["cross.1.1:zero"], samples=30, seed=3)
    rng = np.random.default_rng([3, 78])
    task = shipped.task
    lengths = rng.choice(task.evaluated_lengths, 30)
    texts = [task.sample(task.sources[i % 4], int(n), 1, rng)[0] for i, n in enumerate(lengths)]
    alone = [(tv.decode(shipped, text), tv.decode(shipped, text, edits=["cross.1.1:zero"])) for text in texts]
    before, after = (sum(bool(trace.is_right) for trace in traces) / 30 for traces in zip(*alone, strict=True))
    assert (found.exact_before, found.exact_after) == (before, after)
    assert after < before
    assert found.changed == sum(a.output_tokens != b.output_tokens for a, b in alone) / 30


def test_what_is_known_midway_is_of_strings_of_all_lengths(tiny):
    """Short ones are decoded first: before the first hundred nothing is said, and then of exactly those."""
    change = ["cross.1.1:zero"]
    running = EffectInProgress(tiny, fresh_strings(tiny, 130, seed=3), edits=change)
    while running.found is None:
        running.step(tiny)
    assert running.decoded == 100
    rng = np.random.default_rng([3, 78])
    lengths = rng.choice(tiny.task.evaluated_lengths, 130)
    texts = [tiny.task.sample(tiny.task.sources[i % 4], int(n), 1, rng)[0] for i, n in enumerate(lengths)][:100]
    alone = zip(tv.decode(tiny, texts), tv.decode(tiny, texts, edits=change), strict=True)
    assert running.found.changed == sum(a.output_tokens != b.output_tokens for a, b in alone) / 100 > 0
    while not running.is_done:
        running.step(tiny)
    assert running.found == effect(tiny, edits=change, samples=130, seed=3)


def test_the_unchanged_model_is_asked_once_for_all_changes(tiny, monkeypatch):
    asked, run_batch = [], batches.run_batch
    monkeypatch.setattr(
        "transformer_viz.mask_checks.effect.run_batch",
        lambda *given, tap, **named: asked.append(tap) or run_batch(*given, tap=tap, **named),
    )
    strings = fresh_strings(tiny, 40)
    for edit in ("cross.1.1:zero", "cross:1-1"):
        running = EffectInProgress(tiny, strings, edits=[edit])
        while not running.is_done:
            running.step(tiny)
    assert [tap is None for tap in asked] == [True, False, True, False, False, False]


@pytest.mark.parametrize("mistake", ["source-mask-forgotten", "invalid-by-invalid", "wrong-axis", "padded-queries-nan"])
def test_mistakes_about_padding_cost_the_trained_model_most_of_its_strings(shipped, mistake):
    found = effect(shipped, mistake=mistake, samples=40)
    assert found.exact_before == 1.0
    assert found.exact_after is not None
    assert found.exact_after < 0.5


@pytest.mark.parametrize("samples", [0, 5001, True, 2.5])
def test_impossible_numbers_are_named(tiny, samples):
    with pytest.raises(OptionError, match="1 to 5000"):
        effect(tiny, samples=samples)


def test_a_persons_texts_are_decoded_and_judged_by_their_answers(shipped):
    texts = ["hello", "level", "Mississippi 2026!", "ab"]
    alone = [(tv.decode(shipped, text), tv.decode(shipped, text, edits=["cross.2.1:zero"])) for text in texts]
    found = effect(shipped, texts, edits=["cross.2.1:zero"])
    before, after = (sum(bool(trace.is_right) for trace in traces) / 4 for traces in zip(*alone, strict=True))
    changed = sum(a.output_tokens != b.output_tokens for a, b in alone) / 4
    assert found == Effect(4, before, after, changed)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"texts": []}, "1 to 5000 texts"),
        ({"texts": "one"}, "texts, not one text"),
        ({"texts": ["a"], "samples": 3}, "give either texts, or samples"),
        ({"max_length": 3}, "max_length works only with texts"),
        ({"texts": ["a"], "max_length": 0}, "max_length=0 is not possible"),
    ],
)
def test_what_does_not_go_together_is_said(tiny, keywords, words):
    with pytest.raises(OptionError, match=words):
        effect(tiny, **keywords)
