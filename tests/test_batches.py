"""Many texts in batches against decoding each alone: what is written, how probable it is, and every recorded weight."""

from collections.abc import Sequence

import numpy as np
import pytest

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families
from transformer_viz import batches
from transformer_viz.batches import Answer, Batch, Text, answer_of, compare_with_answer, drawn_texts, run_batch, run_texts
from transformer_viz.decoding import memory
from transformer_viz.decoding.tokenizer import TaskAnswer
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind

TEXTS = ["helo", "a", "abcd hel", "lo lo lo", "bad", "cab"]
RECORD = ("weights", "mask", "probabilities")


def texts_of(model: LoadedModel, texts: Sequence[str], limit: int) -> list[Text]:
    return [Text(i, model.tokenizer.encode_source(text), limit) for i, text in enumerate(texts)]


def check(model: LoadedModel, texts: Sequence[str], found: Sequence[Batch], limit: int, most: float) -> None:
    """Each text once, and its numbers those of `decode`."""
    assert sorted(text.index for batch in found for text in batch.texts) == list(range(len(texts)))
    for batch in found:
        for i, text in enumerate(batch.texts):
            trace = tv.decode(model, texts[text.index], max_length=limit)
            steps = trace.steps[trace.n_given :]
            assert model.tokenizer.target_labels(batch.written[i]) == [step.token for step in steps]
            np.testing.assert_allclose(batch.probabilities[i], [step.probability for step in steps], atol=most)
            assert batch.is_finite(i)
            for kind, attention in trace.attentions.items():
                assert attention.weights is not None and attention.reasons is not None
                crop = batch.tokens.crop
                np.testing.assert_allclose(crop(batch.weights[kind], kind, i), attention.weights, atol=most)
                np.testing.assert_array_equal(crop(batch.masked[kind], kind, i)[0, 0], attention.reasons > 0)


@pytest.mark.parametrize(("constant", "value"), [("AT_ONCE", 32), ("AT_ONCE", 2), ("KEPT", 8000), ("KEPT", 1)])
def test_texts_of_our_model_are_what_each_is_alone(tiny, monkeypatch, constant, value):
    """Together, in small batches, and where the attention of several does not fit."""
    monkeypatch.setattr(batches if constant == "AT_ONCE" else memory, constant, value)
    found = list(run_texts(tiny, texts_of(tiny, TEXTS, 9), record=RECORD))
    assert max(len(batch.texts) for batch in found) == {32: 6, 2: 2, 8000: 3, 1: 1}[value]
    check(tiny, TEXTS, found, 9, 1e-6)


@needs("transformers")
@pytest.mark.parametrize("name", ["marian", "gpt2", "llama"])
def test_so_they_are_of_other_models_prompts_behind_padding_included(name):
    model = families.family(name)
    found = list(run_texts(model, texts_of(model, families.TEXTS, 7), record=RECORD))
    assert len(found) == 1
    check(model, families.TEXTS, found, 7, 1e-5)
    alone = list(batches.batches(model, texts_of(model, families.TEXTS, 7), pad_prompts=False))
    assert len(alone) == (1 if name == "marian" else 3)


@needs("transformers")
def test_an_encoder_alone_fills_its_mask_tokens():
    model = families.family("bert")
    texts = ["w1 [MASK] w3", "w2 w1", "[MASK] w4 [MASK] w5 w6"]
    (found,) = run_texts(model, texts_of(model, texts, 1), record=("weights",))
    for i, text in enumerate(found.texts):
        fills = tv.decode(model, texts[text.index]).fills
        assert model.tokenizer.target_labels(found.written[i]) == [fill.candidates[0][0] for fill in fills]


def test_a_text_that_fails_harms_no_other(tiny, monkeypatch):
    def failing(model, texts, **how):
        if any(text.index == 2 for text in texts):
            raise OptionError("no token is allowed")
        return run_batch(model, texts, **how)

    monkeypatch.setattr(batches, "run_batch", failing)
    failed: list[tuple[int, str]] = []
    found = run_texts(tiny, texts_of(tiny, TEXTS, 5), on_failure=lambda text, error: failed.append((text.index, str(error))))
    assert sorted(text.index for batch in found for text in batch.texts) == [0, 1, 3, 4, 5]
    assert failed == [(2, "no token is allowed")]
    with pytest.raises(OptionError):
        list(run_texts(tiny, texts_of(tiny, TEXTS, 5)))


def test_numbers_that_are_none_are_those_of_their_text(tiny):
    (found,) = run_texts(tiny, texts_of(tiny, TEXTS[:3], 5), record=RECORD)
    i = next(i for i, text in enumerate(found.texts) if text.index == 1)
    weights: dict[Kind, np.ndarray] = found.weights
    weights["cross"][i, 0, 0, 0, -1] = np.nan  # padding of the shortest
    assert all(Batch(**vars_of(found)).is_finite(each) for each in range(3))
    weights["cross"][i, 0, 0, 0, 0] = np.nan
    assert [Batch(**vars_of(found)).is_finite(each) for each in range(3)] == [each != i for each in range(3)]


def vars_of(batch: Batch) -> dict:
    return {name: getattr(batch, name) for name in Batch.__dataclass_fields__}


def test_only_what_is_named_is_recorded(tiny):
    (found,) = run_texts(tiny, texts_of(tiny, TEXTS[:2], 5), record=("weights",), kinds=("cross",))
    assert set(found.weights) == {"cross"} and not found.masked and not any(map(len, found.probabilities))
    (nothing,) = run_texts(tiny, texts_of(tiny, TEXTS[:2], 5))
    assert nothing.written == found.written and not nothing.weights


def test_what_is_written_is_compared_with_the_answer(tiny):
    """By tokens where they are known, else by text; nothing is right that has not ended."""
    end = tiny.network.end_ids[0]
    a, b, c = (tiny.tokenizer.encode_target(letter)[0] for letter in "abc")
    by_tokens, by_ids, by_text = Answer("ab", ("a", "b", "<end>")), Answer("ab", [a, b, end]), Answer("ab")
    for answer in (by_tokens, by_ids):
        got = [compare_with_answer(tiny, answer, ids) for ids in ([a, b, end], [a, b], [a, c, end], [c, b, end, a])]
        assert [each.is_exact for each in got] == [True, False, False, False]
        assert [each.n_right for each in got] == [3, 2, 2, 2]
        assert [each.n_right_before_wrong for each in got] == [3, 2, 1, 0]
    assert [compare_with_answer(tiny, by_text, ids).is_exact for ids in ([a, b, end], [a, b], [a, end])] == [True, False, False]
    assert not compare_with_answer(tiny, Answer(), [end]).is_exact
    known = TaskAnswer(alignment=(), expected="ab", expected_tokens=("a", "b", "<end>"))
    assert answer_of(tiny, known) == by_tokens
    assert answer_of(tiny, known, "ab") == by_ids
    assert answer_of(tiny, known, "ZZ") == Answer("ZZ")


def test_drawn_texts_may_be_longer_than_what_people_type(tiny):
    (text,) = drawn_texts(tiny, ["helo" * 5], first=7)
    assert (text.index, len(text.ids), text.limit, text.answer.text) == (7, 22, 21, ("helo" * 5)[::-1])
    assert list(text.alignment) == [*range(20, 0, -1), None]
