"""The effect of a change on models of Hugging Face, against decoding their texts one by one without and with it."""

import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families
from transformer_viz.errors import InputError, OptionError
from transformer_viz.mask_checks.effect import Effect, EffectInProgress, texts_from_person

pytestmark = needs("transformers")
LONG = [" ".join(f"w{(7 * i + j * i) % 42}" for j in range(3 + i % 6)) for i in range(6)]
TEXTS = [*families.TEXTS, *LONG]
LENGTH = 7


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("marian", ["cross.2.1:zero"]),
        ("t5", ["decoder.1:2-1"]),
        # Positions are those of each prompt, however long the others are.
        ("gpt2", ["decoder.2:2-1, decoder.3.2:3=1"]),
        ("gemma2", ["decoder.2.1:zero"]),
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
    assert tv.effect(model, TEXTS, edits=edits, max_length=LENGTH) == Effect(len(TEXTS), None, None, changed / len(TEXTS))


def test_of_an_encoder_alone_it_is_what_it_fills():
    model, edits = families.family("bert"), ["encoder.2.1:zero"]
    texts = [f"{text} [MASK] w3" for text in TEXTS]

    def filled(text: str, change: list[str]) -> list[str]:
        return [fill.candidates[0][0] for fill in tv.decode(model, text, edits=change).fills]

    changed = sum(filled(text, []) != filled(text, edits) for text in texts)
    assert 0 < changed < len(texts)
    assert tv.effect(model, texts, edits=edits) == Effect(len(texts), None, None, changed / len(texts))


def test_prompts_of_a_large_vocabulary_are_read_a_few_at_a_time(monkeypatch):
    """Logits at every place of 25 prompts of 512 tokens would be 2.5 GB of a vocabulary of 49,152."""
    model = families.family("gpt2")
    monkeypatch.setattr("transformer_viz.batches.MOST_LOGITS", families.SIZE * 7)
    texts = [" ".join(["w1"] * n) for n in (3, 3, 3, 7, 7)]
    together = texts_from_person(model, texts, LENGTH)
    assert [[text.index for text in batch] for batch in together.batches] == [[0, 1], [2], [3], [4]]
    running = EffectInProgress(model, together, edits=["decoder.1.1:zero"])
    while not running.is_done:
        running.step(model)
    assert running.found == tv.effect(model, texts, edits=["decoder.1.1:zero"], max_length=LENGTH)


def test_what_is_needed_is_said():
    with pytest.raises(OptionError, match="marian has no task that strings could be drawn from; give texts of your own"):
        tv.effect(families.family("marian"), edits=["cross.1.1:zero"])
    with pytest.raises(InputError, match=r"bert fills mask tokens. Put \[MASK\] into each text"):
        tv.effect(families.family("bert"), ["w1 [MASK]", "w2"], edits=["encoder.1.1:zero"])
    with pytest.raises(InputError, match="The text makes 70 tokens"):
        tv.effect(families.family("gpt2"), ["w1 " * 70], edits=["decoder.1.1:zero"])
