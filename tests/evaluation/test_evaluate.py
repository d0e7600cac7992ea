"""`evaluate` against planted models with known answers, and against decoding the same strings one by one."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.evaluation.remembering import Remembering
from transformer_viz import decode
from transformer_viz.errors import OptionError
from transformer_viz.evaluation.evaluate import evaluate
from transformer_viz.model.tap import Site
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.terms import ModelKind
from transformer_viz.vocabulary import END_ID, PAD_ID, START_ID

ALPHABET = "helo abcd"


class PlantedReversal(torch.nn.Module):
    """Reverses perfectly, but for one length writes a wrong letter or one too many; head (1, 2) has 0.75 on the true key."""

    kind, start_id, end_ids, pad_id, rules = ModelKind.ENCODER_DECODER, START_ID, (END_ID,), PAD_ID, None

    def __init__(self, wrong_length: int = -1, too_long: bool = False) -> None:
        super().__init__()
        self.eval()
        self.sizes = SimpleNamespace(
            vocabulary=4 + len(ALPHABET),
            longest_source=41,
            longest_target=41,
            layers={"cross": (0, 1)},
            heads={"cross": 3},
        )
        self.wrong_length = wrong_length
        self.too_long = too_long

    def encode(self, source: Tensor, source_padding=None, *, tap=None) -> Tensor:
        return source

    def start_decoding(self, memory: Tensor, source_padding=None) -> "PlantedReversal":
        self.memory, self.length = memory, 0
        return self

    def reorder(self, rows: Tensor) -> None:
        self.memory = self.memory[rows]

    def read(self, tokens: Tensor, *, tap: Any = None) -> Tensor:
        t, n = self.length, (self.memory != PAD_ID).sum(-1) - 2
        self.length += 1
        true_key, is_left = (n - t).clamp(min=0), t < n
        wanted = torch.where(is_left, self.memory.gather(1, true_key[:, None])[:, 0], END_ID)
        is_wrong = n.eq(self.wrong_length) & n.eq(t if self.too_long else t + 1)
        wrong = torch.full_like(wanted, 4) if self.too_long else torch.where(wanted == 4, 5, 4)
        wanted = torch.where(is_wrong, wrong, wanted)
        width = self.memory.shape[1]
        for layer in range(2):
            weights = torch.full((len(n), 3, 1, width), 0.25 / (width - 1))
            weights[..., 0] = 0.75
            if layer == 1:
                aligned = torch.full((len(n), 1, width), 0.25 / (width - 1))
                aligned = aligned.scatter(-1, true_key[:, None, None], 0.75)
                weights[:, 2] = torch.where(is_left[:, None, None], aligned, weights[:, 2])
            tap(Site("cross", layer, t), "weights", weights)
        return torch.nn.functional.one_hot(wanted, 4 + len(ALPHABET)).double()


def test_a_perfect_model_scores_one_and_its_best_head_is_found(make_tiny):
    """Guards masses that count the end step, mix up layer and head, or look one column off."""
    result = evaluate(make_tiny(PlantedReversal(), Reverse(ALPHABET, 11, (2, 7))), samples=97)
    assert result["exact_match"] == 1.0
    assert result["by_source"] == dict.fromkeys(("uniform", "few", "palindromes", "words"), 1.0)
    assert result["by_length"] == {str(n): 1.0 for n in range(2, 8)}
    assert result["best_head"] == {"layer": 1, "head": 2}
    assert result["best_head_mass"] == pytest.approx(0.75, abs=1e-6)
    assert (result["samples"], result["seed"]) == (97, 0)


@pytest.mark.parametrize("too_long", [False, True])
def test_one_wrong_or_added_letter_makes_a_string_wrong(make_tiny, too_long):
    task = Remembering(ALPHABET, 11, (2, 7))
    result = evaluate(make_tiny(PlantedReversal(5, too_long), task), samples=97)
    assert len(task.drawn) == 97
    assert result["by_length"] == {str(n): float(n != 5) for n in range(2, 8)}
    assert result["exact_match"] == pytest.approx(np.mean([length != 5 for _, length, _ in task.drawn]), abs=1e-6)
    for source, share in result["by_source"].items():
        assert share == pytest.approx(np.mean([length != 5 for s, length, _ in task.drawn if s == source]), abs=1e-6)


def test_samples_are_split_evenly(make_tiny):
    task = Remembering(ALPHABET, 11, (1, 11))
    evaluate(make_tiny(PlantedReversal(), task), samples=100)
    counts = {(s, n): sum(d[:2] == (s, n) for d in task.drawn) for s in task.sources for n in range(1, 12)}
    assert sum(counts.values()) == 100
    assert set(counts.values()) == {2, 3}
    assert all(len(text) == length for _, length, text in task.drawn)


def test_numbers_are_those_of_decoding_the_same_strings(tiny):
    """Exact match and the mass of all heads, summed by hand over traces of the drawn strings."""
    task = Remembering(ALPHABET, 11, (1, 5))
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
    assert result["exact_match"] == pytest.approx(np.mean([trace.is_right for trace in traces]), abs=1e-6)


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
