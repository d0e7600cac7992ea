"""Accuracy by length against decoding the same strings one by one, and the interval against its own equation."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.remembering import Remembering
from transformer_viz import accuracy_by_length
from transformer_viz.analysis.intervals import Z_95, wilson
from transformer_viz.decoding.stepwise import stepwise
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.errors import InputError, OptionError
from transformer_viz.evaluation.evaluate import default_lengths, evaluate_texts, fresh_strings, lengths_beyond, trained_lengths
from transformer_viz.evaluation.result import AccuracyAtLength, AccuracyByLength
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.trace.recorder import Recorder
from transformer_viz.vocabulary import END

ALPHABET = "helo abcd"


def drawn_at(task: Remembering, length: int) -> list[str]:
    return [text for _, drawn_length, text in task.drawn if drawn_length == length]


@pytest.fixture
def measured(tiny):
    """A task that reads 5 symbols at most, measured at 2 to 7, and the strings that were drawn."""
    task = Remembering(ALPHABET, 5, (2, 4))
    return accuracy_by_length(replace(tiny, task=task), [7, 2, 3, 5], samples=7, seed=3), task


def test_numbers_are_those_of_decoding_one_string_at_a_time(tiny, measured):
    """Beyond what the task reads, too. Plain loops over one unpadded decoding each."""
    found, task = measured
    assert [point.length for point in found.points] == [2, 3, 5, 7]
    assert [point.is_trained for point in found.points] == [True, True, False, False]
    for point in found.points:
        texts = drawn_at(task, point.length)
        assert len(texts) == point.n_strings == 7
        exact = right = tokens = letters = 0
        mass = np.zeros((3, 5))
        for text in texts:
            recorder = Recorder(("weights",), ("cross",))
            batch = TokenBatch.of(tiny.network, [task.source_vocabulary.encode(["<start>", *text, END])])
            decoded = stepwise(tiny.network, batch, max_length=max(5, len(text)) + 1, tap=recorder)
            output = task.target_vocabulary.decode(decoded.ids[0, : int(decoded.lengths[0])].tolist())
            answer = [*reversed(text), END]
            exact += output == answer
            right += sum(i < len(output) and output[i] == token for i, token in enumerate(answer))
            tokens += len(answer)
            recorded = recorder.gathered("cross", "weights")
            assert recorded is not None
            weights = recorded.numpy()[0]
            for t in range(min(len(output), len(text))):
                mass += weights[:, :, t, len(text) - t]
                letters += 1
        assert (point.n_exact, point.n_letters) == (exact, letters)
        assert point.token_accuracy == pytest.approx(right / tokens, abs=1e-12)
        np.testing.assert_allclose(np.array(point.head_mass), mass / letters, atol=1e-9)


def test_progress_is_by_symbols_and_what_it_raises_ends_the_work(tiny):
    task, shares = Remembering(ALPHABET, 5, (2, 4)), []
    accuracy_by_length(replace(tiny, task=task), [7, 2, 3, 5], samples=7, on_progress=shares.append)
    assert shares == [0, 2 / 17, 5 / 17, 10 / 17]

    def enough(share):
        if share:
            raise InterruptedError

    task.drawn.clear()
    with pytest.raises(InterruptedError):
        accuracy_by_length(replace(tiny, task=task), [7, 2, 3, 5], samples=7, on_progress=enough)
    assert {length for _, length, _ in task.drawn} == {2}


def test_how_texts_are_put_together_changes_nothing(tiny, measured, monkeypatch):
    """All lengths together, one by one, and where the attention of several does not fit."""
    _, task = measured
    checkpoint, texts = replace(tiny, task=task), [text for _, _, text in task.drawn]
    whole = evaluate_texts(checkpoint, texts)
    assert whole.lengths == [len(text) for text in texts]
    alone = evaluate_texts(checkpoint, texts, at_once=1)
    monkeypatch.setattr("transformer_viz.decoding.memory.KEPT", 3000)
    for parts in (alone, evaluate_texts(checkpoint, texts)):
        np.testing.assert_allclose(whole.on_true_key, parts.on_true_key, atol=1e-5)
        for name in ("outputs", "is_exact", "n_right", "n_tokens", "n_steps"):
            assert getattr(whole, name) == getattr(parts, name), name


def test_the_strings_of_a_length_depend_on_the_seed_alone(tiny):
    drawn = []
    for lengths, seed in (([4], 0), ([2, 4, 9], 0), ([4], 1)):
        task = Remembering(ALPHABET, 11, (1, 11))
        accuracy_by_length(replace(tiny, task=task), lengths, samples=11, seed=seed)
        drawn.append(drawn_at(task, 4))
    assert drawn[0] == drawn[1] != drawn[2]


def test_which_lengths(tiny):
    task = Reverse(ALPHABET, 11, (3, 11))
    growing = {"lengths": "growing", "longest": 23}
    assert trained_lengths(replace(tiny, task=task)) == (3, 11)
    assert trained_lengths(replace(tiny, task=task, recipe=growing)) == (1, 23)
    assert default_lengths(replace(tiny, task=task)) == tuple(range(1, 18))
    assert default_lengths(replace(tiny, task=task, recipe=growing)) == tuple(range(1, 36))
    # 41 positions hold 39 symbols beside <start> and <end>.
    assert default_lengths(replace(tiny, task=task, recipe={"lengths": "growing", "longest": 31})) == tuple(range(1, 40))
    assert lengths_beyond(replace(tiny, task=task), 3) == (12, 13, 14)
    with pytest.raises(OptionError, match=r"beyond=29 .* at most 39 symbols, 28 more than the 11"):
        lengths_beyond(replace(tiny, task=task), 29)


def test_many_lengths_are_thinned_out_evenly(make_model, make_tiny):
    checkpoint = make_tiny(make_model(0, max_positions=401), Reverse(ALPHABET, 300, (7, 211)))
    lengths = default_lengths(checkpoint)
    assert len(lengths) <= 66
    assert {1, 7, 211, 317} <= set(lengths)
    assert max(b - a for a, b in pairwise(lengths)) <= 6


def test_fresh_strings_are_symbols_of_all_sources(tiny):
    strings = fresh_strings(Reverse(ALPHABET, 5, (2, 4)), 13, 9, np.random.default_rng(0))
    assert len(strings) == 9
    assert all(len(text) == 13 and set(text) <= set(ALPHABET) for text in strings)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lengths": []}, "lengths is empty"),
        ({"lengths": [0]}, "from 1 to 39"),
        ({"lengths": [40]}, "from 1 to 39"),
        ({"samples": 0}, "samples=0"),
    ],
)
def test_impossible_options(tiny, options: Any, words):
    with pytest.raises(OptionError, match=words):
        accuracy_by_length(tiny, **options)


def test_a_task_without_such_strings_says_so(tiny):
    class Empty(Reverse):
        def sample(self, source, length, count, rng, split=None):
            return []

    with pytest.raises(InputError, match="no strings of 2 to 3 symbols"):
        accuracy_by_length(replace(tiny, task=Empty(ALPHABET, 5, (2, 4))), [2, 3])


@given(st.integers(1, 400), st.data())
def test_the_interval_solves_wilsons_equation(n, data):
    """Its ends are the shares p from which hits/n is exactly z standard errors away."""
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    for p in (low, high):
        assert (hits / n - p) ** 2 == pytest.approx(Z_95**2 * p * (1 - p) / n, abs=1e-9)
    assert low < high


def point(length, mass, letters, trained=True):
    rows = None if mass is None else tuple(tuple(row) for row in mass)
    return AccuracyAtLength(
        length=length, is_trained=trained, n_strings=3, n_exact=2, token_accuracy=0.5, n_letters=letters, head_mass=rows
    )


def test_the_best_head_is_that_of_all_steps_of_training():
    """Weighted by steps, and not swayed by lengths outside training."""
    points = (
        point(1, [[0.9, 0.2], [0.0, 0.0]], 1),
        point(5, [[0.1, 0.6], [0.0, 0.0]], 25),
        point(9, [[0.0, 0.0], [0.0, 1.0]], 999, trained=False),
    )
    found = AccuracyByLength(checkpoint="x", points=points, trained=(1, 5), samples=3, seed=0)
    assert found.best_head == (0, 1)
    assert [found.best_mass(p) for p in points] == [0.2, 0.6, 0.0]
    assert found.to_frame()["best_head_mass"].tolist() == [0.2, 0.6, 0.0]
    assert found.to_json()["best_head"] == {"layer": 0, "head": 1}
    outside = AccuracyByLength(checkpoint="x", points=points[2:], trained=(1, 5), samples=3, seed=0)
    assert outside.best_head == (1, 1)
    nothing = AccuracyByLength(checkpoint="x", points=(point(2, None, 0),), trained=(1, 5), samples=3, seed=0)
    assert nothing.best_head is None
    assert nothing.to_json()["lengths"][0]["best_head_mass"] is None
