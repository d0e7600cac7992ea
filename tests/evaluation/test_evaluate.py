"""`evaluate` against decoding the same strings one by one."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.evaluation.remembering import Remembering
from tests.needs import slow
from transformer_viz import decode
from transformer_viz.errors import OptionError
from transformer_viz.evaluation.evaluate import evaluate
from transformer_viz.vocabulary import END

ALPHABET = "helo abcd"


def test_samples_are_split_evenly(tiny):
    task = Remembering(ALPHABET, 11, (1, 11))
    evaluate(replace(tiny, task=task), samples=100)
    counts = {(s, n): sum(d[:2] == (s, n) for d in task.drawn) for s in task.sources for n in range(1, 12)}
    assert sum(counts.values()) == 100
    assert set(counts.values()) == {2, 3}
    assert all(len(text) == length for _, length, text in task.drawn)


@pytest.mark.parametrize("fault", ["a wrong letter", slow("one too many")])
def test_numbers_are_those_of_decoding_the_same_strings(tiny, fault):
    """Of a task whose answers are what the model writes, but for strings of five symbols. All summed by hand over traces."""
    written = cache(lambda text: [token for token in decode(tiny, text).output_tokens if token != END][:11])

    class Echo(Remembering):
        def answer(self, symbols):
            letters = written("".join(symbols))
            if len(symbols) != 5:
                return letters
            return letters[:-1] or ["a"] if fault == "one too many" else ["b" if letters[:1] == ["a"] else "a", *letters[1:]]

    task = Echo(ALPHABET, 11, (1, 5))
    checkpoint = replace(tiny, task=task)
    result = evaluate(checkpoint, samples=41, seed=3)
    traces: list[Any] = [decode(checkpoint, text) for _, _, text in task.drawn]
    mass, letters = np.zeros((3, 5)), 0
    for trace in traces:
        for t, key in enumerate(trace.alignment):
            if key is not None:
                mass += trace.cross.weights[:, :, t, key]
                letters += 1
    np.testing.assert_allclose(result["head_mass"], mass / letters, atol=2e-6, rtol=0)
    best = result["best_head"]
    assert result["best_head_mass"] == pytest.approx(np.max(mass / letters), abs=2e-6)
    assert result["head_mass"][best["layer"]][best["head"]] == result["best_head_mass"]
    drawn = [(source, length) for source, length, _ in task.drawn]
    is_exact = [trace.finished == "end" and length != 5 for trace, (_, length) in zip(traces, drawn, strict=True)]
    assert 0.2 < np.mean(is_exact) < 0.8
    assert result["exact_match"] == pytest.approx(np.mean(is_exact), abs=1e-6)
    for name, place, kinds in (("by_source", 0, task.sources), ("by_length", 1, range(1, 6))):
        for kind in kinds:
            shares = [exact for exact, of in zip(is_exact, drawn, strict=True) if of[place] == kind]
            assert result[name][str(kind)] == pytest.approx(np.mean(shares), abs=1e-6), (name, kind)
    assert (result["samples"], result["seed"]) == (41, 3)


def test_the_seed_decides_the_strings(tiny):
    drawn = []
    for seed in (0, 0, 1):
        task = Remembering(ALPHABET, 11, (3, 5))
        evaluate(replace(tiny, task=task), samples=29, seed=seed)
        drawn.append(task.drawn)
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("samples", [0, 43, -1, 10**9, True, 44.0, "44"])
def test_impossible_numbers_of_samples(tiny, samples):
    with pytest.raises(OptionError, match=r"from 44 .*one for each of 44 kinds and lengths") as caught:
        evaluate(tiny, samples=samples)
    assert repr(samples) in str(caught.value)
