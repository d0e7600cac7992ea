"""Sampling against its definition, in loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import transformer_viz as tv
from transformer_viz.decoding.sampling import Sampling, distribution, drawn


def by_definition(logits: list[float], how: Sampling) -> list[float]:
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[: how.top_k]
    weights = [math.exp((logits[i] - logits[order[0]]) / how.temperature) for i in order]
    probabilities = [w / math.fsum(weights) for w in weights]
    kept, so_far = {}, 0.0
    for i, p in zip(order, probabilities, strict=True):
        if so_far and so_far >= how.top_p:
            break
        kept[i] = p
        so_far += p
    return [kept.get(i, 0.0) / math.fsum(kept.values()) for i in range(len(logits))]


logit_rows = hnp.arrays(np.float64, 7, elements=st.integers(-40, 40).map(lambda n: n / 4))
ways = st.builds(
    Sampling,
    temperature=st.sampled_from([0.1, 0.7, 1.0, 3.0]),
    top_k=st.none() | st.integers(1, 9),
    top_p=st.sampled_from([0.05, 0.3, 0.77, 0.95, 1.0]),
)


@given(logit_rows, ways)
def test_the_distribution_is_its_definition(logits, how):
    given_chances = distribution(torch.tensor(logits)[None], how)[0]
    np.testing.assert_allclose(given_chances, by_definition(logits.tolist(), how), atol=1e-9)


@given(
    hnp.arrays(np.float64, 6, elements=st.integers(0, 9).map(float)).filter(lambda a: a.sum() > 0),
    st.floats(0, 1, exclude_max=True),
)
def test_a_mark_falls_into_the_right_token(weights, mark):
    probabilities = torch.tensor(weights / weights.sum())[None]
    token = int(drawn(probabilities, torch.tensor([mark]))[0])
    assert weights[token] > 0
    below = weights[:token].sum() / weights.sum()
    above = weights[: token + 1].sum() / weights.sum()
    assert below - 1e-9 <= mark <= above + 1e-9


def test_a_seed_repeats_and_another_does_not(tiny):
    texts = {seed: tv.decode(tiny, "hello", strategy="sample", seed=seed, temperature=2.0).output_tokens for seed in range(8)}
    for seed, tokens in texts.items():
        assert tv.decode(tiny, "hello", strategy="sample", seed=seed, temperature=2.0).output_tokens == tokens
    assert len(set(texts.values())) > 3


def test_a_batch_is_its_sentences_one_by_one(tiny):
    texts = ["hello", "a", "cab"]
    for text, trace in zip(texts, tv.decode(tiny, texts, strategy="sample", seed=3, temperature=1.5), strict=True):
        alone = tv.decode(tiny, text, strategy="sample", seed=3, temperature=1.5)
        assert trace.output_tokens == alone.output_tokens


@pytest.mark.parametrize("options", [{"temperature": 0}, {"temperature": 1e-9}, {"top_k": 1}, {"top_p": 1e-9}])
def test_no_freedom_is_greedy(tiny, options):
    greedy = tv.decode(tiny, ["hello", "bad"])
    for a, b in zip(greedy, tv.decode(tiny, ["hello", "bad"], strategy="sample", seed=1, **options), strict=True):
        assert a.output_tokens == b.output_tokens
        assert all(step.sampling_probability == 1 for step in b.steps)


def test_both_probabilities_are_kept(tiny):
    trace = tv.decode(tiny, "hello", strategy="sample", seed=2, temperature=2.0, top_k=3)
    for step in trace.steps:
        natural = dict(step.candidates)[step.token]
        assert step.probability == pytest.approx(natural)
        top = [math.sqrt(p) for _, p in step.candidates[:3]]
        assert step.sampling_probability == pytest.approx(math.sqrt(natural) / math.fsum(top), abs=1e-6)
        assert step.rank is not None
        assert step.rank < 3
