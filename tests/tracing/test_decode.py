"""Text in, Trace out: every number of a trace against one independent teacher-forced pass."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.taps import FunctionTap
from transformer_viz import decode
from transformer_viz.errors import InputError, OptionError
from transformer_viz.tasks.reverse import Reverse

KINDS = ("encoder", "decoder", "cross")
LAYERS = {"encoder": 2, "decoder": 3, "cross": 3}
HEADS = 5


def teacher_forced(checkpoint, trace) -> tuple[np.ndarray, dict[tuple[str, int], np.ndarray]]:
    """Log-probabilities (step, token) and weights (head, query, key), recorded by a tap of our own."""
    weights: dict[tuple[str, int], np.ndarray] = {}

    @FunctionTap
    def tap(site, name, value):
        if name == "weights":
            weights[site.kind, site.layer] = value[0].double().numpy()
        return value

    vocabulary = checkpoint.task.source_vocabulary
    source = torch.tensor([[vocabulary.ids[token] for token in trace.source_tokens]])
    target = torch.tensor([[vocabulary.ids[token] for token in trace.target_tokens]])
    padding = source == 0
    logits = checkpoint.network(source, target, padding if bool(padding.any()) else None, tap=tap)[0].double().numpy()
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), weights


def assert_trace_is_true(checkpoint, trace, candidates: int = 10, tolerance: float = 1e-6) -> None:
    log_p, weights = teacher_forced(checkpoint, trace)
    for kind in KINDS:
        given = trace.attentions[kind].weights
        assert given.shape[:2] == (LAYERS[kind], HEADS)
        for layer in range(LAYERS[kind]):
            np.testing.assert_allclose(given[layer], weights[kind, layer], atol=tolerance, rtol=0)
    tokens = checkpoint.task.target_vocabulary.tokens
    for t, step in enumerate(trace.steps):
        number = tokens.index(step.token)
        order = sorted(range(len(tokens)), key=lambda i, t=t: (-log_p[t, i], i))
        assert step.token == trace.output_tokens[t]
        assert step.log_probability == pytest.approx(log_p[t, number], abs=tolerance)
        assert step.probability == pytest.approx(math.exp(log_p[t, number]), abs=tolerance)
        assert step.rank == order.index(number)
        assert [token for token, _ in step.candidates] == [tokens[i] for i in order[:candidates]]
        best = [math.exp(log_p[t, i]) for i in order[:candidates]]
        assert [p for _, p in step.candidates] == pytest.approx(best, abs=tolerance)


def assert_same_run(a, b, tolerance: float = 1e-6) -> None:
    assert (a.output_tokens, a.target_tokens, a.source_tokens) == (b.output_tokens, b.target_tokens, b.source_tokens)
    assert (a.text, a.finished, a.alignment, a.source_letters) == (b.text, b.finished, b.alignment, b.source_letters)
    for kind in KINDS:
        np.testing.assert_allclose(a.attentions[kind].weights, b.attentions[kind].weights, atol=tolerance, rtol=0)
        np.testing.assert_array_equal(a.attentions[kind].reasons, b.attentions[kind].reasons)
    for one, other in zip(a.steps, b.steps, strict=True):
        assert one.token == other.token
        assert one.log_probability == pytest.approx(other.log_probability, abs=tolerance)
        assert [p for _, p in one.candidates] == pytest.approx([p for _, p in other.candidates], abs=tolerance)


def test_hello_has_the_shape_of_the_contract(tiny, hello):
    """Guards labels taken from the wrong run, off by one, or from the reference answer."""
    n_steps = len(hello.steps)
    assert hello.source == "hello"
    assert hello.source_tokens == ("<start>", "h", "e", "l", "l", "o", "<end>")
    assert n_steps == len(hello.target_tokens) == len(hello.output_tokens) >= 4
    assert hello.target_tokens == ("<start>", *hello.output_tokens[:-1])
    assert hello.finished == "end"
    assert hello.output_tokens[-1] == "<end>"
    assert "<end>" not in hello.output_tokens[:-1]
    assert hello.text == "".join(t for t in hello.output_tokens if not (t.startswith("<") and t.endswith(">")))
    assert hello.encoder.weights.shape == (2, 5, 7, 7)
    assert hello.decoder.weights.shape == (3, 5, n_steps, n_steps)
    assert hello.cross.weights.shape == (3, 5, n_steps, 7)
    assert {hello.attentions[kind].weights.dtype for kind in KINDS} == {np.dtype("float32")}
    assert hello.alignment == tuple(([5, 4, 3, 2, 1] + [None] * n_steps)[:n_steps])
    assert hello.source_letters == (None, 0, 1, 2, 3, 4, None)
    assert hello.expected == "olleh"
    assert hello.is_right == (hello.text == "olleh")
    assert hello.kinds == KINDS
    assert hello.made_by["checkpoint"] == "tiny"
    assert hello.made_by["strategy"] == "greedy"
    assert hello.made_by["device"] == "cpu"


def test_every_number_is_that_of_one_teacher_forced_pass(tiny, hello):
    assert_trace_is_true(tiny, hello)
    assert {(step.rank, step.sampling_probability) for step in hello.steps} == {(0, None)}


def test_masks_say_why_each_cell_is_masked(hello):
    n = len(hello.steps)
    assert not hello.encoder.mask.any() and hello.encoder.reasons.shape == (7, 7)
    assert not hello.cross.mask.any() and hello.cross.reasons.shape == (n, 7)
    want = [[2 if k > q else 0 for k in range(n)] for q in range(n)]
    assert hello.decoder.reasons.tolist() == want
    assert hello.decoder.mask.dtype == bool
    assert hello.decoder.mask.tolist() == [[cell > 0 for cell in row] for row in want]


def test_pad_to_keeps_the_padded_columns_and_changes_no_number(tiny, hello):
    padded: Any = decode(tiny, "hello", pad_to=11)
    assert padded.source_tokens == (*hello.source_tokens, *["<pad>"] * 4)
    assert padded.source_letters == (*hello.source_letters, None, None, None, None)
    assert padded.output_tokens == hello.output_tokens
    assert padded.alignment == hello.alignment
    n = len(hello.steps)
    for kind, n_queries in (("encoder", 11), ("cross", n)):
        reasons = padded.attentions[kind].reasons
        assert reasons.tolist() == [[0] * 7 + [1] * 4] * n_queries
        assert (padded.attentions[kind].weights[..., 7:] == 0).all()
    np.testing.assert_allclose(padded.cross.weights[..., :7], hello.cross.weights, atol=1e-6, rtol=0)
    np.testing.assert_allclose(padded.encoder.weights[..., :7, :7], hello.encoder.weights, atol=1e-6, rtol=0)
    np.testing.assert_allclose(padded.decoder.weights, hello.decoder.weights, atol=1e-6, rtol=0)
    assert_trace_is_true(tiny, padded)


def test_a_batch_is_its_sentences_one_by_one(tiny):
    """Guards padding that leaks, rows that swap, and crops at another sentence's length."""
    texts = ["hello", "a", "dcba olleh ", "lol", "hello"]
    traces = decode(tiny, texts)
    assert [trace.source for trace in traces] == texts
    assert len({len(trace.steps) for trace in traces}) > 1
    for text, trace in zip(texts, traces, strict=True):
        assert_same_run(trace, decode(tiny, text))


def test_the_length_limit(tiny, hello):
    for limit in (1, 2, len(hello.steps) - 1):
        trace = decode(tiny, "hello", max_length=limit)
        assert trace.finished == "length"
        assert trace.output_tokens == hello.output_tokens[:limit]
        assert trace.is_right is False
        assert_trace_is_true(tiny, trace)
    assert decode(tiny, "hello", max_length=len(hello.steps)).finished == "end"


def test_the_default_limit_is_the_tasks_limit_and_one(make_model, make_tiny):
    model = make_model(1)
    model.output.bias[2] = -1e6  # never `<end>`
    trace = decode(make_tiny(model), "hello")
    assert len(trace.steps) == 11 + 1
    assert trace.finished == "length"


@pytest.mark.parametrize("n", [1, 13])
def test_candidates_are_as_many_as_asked_for(tiny, n):
    trace = decode(tiny, "hello", candidates=n)
    assert {len(step.candidates) for step in trace.steps} == {n}
    assert_trace_is_true(tiny, trace, candidates=n)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"strategy": "magic"}, "'magic'.*greedy, beam, sample"),
    ({"max_length": 0}, "max_length=0.*from 1 to 41"),
    ({"candidates": 0}, "candidates=0.*from 1"),
    ({"pad_to": 6}, "pad_to=6.*from 7 to 41"),
    ({"pad_to": 42}, "pad_to=42.*41"),
    ({"strategy": "beam", "beam_size": 0}, "beam_size=0"),
    ({"strategy": "beam", "length_penalty": float("nan")}, "length_penalty=nan"),
    ({"strategy": "beam", "stop": "soon"}, "bound, first, never"),
    ({"strategy": "beam", "n_best": 0}, "n_best=0"),
    ({"strategy": "beam", "refill": "yes"}, "refill='yes' is not possible; it is true or false"),
    ({"refill": True}, "refill means nothing to strategy 'greedy'"),
    ({"strategy": "greedy", "beam_size": 3}, "beam_size means nothing to strategy 'greedy'"),
    ({"strategy": "sample", "top_p": 0}, "top_p=0"),
    ({"strategy": "sample", "temperature": -1}, "temperature=-1"),
    ({"prefix": ["a"], "ban": ["a"]}, "'a' is forced by prefix and forbidden by ban"),
    ({"prefix": ["<end>"]}, "after which nothing comes"),
    ({"prefix": ["a"] * 13}, "max_length=12"),
    ({"ban": ["<pad>", "<start>", "<end>", "<unk>", *"helo abcd"]}, "leave at least one"),
    ({"strategy": "beam", "edits": ["cross:1-1"]}, "need strategy 'greedy'"),
    ({"target": "ab", "strategy": "beam"}, "nothing to choose"),
    ({"mistake": "nothing"}, "no-causal"),
    ({"edits": ["cross:3-8"]}, "no key 8"),
    ({"edits": ["encoder:8-1"]}, "no query 8"),
    ({"edits": ["cross.9.1:zero"]}, "no layer 9"),
    ({"edits": ["cross:13-1"]}, "no query 13"),
    ({"record": ["everything"]}, "weights, scores"),
    ({"pad_target_to": 9}, "give target too"),
    ({"target": "ab", "pad_target_to": 2}, "pad_target_to=2"),
    ({"kinds": ("cross", "self")}, "kinds.*'self'.*encoder, decoder, cross"),
    ({"kinds": ()}, "kinds.*at least one"),
    ({"layers": ()}, "layers.*at least one"),
    ({"layers": (2,)}, "layers.*2.*encoder.*0 to 1.*kinds="),
    ({"layers": (3,), "kinds": ("cross",)}, "layers.*3.*cross.*0 to 2"),
    ({"layers": 1.5}, r"layers.*1\.5"),
    ({"precision": "float64"}, "precision.*'float64'.*float32, float16"),
    *(({"max_trace_bytes": value}, "max_trace_bytes") for value in (0, -1, True, 1.5, "1", np.int64(3))),
]


@pytest.mark.parametrize(("keywords", "words"), REFUSED, ids=str)
def test_impossible_keywords_name_value_and_allowed(tiny, keywords, words):
    with pytest.raises(OptionError, match=words):
        decode(tiny, "hello", **keywords)


def test_targets_that_cannot_be_read(tiny):
    texts: Any = ["hello", "a"]
    with pytest.raises(InputError, match="2 sources and 1 targets"):
        decode(tiny, texts, target=["b"])
    with pytest.raises(InputError, match="one target text"):
        decode(tiny, texts, target="b")
    with pytest.raises(InputError, match="'ü' is not in the vocabulary"):
        decode(tiny, "hello", target=("ü",))
    with pytest.raises(InputError, match="prefix: token 'ü'"):
        decode(tiny, "hello", prefix=["ü"])


@pytest.mark.parametrize("text", ["", "hellx", "a" * 12, [], ["hello", ""]], ids=repr)
def test_texts_that_cannot_be_read(tiny, text):
    with pytest.raises(InputError):
        decode(tiny, text)


def test_a_text_longer_than_the_models_positions_is_refused(make_model, make_tiny):
    """Guards a shape error out of the position table when a task allows more than a model can hold."""
    checkpoint = make_tiny(make_model(1, max_positions=9), Reverse("helo abcd", 32))
    assert len(decode(checkpoint, "hello a").source_tokens) == 9
    with pytest.raises(InputError, match=r"10.*9"):
        decode(checkpoint, "hello ab")
