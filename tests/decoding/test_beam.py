"""Beam search against exhaustive search and against a plain, slow one; attention of every branch against teacher forcing."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from transformer_viz.decoding.beam import Beam, beam_search
from transformer_viz.decoding.greedy import greedy
from transformer_viz.decoding.teacher_forcing import teacher_forced
from transformer_viz.errors import InputError, OptionError
from transformer_viz.model.config import ModelConfig
from transformer_viz.model.transformer import Transformer
from transformer_viz.trace.search import Search
from transformer_viz.vocabulary import END_ID, START_ID

V = 4
"""The special tokens alone: `<end>` and three others that may be written."""


def tiny_model(seed: int, vocabulary: int = V, tied: bool = False) -> Transformer:
    """Random and small; `tied` makes all logits of a step one of three numbers, so that equal totals are common."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(seed)
        sizes: dict[str, Any] = {"d_model": 6, "n_heads": 2, "d_ff": 5, "n_encoder_layers": 1, "n_decoder_layers": 1}
        model = Transformer(ModelConfig(source_vocabulary_size=9, target_vocabulary_size=vocabulary, max_positions=16, **sizes))
    finally:
        torch.set_default_dtype(before)
    for name, parameter in model.named_parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64) * (2.0 if "embedding" in name else 0.7)
    if tied:
        model.output.register_forward_hook(lambda module, given, logits: (logits * 0.7).round())
    return model.eval().requires_grad_(False)


LogP = Callable[[tuple[int, ...]], list[float]]


def log_p(model: Transformer, source: torch.Tensor) -> LogP:
    """Of every next token after `<start>` and what was written, by a full pass, one for each beginning."""

    @functools.cache
    def after(written: tuple[int, ...]) -> list[float]:
        target = torch.tensor([[START_ID, *written]])
        return model(source[None], target)[0, -1].log_softmax(-1).tolist()

    return after


def total(after: LogP, written: tuple[int, ...]) -> float:
    return math.fsum(after(written[:t])[token] for t, token in enumerate(written))


def every_sentence(vocabulary: int, longest: int):
    """All that can be written: ended before the limit, or as long as the limit."""
    others = [token for token in range(vocabulary) if token != END_ID]
    for n in range(longest):
        for body in itertools.product(others, repeat=n):
            yield (*body, END_ID)
    yield from itertools.product(others, repeat=longest)


def slow_beam(after: LogP, how: Beam, longest: int) -> list[tuple[tuple[int, ...], float]]:
    """Lists and sorting, one full pass a prefix, and no thought of speed. `stop` is always `never`."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    done: list[tuple[tuple[int, ...], float, int]] = []
    count = 0
    for step in range(longest):
        continued = []
        for place, (prefix, so_far) in enumerate(live):
            for token, p in enumerate(after(prefix)):
                continued.append((so_far + p, place, token, prefix))
        continued.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
        live = []
        for so_far, _, token, prefix in continued[: how.size]:
            count += 1
            sentence = (*prefix, token)
            if token == END_ID or step + 1 == longest:
                done.append((sentence, so_far / len(sentence) ** how.length_penalty, count))
            else:
                live.append((sentence, so_far))
    done.sort(key=lambda entry: (-entry[1], entry[2]))
    return [(sentence, score) for sentence, score, _ in done[: how.n_best]]


def found_by(model: Transformer, sources: torch.Tensor, how: Beam, longest: int, padding=None):
    return [
        [(path_of(search, number), search.nodes[number].score) for number in search.best]
        for search in beam_search(model, sources, padding, how, max_length=longest)
    ]


def path_of(search, number) -> tuple[int, ...]:
    node = search.nodes[number]
    return (*(() if node.parent is None else path_of(search, node.parent)), node.token)


def assert_same(given, wanted, case: object = "") -> None:
    assert [sentence for sentence, _ in given] == [sentence for sentence, _ in wanted], case
    np.testing.assert_allclose([score for _, score in given], [score for _, score in wanted], atol=1e-9, err_msg=str(case))


@pytest.mark.parametrize("longest", [1, 2, 4])
def test_a_full_beam_is_exhaustive_search(longest):
    for seed in range(10):
        model = tiny_model(seed)
        source = torch.tensor([1, 4 + seed % 5, 5, 2])
        after = log_p(model, source)
        totals = {s: total(after, s) for s in every_sentence(V, longest)}
        for alpha in (0.0, 0.6, 1.0, -0.5):
            sentences = [(s, value / len(s) ** alpha) for s, value in totals.items()]
            sentences.sort(key=lambda entry: -entry[1])
            how = Beam(V**longest, alpha, V**longest, "never")
            (given,) = found_by(model, source[None], how, longest)
            assert_same(given, sentences, (seed, alpha))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_every_narrower_beam_is_the_slow_one_ties_included(size, tied):
    for seed in range(15):
        model = tiny_model(1000 * size + seed, tied=tied)
        source = torch.tensor([1, 4 + seed % 5, 4 + seed % 3, 2])
        how = Beam(size, [0.0, 0.6, 1.3][seed % 3], size, "never")
        (given,) = found_by(model, source[None], how, 6)
        assert_same(given, slow_beam(log_p(model, source), how, 6), seed)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -0.5])
def test_stopping_at_the_bound_loses_nothing(alpha):
    stopped = 0
    for seed in range(15):
        model = tiny_model(seed)
        source = torch.tensor([[1, 4 + seed % 5, 2]])
        (early,), (late,) = (found_by(model, source, Beam(3, alpha, 2, stop), 7) for stop in ("bound", "never"))
        assert_same(early, late)
        (first,) = beam_search(model, source, None, Beam(3, alpha, 2, "bound"), max_length=7)
        stopped += any(node.state == "stopped" for node in first.nodes)
    assert stopped > 0 or alpha >= 2


def test_first_stops_when_enough_are_finished():
    for seed in range(20):
        (found,) = beam_search(tiny_model(seed), torch.tensor([[1, 4, 2]]), None, Beam(3, 0.6, 2, "first"), max_length=7)
        finished = [node for node in found.nodes if node.state in ("end", "length")]
        last = max(node.step for node in found.nodes)
        assert sum(node.step < last for node in finished) < 2


def test_width_one_is_greedy():
    for seed in range(30):
        model = tiny_model(seed, vocabulary=7)
        source = torch.tensor([[1, 4 + seed % 5, 6, 2]])
        decoded = greedy(model, source, None, max_length=9)
        ((sentence, _),) = found_by(model, source, Beam(1, 0.6, 1), 9)[0]
        assert list(sentence) == decoded.ids[0, : int(decoded.lengths[0])].tolist()


def test_every_rank_reason_and_score_part_is_recorded():
    (found,) = beam_search(tiny_model(3, 7), torch.tensor([[1, 4, 2]]), None, Beam(3, 0.6, 3, "never"), max_length=6)
    for number, node in enumerate(found.nodes):
        parent = 0.0 if node.parent is None else found.nodes[node.parent].total
        assert node.total == pytest.approx(parent + node.log_probability, abs=1e-12)
        assert node.score == pytest.approx(node.total / (node.step + 1) ** 0.6)
        same_step = [other for other in found.nodes if other.step == node.step]
        assert same_step[node.rank] is node
        assert (node.rank >= 3) == (node.state == "pruned")
        if node.state == "pruned":
            assert node.pruned_by is not None
            assert found.nodes[node.pruned_by].rank == 2
            assert found.nodes[node.pruned_by].total >= node.total
        if node.parent is not None:
            assert found.nodes[node.parent].state == "kept"
            assert node.parent < number


# ---- through the API


def search_of(trace) -> Search:
    assert trace.search is not None
    return trace.search


def crossings(search) -> int:
    """At how many steps the live hypotheses do not continue those of the step before in their order."""
    found = 0
    for step in range(1, 1 + max(node.step for node in search.nodes)):
        kept = [node for node in search.nodes if node.step == step and node.state != "pruned"]
        parents = [search.nodes[node.parent].rank for node in kept]
        found += parents != sorted(set(parents))
    return found


@pytest.fixture(scope="module")
def crossing(make_model, make_tiny):
    """A random checkpoint whose beams cross again and again."""
    for seed in range(100):
        checkpoint = make_tiny(make_model(seed))
        trace = tv.decode(checkpoint, "hello", strategy="beam", beam_size=4)
        if (
            crossings(search_of(trace)) >= 4
            and len({len(trace.hypothesis(i).steps) for i in range(len(search_of(trace).best))}) > 1
        ):
            return checkpoint
    raise AssertionError("no seed makes beams cross")


def assert_is_teacher_forced(checkpoint, trace) -> None:
    vocabulary = checkpoint.task.target_vocabulary
    source = torch.tensor([checkpoint.task.source_vocabulary.encode(trace.source_tokens)])
    target_in, target_out = (torch.tensor([vocabulary.encode(tokens)]) for tokens in (trace.target_tokens, trace.output_tokens))
    weights = {}

    def tap(site, name, value):
        if name == "weights":
            weights[site.kind, site.layer] = value[0].double().numpy()
        return value

    logits = teacher_forced(checkpoint.model, source, None, target_in, target_out, None, tap=tap).logits[0]
    for kind in ("encoder", "decoder", "cross"):
        for layer, given in enumerate(trace.attentions[kind].weights):
            np.testing.assert_allclose(given, weights[kind, layer], atol=1e-6)
    for step, row, token in zip(trace.steps, logits, target_out[0], strict=True):
        assert step.log_probability == pytest.approx(float(row.log_softmax(-1)[token]), abs=1e-9)
        assert step.rank == int((row > row[token]).sum())
        assert step.candidates[0][1] == pytest.approx(float(row.softmax(-1).max()), abs=1e-9)


def test_every_branch_owns_its_attention(crossing):
    trace = tv.decode(crossing, "hello", strategy="beam", beam_size=4)
    for number in range(len(search_of(trace).nodes)):
        assert_is_teacher_forced(crossing, trace.at_node(number))


def test_hypotheses_are_traces_best_first(crossing, tmp_path):
    trace = tv.decode(crossing, "hello", strategy="beam", beam_size=4, n_best=3)
    scores = [search_of(trace).nodes[number].score for number in search_of(trace).best]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3
    assert trace.hypothesis(0).output_tokens == trace.output_tokens
    assert trace.hypothesis(1).output_tokens != trace.output_tokens
    assert trace.hypothesis(2).search is None
    tv.save_trace(trace, tmp_path / "t.npz")
    again = tv.load_trace(tmp_path / "t.npz")
    assert search_of(again).nodes == search_of(trace).nodes
    for i in range(3):
        a, b = trace.hypothesis(i), again.hypothesis(i)
        assert (a.text, a.steps, a.finished) == (b.text, b.steps, b.finished)
        np.testing.assert_array_equal(a.decoder.weights, b.decoder.weights)
        np.testing.assert_array_equal(a.cross.weights, b.cross.weights)
    with pytest.raises(OptionError, match="0 to 2"):
        trace.hypothesis(3)
    with pytest.raises(OptionError, match="no beam search"):
        trace.hypothesis(0).hypothesis(0)


def test_a_padded_batch_searches_as_its_sentences_alone(crossing):
    texts = ["hello", "a", "cad b"]
    for text, trace in zip(texts, tv.decode(crossing, texts, strategy="beam", beam_size=3), strict=True):
        alone = tv.decode(crossing, text, strategy="beam", beam_size=3)
        assert [node.token for node in search_of(trace).nodes] == [node.token for node in search_of(alone).nodes]
        for i in range(3):
            a, b = trace.hypothesis(i).cross.weights, alone.hypothesis(i).cross.weights
            np.testing.assert_allclose(a, b, atol=1e-6)
    kept = tv.decode(crossing, "a", strategy="beam", beam_size=3, pad_to=6)
    assert kept.source_tokens[3:] == ("<pad>",) * 3
    assert (kept.cross.reasons[:, 3:] == 1).all()
    assert not kept.cross.weights[..., 3:].any()


def test_nothing_runs_past_the_limit(crossing):
    for strategy in ("greedy", "beam", "sample"):
        for limit in (1, 2, 5):
            trace = tv.decode(crossing, "hello", strategy=strategy, max_length=limit, ban=["<end>"])
            assert len(trace.steps) == limit
            assert trace.finished == "length"


def test_prefix_and_ban(crossing):
    ways: list[dict[str, Any]] = [{}, {"strategy": "beam"}, {"strategy": "sample", "seed": 5}]
    for options in ways:
        trace = tv.decode(crossing, "hello", prefix=["c", "a"], ban=["e", "l"], **options)
        assert trace.output_tokens[:2] == ("c", "a")
        assert not {"e", "l"} & set(trace.output_tokens)
        assert_is_teacher_forced(crossing, trace)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"strategy": "best"}, "greedy, beam, sample"),
        ({"strategy": "beam", "beam_size": 0}, "beam_size=0"),
        ({"strategy": "beam", "length_penalty": float("nan")}, "length_penalty=nan"),
        ({"strategy": "beam", "stop": "soon"}, "bound, first, never"),
        ({"strategy": "beam", "n_best": 0}, "n_best=0"),
        ({"strategy": "greedy", "beam_size": 3}, "beam_size means nothing to strategy 'greedy'"),
        ({"strategy": "sample", "top_p": 0}, "top_p=0"),
        ({"strategy": "sample", "temperature": -1}, "temperature=-1"),
        ({"prefix": ["a"], "ban": ["a"]}, "'a' is forced by prefix and forbidden by ban"),
        ({"prefix": ["<end>"]}, "after which nothing comes"),
        ({"prefix": ["a"] * 13}, "max_length=12"),
        ({"strategy": "beam", "edits": ["cross:1-1"]}, "need strategy 'greedy'"),
        ({"target": "ab", "strategy": "beam"}, "nothing to choose"),
    ],
)
def test_impossible_keywords_are_named(tiny, options, named):
    with pytest.raises(OptionError, match=named):
        tv.decode(tiny, "hello", **options)


def test_unknown_tokens_are_named(tiny):
    with pytest.raises(InputError, match="prefix: token 'ü'"):
        tv.decode(tiny, "hello", prefix=["ü"])
    with pytest.raises(OptionError, match="leave at least one"):
        tv.decode(tiny, "hello", ban=list(tiny.task.target_vocabulary.tokens))
