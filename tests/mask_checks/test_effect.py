"""Effects over many strings against decoding them one by one; and batches against sentences alone."""

from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families
from transformer_viz import batches
from transformer_viz.errors import InputError, OptionError
from transformer_viz.mask_checks.effect import Effect, EffectInProgress, fresh_strings, measure_effect, texts_from_person


@pytest.fixture(scope="module")
def shipped():
    return tv.load_checkpoint("reverse", "cpu")


def drawn(task, n: int) -> list[str]:
    """Fresh strings of seed 3."""
    rng = np.random.default_rng([3, 78])
    lengths = rng.choice(task.evaluated_lengths, n)
    return [task.sample(task.sources[i % 4], int(length), 1, rng)[0] for i, length in enumerate(lengths)]


@pytest.mark.parametrize("texts", [None, ["hello", "level", "Mississippi 2026!", "ab"]], ids=["fresh", "a person's"])
def test_a_head_off_is_what_single_decodes_say(shipped, texts):
    """No padding matters here, so the same strings alone must give the same shares."""
    given: dict[str, Any] = {"texts": texts} if texts else {"samples": 20, "seed": 3}
    edits = ["cross.1.1:zero"]
    alone = [(tv.decode(shipped, text), tv.decode(shipped, text, edits=edits)) for text in texts or drawn(shipped.task, 20)]
    before, after = (sum(bool(trace.is_right) for trace in traces) / len(alone) for traces in zip(*alone, strict=True))
    changed = sum(a.output_tokens != b.output_tokens for a, b in alone) / len(alone)
    assert measure_effect(shipped, edits=edits, **given) == Effect(len(alone), before, after, changed) and after < before


def test_what_is_known_midway_is_of_strings_of_all_lengths(tiny):
    """Short ones are decoded first: before the first hundred nothing is said, and then of exactly those."""
    change = ["cross.1.1:zero"]
    running = EffectInProgress(tiny, fresh_strings(tiny, 130, seed=3), edits=change)
    while running.found is None:
        running.step(tiny)
    assert running.decoded == 100
    texts = drawn(tiny.task, 130)[:100]
    alone = zip(tv.decode(tiny, texts), tv.decode(tiny, texts, edits=change), strict=True)
    assert running.found.changed == sum(a.output_tokens != b.output_tokens for a, b in alone) / 100 > 0
    while not running.is_done:
        running.step(tiny)
    assert running.found == measure_effect(tiny, edits=change, samples=130, seed=3)
    assert measure_effect(tiny, samples=40).changed == 0


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
    found = measure_effect(shipped, mistake=mistake, samples=40)
    assert found.exact_before == 1.0 and found.exact_after is not None and found.exact_after < 0.5


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        *(({"samples": samples}, "1 to 5000") for samples in (0, 5001, True, 2.5)),
        ({"texts": []}, "1 to 5000 texts"),
        ({"texts": "one"}, "texts, not one text"),
        ({"texts": ["a"], "samples": 3}, "give either texts, or samples"),
        ({"max_length": 3}, "max_length works only with texts"),
        ({"texts": ["a"], "max_length": 0}, "max_length=0 is not possible"),
    ],
)
def test_what_does_not_go_together_is_said(tiny, keywords, words):
    with pytest.raises(OptionError, match=words):
        measure_effect(tiny, **keywords)


LONG = [" ".join(f"w{(7 * i + j * i) % 42}" for j in range(3 + i % 6)) for i in range(6)]
TEXTS = [*families.TEXTS, *LONG]
LENGTH = 7


@needs("transformers")
@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("marian", ["cross.2.1:zero"]),
        # Positions are those of each prompt, however long the others are.
        ("gpt2", ["decoder.2:2-1, decoder.3.2:3=1"]),
        # A row sees what comes later, and all rows are computed again at each step.
        ("llama", ["decoder.1:1-3"]),
    ],
)
def test_it_is_what_a_plain_loop_says(name, edits):
    model = families.family(name)
    before, after = (
        [tv.decode(model, text, max_length=LENGTH, edits=change).output_ids for text in TEXTS] for change in ([], edits)
    )
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert 0 < changed < len(TEXTS), "an edit that changes some and not all"
    assert tv.measure_effect(model, TEXTS, edits=edits, max_length=LENGTH) == Effect(
        len(TEXTS), None, None, changed / len(TEXTS)
    )


@needs("transformers")
def test_of_an_encoder_alone_it_is_what_it_fills():
    model, edits = families.family("bert"), ["encoder.2.1:zero"]
    texts = [f"{text} [MASK] w3" for text in TEXTS]

    def filled(text: str, change: list[str]) -> list[str]:
        return [fill.candidates[0][0] for fill in tv.decode(model, text, edits=change).fills]

    changed = sum(filled(text, []) != filled(text, edits) for text in texts)
    assert 0 < changed < len(texts)
    assert tv.measure_effect(model, texts, edits=edits) == Effect(len(texts), None, None, changed / len(texts))


@needs("transformers")
def test_prompts_of_a_large_vocabulary_are_read_a_few_at_a_time(monkeypatch):
    """Logits at every place of 25 prompts of 512 tokens would be 2.5 GB of a vocabulary of 49,152."""
    model = families.family("gpt2")
    monkeypatch.setattr("transformer_viz.decoding.memory.KEPT", families.SIZE * 7)
    texts = [" ".join(["w1"] * n) for n in (3, 3, 3, 7, 7)]
    together = texts_from_person(model, texts, LENGTH)
    assert [[text.index for text in batch] for batch in together.batches] == [[0, 1], [2], [3], [4]]
    running = EffectInProgress(model, together, edits=["decoder.1.1:zero"])
    while not running.is_done:
        running.step(model)
    assert running.found == tv.measure_effect(model, texts, edits=["decoder.1.1:zero"], max_length=LENGTH)


@needs("transformers")
def test_what_is_needed_is_said():
    with pytest.raises(OptionError, match="marian has no task that strings could be drawn from; give texts of your own"):
        tv.measure_effect(families.family("marian"), edits=["cross.1.1:zero"])
    with pytest.raises(InputError, match=r"bert fills mask tokens. Put \[MASK\] into each text"):
        tv.measure_effect(families.family("bert"), ["w1 [MASK]", "w2"], edits=["encoder.1.1:zero"])
    with pytest.raises(InputError, match="The text makes 70 tokens"):
        tv.measure_effect(families.family("gpt2"), ["w1 " * 70], edits=["decoder.1.1:zero"])
