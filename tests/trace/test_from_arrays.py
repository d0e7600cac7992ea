"""`Trace.from_arrays`: what is given is what is there, in every form; what does not fit is named."""

import math
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.trace.conftest import is_same
from transformer_viz import Trace, load_trace
from transformer_viz.commands.decode import summary
from transformer_viz.errors import TraceError
from transformer_viz.terms import Reason
from transformer_viz.trace.store import to_bytes

LAYERS, HEADS, T, S = 2, 3, 5, 7
SOURCE, TARGET = [f"s{i}" for i in range(S)], ["<s>", "b", "b", "</b>", " "]
OUTPUT = ["b", "b", "</b>", " ", "<end>"]


def rows(*shape: int, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).random(shape) + 0.01
    return raw / raw.sum(-1, keepdims=True)


CROSS = rows(LAYERS, HEADS, T, S)
ENCODER = rows(LAYERS, HEADS, S, S, seed=1)
CAUSAL = np.tril(np.ones((LAYERS, HEADS, T, T))) / np.arange(1, T + 1)[:, None]
LABELS: dict[str, Any] = {"source_tokens": SOURCE, "target_tokens": TARGET}


def test_all_three_kinds_and_nothing_invented():
    trace = Trace.from_arrays(encoder=ENCODER, decoder=CAUSAL, cross=CROSS, masks={"decoder": "causal"}, **LABELS)
    for kind, want in (("encoder", ENCODER), ("decoder", CAUSAL), ("cross", CROSS)):
        np.testing.assert_array_equal(trace.attentions[kind].weights, want.astype(np.float32))
    assert trace.kinds == ("encoder", "decoder", "cross")
    assert (trace.source_tokens, trace.target_tokens) == (tuple(SOURCE), tuple(TARGET))
    assert trace.output_tokens == trace.steps == ()
    assert trace.n_steps == T
    assert trace.alignment == (None,) * T
    assert trace.source_letters == (None,) * S
    assert (trace.text, trace.finished, trace.expected, trace.is_right) == ("", "given", None, None)
    np.testing.assert_array_equal(trace.decoder.mask, np.triu(np.ones((T, T), bool), 1))
    assert not trace.encoder.mask.any()
    assert not trace.cross.mask.any()


FORMS: dict[str, tuple[Any, np.ndarray]] = {
    "heads": (CROSS[0], CROSS[:1]),
    "matrix": (CROSS[0, 0], CROSS[:1, :1]),
    "lists": (CROSS.tolist(), CROSS),
    "half": (CROSS.astype(np.float16), CROSS),
    "big-endian": (CROSS.astype(">f8"), CROSS),
    "fortran": (np.asfortranarray(CROSS), CROSS),
    "strides": (CROSS[:, :, ::-1][:, :, ::-1], CROSS),
    "tensor": (torch.tensor(CROSS), CROSS),
    "layers": (tuple(torch.tensor(CROSS[i : i + 1], dtype=torch.float32) for i in range(LAYERS)), CROSS),
    "batch of one": (CROSS[:, None], CROSS),
    "integers": (np.eye(T, S, dtype=np.int64), np.eye(T, S)[None, None]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(form):
    """Hugging Face gives a tuple with one tensor (1, head, query, key) for each layer."""
    given, want = FORMS[form]
    trace = Trace.from_arrays(cross=given, **LABELS)
    assert trace.cross.weights.dtype == np.float32
    np.testing.assert_allclose(trace.cross.weights, want, atol=1e-3 if getattr(given, "dtype", 0) == np.float16 else 1e-7)


@hypothesis.given(arrays.arrays(np.float64, st.tuples(*(st.integers(1, 4),) * 4), elements=st.floats(0.001, 1)))
def test_any_rows_that_sum_to_1(raw):
    weights = raw / raw.sum(-1, keepdims=True)
    labels = {"source_tokens": ["x"] * raw.shape[3], "target_tokens": ["y"] * raw.shape[2]}
    trace = Trace.from_arrays(cross=weights, **labels)
    np.testing.assert_array_equal(trace.cross.weights, weights.astype(np.float32))
    with pytest.raises(TraceError, match="do not sum to 1"):
        Trace.from_arrays(cross=weights * 1.05, **labels)


def test_the_callers_array_stays_the_callers():
    """A Trace never changes and never freezes what it was made of."""
    mine = CROSS.astype(np.float32)
    trace = Trace.from_arrays(cross=mine, **LABELS)
    mine[:] = 0
    np.testing.assert_array_equal(trace.cross.weights, CROSS.astype(np.float32))
    with pytest.raises(ValueError, match="read-only"):
        trace.cross.weights[:] = 0


MASKS = [
    (np.zeros((S, T), bool), "(7, 5)", "(5, 7)"),
    (np.zeros((4, T, S), bool), "(4, 5, 7)"),
    (np.zeros((T, S)), "float64", "mask < 0"),
    ("causal", "'causal'"),
]
OUT = {"output_tokens": OUTPUT}
CANDIDATES = [[("b", 0.5), ("c", 0.25)]] * 2 + [[("c", 0.5), ("d", 0.25)]] * 3
NO_CANDIDATES = [
    (3, "(token, probability)"),
    ([("b", 0.1), ("c", 0.2)], "not in order"),
    ([("b", 0.8), ("c", 0.7)], "sums to 1.5"),
    ([("b", 0.5), ("b", 0.5)], "twice"),
    ([(3, 0.5)], "not text"),
]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"cross": None}, ["no attention", "encoder=, decoder= or cross="]),
        ({"source_tokens": None, "target_tokens": None}, ["source_tokens is missing", "cross"]),
        ({"target_tokens": None}, ["target_tokens is missing", "cross"]),
        ({"cross": None, "decoder": CAUSAL, "target_tokens": None}, ["target_tokens is missing", "decoder"]),
        ({"source_tokens": SOURCE[1:]}, ["cross", "7 columns", "6 key tokens"]),
        ({"cross": CROSS.swapaxes(2, 3)}, ["cross", "(layer, head, 5, 7)", "swapped"]),
        ({"cross": CROSS[None].repeat(2, 0)}, ["cross", "(2, 2, 3, 5, 7)", "batch axis"]),
        ({"cross": CROSS[0, 0, 0]}, ["cross", "(7,)", "(query, key)"]),
        ({"cross": 0.5}, ["cross", "()"]),
        ({"cross": [CROSS[0], CROSS[1, :2]]}, ["cross", "cannot be read as one array"]),
        ({"cross": []}, ["cross", "is empty", "attn_implementation='eager'"]),
        ({"cross": np.zeros((2, 0, T, S))}, ["cross", "(2, 0, 5, 7)", "empty"]),
        ({"cross": "abc"}, ["cross", "numbers are needed"]),
        ({"cross": CROSS > 0.1}, ["cross", "bool", "numbers"]),
        ({"cross": CROSS.astype(complex)}, ["cross", "complex"]),
        ({"cross": -CROSS}, ["cross", "negative", "[0, 0, 0, 0]", "scores"]),
        ({"cross": np.where(CROSS[1, 2, 3, 4] == CROSS, np.nan, CROSS)}, ["cross", "not finite", "[1, 2, 3, 4]"]),
        ({"cross": CROSS * 1e60}, ["cross", "not finite"]),
        ({"cross": CROSS * 1.11}, ["30 of 30 rows", "[0, 0, 0]", "dropout", "normalised=False"]),
        ({"cross": np.zeros((T, S))}, ["do not sum to 1", "masks="]),
        ({"source_tokens": "abcdefg"}, ["source_tokens is one text", "list(text)"]),
        ({"source_tokens": [*SOURCE[1:], 3]}, ["source_tokens[6]", "'3'", "not text"]),
        ({"source_tokens": 3}, ["source_tokens", "int"]),
        ({"source_tokens": [*SOURCE[1:], "\ud800"]}, ["source_tokens[6]", "surrogate"]),
        ({"output_tokens": OUTPUT[1:]}, ["output_tokens has 4", "5 target tokens"]),
        ({"probabilities": [1] * T}, ["give output_tokens too"]),
        ({"alignment": [0, 1]}, ["alignment has 2", "5 target tokens"]),
        ({"alignment": [0, 1, 7, None, 0]}, ["alignment[2]", "'7'", "0 to 6"]),
        ({"alignment": [0, 1, True, None, 0]}, ["alignment[2]"]),
        ({"made_by": {"a": {1, 2}}}, ["made_by", "JSON"]),
        ({"made_by": {"a": math.nan}}, ["made_by", "JSON"]),
        # Masks
        *((({"masks": {"cross": mask}}), ["cross mask", *named]) for mask, *named in MASKS),
        ({"masks": {"cross": np.tri(T, S, dtype=bool)}}, ["masked cells have weight", "give ~mask"]),
        ({"masks": {"encoder": np.zeros((S, S), bool)}}, ["'encoder'", "cross"]),
        ({"masks": {"self": None}}, ["'self'"]),
        ({"masks": [1]}, ["masks is list"]),
        # What was written
        ({**OUT, "probabilities": [0.5]}, ["probabilities has 1", "5 output tokens"]),
        *(({**OUT, "probabilities": [0.5, p, 0.5, 0.5, 0.5]}, ["probabilities[1]", repr(p)]) for p in (2, math.nan, "x")),
        ({**OUT, "candidates": CANDIDATES[:1]}, ["candidates has 1"]),
        ({**OUT, "candidates": CANDIDATES}, ["step 2", "'</b>'", "not among its candidates"]),
        *(({**OUT, "candidates": [one] * 5}, ["candidates[0]", words]) for one, words in NO_CANDIDATES),
        ({**OUT, "candidates": [[("b", 0.5)]] * 5, "probabilities": [0.4] * 5}, ["step 0", "0.4", "0.5"]),
    ],
)
def test_what_does_not_fit_is_named(fields, named):
    given: dict[str, Any] = {"cross": CROSS, **LABELS, **fields}
    with pytest.raises(TraceError) as caught:
        Trace.from_arrays(**given)
    for part in named:
        assert part in str(caught.value), str(caught.value)


def test_weights_after_dropout_can_be_accepted():
    dropped = np.where(np.random.default_rng(3).random(CROSS.shape) < 0.2, 0, CROSS / 0.8)
    trace = Trace.from_arrays(cross=dropped, normalised=False, **LABELS)
    np.testing.assert_array_equal(trace.cross.weights, dropped.astype(np.float32))


# Masks


@pytest.mark.parametrize("shape", [(S,), (1, S), (T, S), (1, 1, T, S), (LAYERS, HEADS, T, S), (LAYERS, 1, 1, S)])
def test_a_mask_in_every_shape(shape):
    masked = np.zeros((LAYERS, HEADS, T, S), bool)
    masked[..., -2:] = True
    weights = np.where(masked, 0, CROSS)
    weights /= weights.sum(-1, keepdims=True)
    mask = masked[tuple(slice(None) if n > 1 else slice(1) for n in (1,) * (4 - len(shape)) + shape)].reshape(shape)
    trace = Trace.from_arrays(cross=weights, masks={"cross": mask}, **LABELS)
    np.testing.assert_array_equal(np.broadcast_to(trace.cross.mask, masked.shape), masked)


def test_reasons_are_given_as_far_as_they_can_be_told():
    """A key labelled as padding is padding, a later key is the future; of the rest nothing is known."""
    masked = np.triu(np.ones((T, T), bool), 1)
    masked[4, 2] = masked[:, 4] = True
    weights = np.where(masked, 0, 1.0)
    weights /= weights.sum(-1, keepdims=True)
    tokens = ["a", "b", "c", "d", "[PAD]"]
    trace = Trace.from_arrays(decoder=weights, target_tokens=tokens, masks={"decoder": masked}, pad_token="[PAD]")
    a, p, f, b, u = (int(r) for r in (Reason.ALLOWED, Reason.PADDING, Reason.FUTURE, Reason.BOTH, Reason.UNKNOWN))
    want = [[a, f, f, f, b], [a, a, f, f, b], [a, a, a, f, b], [a, a, a, a, b], [a, a, u, a, p]]
    assert trace.decoder.reasons.tolist() == want
    assert trace.decoder.mask.tolist() == masked.tolist()


def test_a_row_in_which_everything_is_masked_may_hold_anything():
    """Some programs write zeros there, some spread the weight evenly; it is drawn as masked."""
    masked = np.zeros((T, S), bool)
    masked[2] = True
    for value in (0.0, 1 / S):
        weights = CROSS.copy()
        weights[:, :, 2] = value
        assert Trace.from_arrays(cross=weights, masks={"cross": masked}, **LABELS).cross.mask[2].all()


@pytest.mark.parametrize(
    ("given", "kind", "has_encoder", "writes", "has_prompt"),
    [
        ({"cross": CROSS, **LABELS}, "encoder-decoder", True, True, False),
        ({"decoder": np.eye(3), "target_tokens": ["<s>", "the", "cat"]}, "decoder", False, True, True),
        ({"encoder": np.eye(2), "source_tokens": ["the", "cat"]}, "encoder", True, False, False),
    ],
)
def test_a_run_tells_what_its_model_is_made_of(given, kind, has_encoder, writes, has_prompt) -> None:
    found = Trace.from_arrays(**given).model_kind
    assert found == kind
    assert (found.has_encoder, found.writes, found.has_prompt) == (has_encoder, writes, has_prompt)


# What was written: probabilities and candidates that somebody has, and only those


PROBABILITIES = [0.5, 0.125, 0.0625]
OF_STEPS = [[("b", 0.5), ("c", 0.25)], [("c", 0.75), ("<i>", 0.125)], [("c", 0.5), ("d", 0.25)]]
WITH_ALL = [*OF_STEPS[:2], [("d", 0.5), ("b", 0.25)]]


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({}, []),
        (
            {"probabilities": np.array(PROBABILITIES, np.float32), "candidates": OF_STEPS},
            [(0.5, 0), (0.125, 1), (0.0625, None)],
        ),
        ({"probabilities": [0, 0.5, 1]}, [(0, None), (0.5, None), (1, None)]),
        ({"candidates": WITH_ALL}, [(0.5, 0), (0.125, 1), (0.25, 1)]),
    ],
)
def test_what_was_written(fields, steps):
    """The rank is the place among the candidates, and unknown where the token is not among them. A file holds all of it."""
    written = ["b", "<i>", "b"]
    tokens: dict[str, Any] = {"source_tokens": list("abcdefg"), "target_tokens": ["<s>", "b", "<i>"], "output_tokens": written}
    given: dict[str, Any] = {**tokens, **fields, "alignment": [3, None, 6], "made_by": {"model": "théirs"}}
    trace = Trace.from_arrays(cross=np.full((2, 5, 3, 7), 1 / 7), **given)
    assert (trace.output_tokens, trace.text) == (tuple(written), "b <i> b")
    assert [(s.token, s.probability, s.rank) for s in trace.steps] == [(w, *s) for w, s in zip(written, steps, strict=False)]
    assert [s.log_probability for s in trace.steps] == [math.log(p) if p else -math.inf for p, _ in steps]
    assert [list(s.candidates) for s in trace.steps] == fields.get("candidates", [[]] * len(steps))
    assert len(summary(trace)["steps"]) == len(steps)
    assert is_same(load_trace(to_bytes(trace)), trace)
    assert trace.made_by == {"strategy": "from arrays", "model": "théirs"}
    assert Trace.from_arrays(cross=trace.cross.weights, **tokens, text="b<i>b", source="the source").text == "b<i>b"
