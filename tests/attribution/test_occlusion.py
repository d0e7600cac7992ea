"""Occlusion against a loop of plain passes, against captum, and against edits that do the same by another way."""

import re
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.attribution import plain
from tests.needs import needs
from transformer_viz.errors import OptionError
from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.mistakes import MistakeTap, named
from transformer_viz.vocabulary import UNKNOWN_ID

EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


def word(source: list[int], read: list[int], j: int) -> tuple[list[int], list[int]]:
    source[j] = UNKNOWN_ID
    return source, read


def prefix_word(source: list[int], read: list[int], j: int) -> tuple[list[int], list[int]]:
    read[j] = UNKNOWN_ID
    return source, read


def deleted(source: list[int], read: list[int], j: int) -> tuple[list[int], list[int]]:
    return [*source[:j], *source[j + 1 :]], read


def below(values: np.ndarray) -> np.ndarray:
    """What is read later than the step is no cause."""
    return np.where(np.triu(np.ones_like(values), 1) > 0, np.nan, values)


def test_it_is_a_loop_of_plain_passes(tiny, hello):
    n_source, n_steps = len(hello.source_tokens), hello.n_steps
    by_word = tv.attribute(tiny, hello, "occlusion")
    assert np.allclose(by_word.values, plain.without(tiny, hello, word, n_source), **EXACT)
    assert (by_word.name, by_word.unit, by_word.values.dtype) == ("occlusion_word_cross", "nats", np.float64)
    gone = tv.attribute(tiny, hello, "occlusion", mode="deleted").values
    assert np.allclose(gone, plain.without(tiny, hello, deleted, n_source), **EXACT)
    of_prefix = tv.attribute(tiny, hello, "occlusion", kind="decoder").values
    assert np.allclose(of_prefix, below(plain.without(tiny, hello, prefix_word, n_steps)), equal_nan=True, **EXACT)
    assert np.abs(by_word.values).max() > 0.1 and np.nanmax(np.abs(of_prefix)) > 0.1


def test_of_a_shorter_prefix_each_step_stands_one_row_higher(tiny, hello):
    source, read, written = plain.ids(tiny, hello)
    before = plain.log_p(tiny, source, read)
    found = tv.attribute(tiny, hello, "occlusion", mode="deleted", kind="decoder").values
    for t, token in enumerate(written):
        for j in range(len(read)):
            left = [number for place, number in enumerate(read[: t + 1]) if place != j]
            if j > t or not left:
                assert np.isnan(found[t, j])
            else:
                expected = before[t, token] - plain.log_p(tiny, source, left)[-1, token]
                assert abs(found[t, j] - expected) < 1e-12


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_a_closed_position_is_a_column_of_the_mask_that_is_flipped(tiny, hello, kind):
    found = tv.attribute(tiny, hello, "occlusion", mode="position", kind=kind).values
    steps = [step.log_probability for step in hello.steps]
    for j in range(len(hello.attentions[kind].keys)):
        edits = [f"{kind}:*-{j + 1}"] if kind == "cross" else [f"decoder:{t + 1}-{j + 1}" for t in range(j, hello.n_steps)]
        forced = tv.decode(tiny, "hello", target=hello.output_tokens[:-1], edits=edits)
        after = [step.log_probability for step in forced.steps]
        own = np.array(steps) - after
        own[: j if kind == "decoder" else 0] = np.nan
        assert np.allclose(found[:, j], own, equal_nan=True, rtol=0, atol=1e-9)
    assert np.nanmax(np.abs(found)) > 0.1


@needs("captum")
def test_it_is_what_captum_finds(tiny, hello):
    """`FeatureAblation` of ids with the unknown token as baseline."""
    source, read, written = plain.ids(tiny, hello)

    def log_p(given: torch.Tensor) -> torch.Tensor:
        """(batch, step), of what was written."""
        log_p = tiny.network(given, torch.tensor([read]).expand(len(given), -1)).log_softmax(-1)
        return log_p[:, torch.arange(len(written)), torch.tensor(written)]

    ablation = import_module("captum.attr").FeatureAblation(log_p)
    values = tv.attribute(tiny, hello, "occlusion").values
    with torch.no_grad():
        for t in range(len(written)):
            theirs = ablation.attribute(torch.tensor([source]), baselines=UNKNOWN_ID, target=t)[0]
            assert np.allclose(values[t], theirs.numpy(), **EXACT)


@pytest.mark.parametrize(
    ("edits", "key", "closed"),
    [
        (["cross.1.1:zero", "decoder.2.2:*=uniform"], 3, ["cross.1.1:zero", "decoder.2.2:*=uniform", "cross:*-4"]),
        # A row that was forced onto a key that is closed loses what it gave it.
        (["cross.3:*=3"], 2, ["cross:*-3", *(f"cross.3.{n}:zero" for n in range(1, 6))]),
    ],
)
def test_edits_of_the_run_stay_in_force(tiny, edits, key, closed):
    trace, after, unedited = (tv.decode(tiny, "hello", target="olleh", edits=each) for each in (edits, closed, []))
    values, plain_values = (tv.attribute(tiny, run, "occlusion", mode="position").values for run in (trace, unedited))
    expected = [a.log_probability - b.log_probability for a, b in zip(trace.steps, after.steps, strict=True)]
    assert np.allclose(values[:, key], expected, rtol=0, atol=1e-9)
    assert not np.allclose(values, plain_values, atol=1e-3)


def test_what_saw_later_tokens_step_by_step_is_asked_step_by_step(tiny):
    """With a mistake each row was the last of its own pass, and is so again."""
    trace = tv.decode(tiny, "hello", mistake="no-causal", max_length=5)
    source, read, written = plain.ids(tiny, trace)
    found = tv.attribute(tiny, trace, "occlusion").values
    for t, token in enumerate(written):
        for j in range(len(source)):
            without = [UNKNOWN_ID if place == j else number for place, number in enumerate(source)]
            each = [plain.log_p(tiny, ids, read[: t + 1], MistakeTap(named("no-causal")))[-1] for ids in (source, without)]
            assert abs(found[t, j] - (each[0][token] - each[1][token])) < 1e-12


def test_padding_that_a_run_kept_is_read_again(tiny):
    trace = tv.decode(tiny, "hello", target="olleh", pad_to=9, pad_target_to=8)
    own = tv.decode(tiny, "hello", target="olleh")
    found, alone = (tv.attribute(tiny, each, "occlusion").values for each in (trace, own))
    n_steps, n_source = alone.shape
    assert np.allclose(found[:n_steps, :n_source], alone, **EXACT)
    assert np.abs(found[:n_steps, n_source:]).max() < 1e-12


def test_what_cannot_be_asked_is_refused_in_words(tiny, hello, make_model, make_tiny):
    unknown = replace(hello, source_tokens=("é", *hello.source_tokens[1:]))
    nothing = tv.Trace.from_arrays(cross=np.eye(2), source_tokens=["a", "b"], target_tokens=["a", "b"])
    edited, other = tv.decode(tiny, "hello", edits=["cross:2-3"]), make_tiny(make_model(77))
    refused: list[tuple[str, Any, tv.Trace, str, dict[str, Any]]] = [
        (r"method 'nope' is not known; choose one of occlusion", tiny, hello, "nope", {}),
        (
            r"mode 'letter' is not one of occlusion; it has word, position, deleted",
            tiny,
            hello,
            "occlusion",
            {"mode": "letter"},
        ),
        (r"mode 'deleted' is not one of rollout; it has none", tiny, hello, "rollout", {"mode": "deleted"}),
        (r"kind 'encoder' has no causes in tiny; choose one of cross, decoder", tiny, hello, "occlusion", {"kind": "encoder"}),
        (r"This is no run of tiny: step \d+ has log p −", other, hello, "occlusion", {}),
        (r"does not know the token 'é'", tiny, unknown, "occlusion", {}),
        ("nothing was written", tiny, nothing, "occlusion", {}),
        (r"edit cross:2-3 names positions, which move", tiny, edited, "occlusion", {"mode": "deleted"}),
    ]
    for words, model, trace, method, given in refused:
        with pytest.raises(OptionError, match=words):
            tv.attribute(model, trace, method, **given)


def test_a_measure_that_a_reader_cannot_give_is_refused_by_name(tiny, hello, monkeypatch):
    """One that tells nothing of what stands around its attention; a verdict says what is missing, and judges the rest."""
    monkeypatch.setattr(type(tiny.network), "attention_block", lambda self, kind, layer: AttentionBlock())
    for method, title in (("alti", "ALTI+"), ("value_weighted", "value-weighted norm")):
        with pytest.raises(OptionError, match=rf"{re.escape(title)} is not available for tiny: it is not known .*attention"):
            tv.attribute(tiny, hello, method)
    found = tv.judge_attention(tiny, hello)
    assert sorted(found.missing) == ["alti", "value_weighted", "value_weighted_sum"]
    assert {"gradient", "rollout"} <= {each.name for each in found.maps}


@pytest.mark.parametrize("method", ["occlusion", "gradient"])
def test_how_far_it_is_can_be_heard_and_the_numbers_stay_the_same(tiny, hello, monkeypatch, method):
    n_tokens = hello.n_steps + len(hello.source_tokens)
    whole = tv.attribute(tiny, hello, method).values
    monkeypatch.setattr("transformer_viz.attribution.rerun.MOST_BETWEEN_REPORTS", 2 * n_tokens * tiny.n_parameters)
    shares: list[float] = []
    heard = tv.attribute(tiny, hello, method, on_progress=shares.append)
    assert np.allclose(heard.values, whole, rtol=1e-5, atol=1e-12)
    n = len(hello.source_tokens) if method == "occlusion" else hello.n_steps
    assert shares == [0.0, *(start / n for start in range(0, n, 2))], "two texts at a time, after the run's own pass"

    def stop(share: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        tv.attribute(tiny, hello, method, on_progress=stop)
