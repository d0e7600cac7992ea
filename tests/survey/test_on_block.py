"""Blocks of texts against plain loops over `tv.decode`, against attention that is known by hand, and with texts that fail."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformer_viz.analysis.survey.result import Survey
from transformer_viz.surveying.block import Block, Line
from transformer_viz.surveying.on_block import survey_block
from transformer_viz.surveying.options import SurveyOptions

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families, firefox_files
from tests.survey.plain import Plain
from tests.survey.runs import blocks_of, surveyed
from transformer_viz import batches
from transformer_viz.decoding.greedy import greedy
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.framing import padded_batch

WORDS = [f"w{i}" for i in range(42)]
IN_FLOAT64 = ("marian", "t5", "gpt2", "bert")
"""Families that take the softmax in float64 too."""


def largest_difference(found: Survey, plain: Plain) -> float:
    """Of means, deviations, ends and baselines; counts, roles, lines and who has what are equal."""
    worst: Any = 0.0
    for head in found.heads:
        place = (head.kind, head.layer, head.head)
        assert head.roles == plain.roles[place]
        for name, one in head.statistics.items():
            values = plain.values.get((place, name))
            assert (one is None) == (values is None), (place, name)
            if one is None or values is None:
                continue
            assert one.n == len(values) == sum(one.counts)
            sd = np.std(values, ddof=1) if len(values) > 1 else 0.0
            wanted = (np.mean(values), sd, min(values), max(values), np.mean(plain.even[place, name]))
            got = (one.mean, one.sd, one.min, one.max, one.even)
            worst = max(worst, *(abs(a - b) for a, b in zip(got, wanted, strict=True) if a is not None))
        if head.by is not None:
            values, lines = plain.values[place, head.by], plain.lines[place, head.by]
            apart = sorted(-abs(value - np.mean(values)) for value in values)
            given = {each.line: each.value for each in (*head.highest, *head.typical, *head.unusual)}
            worst = max(worst, *(abs(value - values[lines.index(line)]) for line, value in given.items()))
            one = head.statistics[head.by]
            assert one is not None
            farthest = [-abs(each.value - one.mean) for each in head.unusual]
            worst = max(worst, float(np.abs(np.subtract(farthest, apart[: len(farthest)])).max()))
    for kind, rows in found.agreement.items():
        for (a, b), shares in plain.agreement[kind].items():
            share = rows[a][b]
            assert share is not None
            worst = max(worst, abs(share - float(np.mean(shares))))
    return worst


def check(model: LoadedModel, texts: list[str], folder: Path, most: float, max_length: int | None = None) -> float:
    found, plain = surveyed(folder, model, texts, max_length=max_length), Plain(model, texts, max_length)
    assert found.texts.n_read == len(texts) == found.texts.n
    worst = largest_difference(found, plain)
    assert worst < most
    if found.outputs is not None:
        written = [step for trace in plain.traces for step in trace.steps[trace.n_given :]]
        assert sum(found.outputs.confidence.counts) == len(written)
        assert found.outputs.n_exact == sum(trace.is_right is True for trace in plain.traces)
    return worst


def in_float64(name: str) -> Any:
    """A tiny model of a family, whose numbers are not rounded."""
    model = families.wrapped(families.untapped(name).double(), families.tokenizer(ends=name not in families.DECODERS), name)
    return model


def sentences(n: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(n)]


def test_our_model_is_that_of_plain_loops_in_float64(make_model, make_tiny, tmp_path):
    """Texts of all lengths, those that end and those that the limit stops; two blocks."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("helo abcd"), n)).strip() or "h" for n in rng.integers(1, 12, 70)]
    check(make_tiny(make_model(4)), texts, tmp_path, 1e-9)


@pytest.mark.parametrize("name", IN_FLOAT64)
def test_other_families_are_those_of_plain_loops_in_float64(name, tmp_path):
    check(in_float64(name), sentences(13), tmp_path, 1e-9, max_length=6)


@pytest.mark.parametrize("name", ["llama", "modernbert"])
def test_families_whose_softmax_is_in_float32_are_those_of_plain_loops_in_float64(name, tmp_path):
    check(in_float64(name), sentences(13), tmp_path, 1e-5, max_length=6)


@pytest.mark.parametrize("name", ["marian", "llama", "gemma2", "modernbert"])
def test_other_families_are_those_of_plain_loops(name, tmp_path):
    check(families.family(name), sentences(13), tmp_path, 1e-5, max_length=6)


@needs("sentencepiece")
def test_firefox_is_that_of_plain_loops(tmp_path):
    model: Any = tv.load_model(str(firefox_files.save(tmp_path / "mine")))
    check(model, ["o gato preto dorme", "the house", "das Haus ist klein"] * 2, tmp_path, 1e-5, max_length=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reverse", "dates", "numbers", "pinyin"])
def test_shipped_checkpoints_are_those_of_plain_loops(name, tmp_path):
    model = tv.load_checkpoint(name)
    texts = [text for _, text in model.task.judged(max(300, model.task.least_samples()), 0)][:300]
    check(model, texts, tmp_path, 1e-5)
    exact = replace(model, model=model.model.double())
    check(exact, texts, tmp_path, 1e-9)


def test_how_texts_are_put_together_changes_nothing(make_model, make_tiny, tmp_path, monkeypatch):
    """Alone, in small batches, and where several do not fit."""
    model = make_tiny(make_model(4))
    texts = ["helo", "abcd hel", "h", "lo lo lo", "cab"]
    whole = surveyed(tmp_path, model, texts)
    for name, value in (("AT_ONCE", 2), ("MOST_WEIGHTS", 4000), ("MOST_WEIGHTS", 1)):
        monkeypatch.setattr(batches, name, value)
        again = surveyed(tmp_path, model, texts)
        for a, b in zip(whole.heads, again.heads, strict=True):
            assert a.roles == b.roles
            for name in a.statistics:
                one, other = a.statistics[name], b.statistics[name]
                assert (one and one.counts) == (other and other.counts)
                assert one is None or other is None or abs(one.mean - other.mean) < 1e-9
    lengths, run_batch = [], batches.run_batch
    monkeypatch.setattr(
        batches, "run_batch", lambda model, texts, **how: lengths.append(len(texts)) or run_batch(model, texts, **how)
    )
    monkeypatch.setattr(batches, "MOST_WEIGHTS", 4000)
    surveyed(tmp_path, model, texts)
    assert min(lengths) == 1, "no batch was too large"


def test_a_block_is_the_same_bytes_again(make_model, make_tiny):
    """Twice, and with more threads to compute with."""
    model, (block,) = make_tiny(make_model(4)), blocks_of(["helo", "abcd hel", "h"])
    first = survey_block(model, block, SurveyOptions()).to_bytes("d")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert survey_block(model, block, SurveyOptions()).to_bytes("d") == first
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_text_that_fails_harms_no_other(make_model, make_tiny, tmp_path):
    """Unreadable, too long, not read by whoever reads files: counted and named; the others as if they were not there."""
    model = make_tiny(make_model(4))
    good = ["helo", "abcd"]
    lines = (
        Line(1, "helo"),
        Line(2, "ZZZ"),
        Line(3, "", fault="it is empty"),
        Line(4, "abcd"),
        Line(5, "a" * 2000),
    )
    found = survey_block(model, Block(0, lines), SurveyOptions())
    alone = survey_block(model, Block(0, (Line(1, "helo"), Line(4, "abcd"))), SurveyOptions())
    assert found.lines == alone.lines == (1, 4) and found.texts == tuple(good)
    assert [each.line for each in found.failed] == [2, 3, 5]
    assert found.failed[1].why == "it is empty" and "Z" in found.failed[0].why and len(found.failed[2].text) <= 1000
    for kind in found.kinds:
        assert np.array_equal(found.kinds[kind].sums, alone.kinds[kind].sums)


def test_a_model_that_fails_on_one_text_fails_on_that_alone(make_model, make_tiny, monkeypatch):
    """Whatever goes wrong with a batch, the others are run again; and numbers that are none are a fault of their text."""
    model = make_tiny(make_model(4))
    run_batch = batches.run_batch

    def failing(model, texts, **how):
        if any(text.index == 1 for text in texts):
            raise OptionError("no token is allowed")
        found = run_batch(model, texts, **how)
        for i, text in enumerate(found.texts):
            if text.index == 2:
                found.weights["cross"][i, 0, 0, 0, 0] = np.nan
        return found

    monkeypatch.setattr(batches, "run_batch", failing)
    (block,) = blocks_of(["helo", "abcd", "cab", "bad"])
    found = survey_block(model, block, SurveyOptions())
    assert found.lines == (1, 4)
    assert [(each.line, each.why[:20]) for each in found.failed] == [(2, "no token is allowed"), (3, "tiny computes number")]
    assert all((of.n <= 2).all() and np.isfinite(of.sums).all() for of in found.kinds.values())


def test_nothing_that_can_be_read_is_a_block_too(make_model, make_tiny, tmp_path):
    model = make_tiny(make_model(4))
    found = surveyed(tmp_path, model, ["ZZZ", "YYY"])
    assert (found.texts.n, found.texts.n_read, found.texts.n_failed) == (2, 0, 2)
    assert all(one is None for head in found.heads for one in head.statistics.values())
    assert found.outputs is not None and found.outputs.n == 0 and found.heads[0].by is None


def test_targets_are_the_known_answers():
    """Exact, wrong at a known place, too long, and none."""
    model = in_float64("t5")
    traces = [tv.decode(model, text, max_length=9) for text in sentences(30)]
    trace = next(t for t in traces if t.finished == "end" and len(t.steps) >= 4 and set(t.output_tokens[:-1]) <= set(WORDS))
    own, text = trace.output_tokens[:-1], trace.source
    wrong = WORDS[WORDS.index(own[1]) - 1]
    targets = (" ".join(own), " ".join((own[0], wrong, *own[2:])), " ".join((*own, own[0])))
    lines = (*(Line(i, text, target) for i, target in enumerate(targets, 1)), Line(4, text))
    found = survey_block(model, Block(0, lines), SurveyOptions(max_length=9)).outputs
    assert found is not None
    n = len(trace.steps)
    assert found.is_known.tolist() == [True, True, True, False] and found.is_exact.tolist() == [True, False, False, False]
    assert found.n_tokens.tolist() == [n, n, n + 1, 0] and found.n_right.tolist() == [n, n - 1, n - 1, 0]
    p = [step.probability for step in trace.steps]
    assert found.confidence == pytest.approx([0, p[1], p[-1], np.exp(np.log(p).mean())])
    # Judged are tokens after a right prefix: all of the first and the third, two of the second.
    assert found.n_judged.sum() == n + 2 + n and found.right.sum() == n + 1 + (n - 1)
    assert found.sum_p.sum() == pytest.approx(2 * sum(p) + p[0] + p[1]) and found.counts.sum() == 4 * n
    assert found.length.tolist() == [len(text.split())] * 4


def test_sentences_that_have_ended_are_left_out():
    """The same ids and the same weights as when they are read on; zeros after their end."""
    model = tv.load_checkpoint("reverse-small")
    rows = [model.tokenizer.source("abcdefghijkl"[: 1 + i % 12]) for i in range(24)]
    model.model.double()
    source, padding = padded_batch(rows, 0, max(map(len, rows)), device=torch.device("cpu"))
    recorders = [Recorder(("weights", "mask")) for _ in range(2)]
    seen: list[list[torch.Tensor]] = [[], []]
    found = [
        greedy(
            model.model,
            source,
            padding,
            max_length=14,
            tap=recorder,
            drop_ended=drop,
            log=lambda logits, _, own=own: own.append(logits),
        )
        for recorder, drop, own in zip(recorders, (False, True), seen, strict=True)
    ]
    assert torch.equal(found[0].ids, found[1].ids) and torch.equal(found[0].lengths, found[1].lengths)
    assert len(set(found[0].lengths.tolist())) > 3, "all texts end at once: nothing was dropped"
    for kind in ("decoder", "cross"):
        whole, dropped = (recorder.gathered(kind, "weights") for recorder in recorders)
        assert whole is not None and dropped is not None
        for i, n in enumerate(found[0].lengths.tolist()):
            torch.testing.assert_close(whole[i, :, :, :n], dropped[i, :, :, :n], rtol=0, atol=1e-12)
            for t in range(n):
                torch.testing.assert_close(seen[0][t][i], seen[1][t][i], rtol=0, atol=1e-12)
        assert (dropped.sum(-1) == 0).any(), "nothing was dropped"


def test_planted_attention_has_the_numbers_of_the_hand(make_model, make_tiny, tmp_path, monkeypatch):
    """Cross-attention of one head over `<start> h e <end>` and `<start> h <end>`: all else follows by hand."""
    model = make_tiny(make_model(4, n_heads=1, n_encoder_layers=1, n_decoder_layers=1))
    run_batch = batches.run_batch
    long = [[0.1, 0.2, 0.6, 0.1], [0.2, 0.8, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    short = [[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]

    def given(model, texts, **how):
        found = run_batch(model, texts, **how)
        for i, text in enumerate(found.texts):
            rows = long if text.index == 0 else short
            n = len(rows)
            found.weights["cross"][i] = 0
            found.weights["cross"][i, 0, 0, :n, : len(rows[0])] = rows
            found.written[i][:] = [4] * n
            found.probabilities[i] = np.full(n, 0.5)
        return found

    monkeypatch.setattr(batches, "run_batch", given)
    found = surveyed(tmp_path, model, ["he", "h"])
    numbers = {name: one for name, one in found.at("cross", 0, 0).statistics.items() if one is not None}
    # Reverse: step 0 must look at the last letter, 1 at the one before, the last step at nothing.
    assert numbers["mass"].mean == pytest.approx(((0.6 + 0.8) / 2 + 0.5) / 2)
    assert numbers["hit_rate"].mean == 1 and numbers["mass"].even == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert numbers["first_key"].mean == pytest.approx(((0.1 + 0.2 + 0) / 3 + (0.25 + 0.5) / 2) / 2)
    assert numbers["last_key"].mean == pytest.approx(((0.1 + 0 + 1) / 3 + (0.25 + 0.25) / 2) / 2)
    assert numbers["special"].mean == pytest.approx(((0.2 + 0.2 + 1) / 3 + (0.5 + 0.75) / 2) / 2)
    assert numbers["distance"].mean == pytest.approx(((0.2 + 0.2 + 0.1 + 0.2 + 0.1) / 2 + 0.5) / 2, abs=1)
    assert "itself" not in numbers and numbers["mass"].min == pytest.approx(0.5) and numbers["mass"].max == pytest.approx(0.7)
    assert numbers["mass"].sd == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert numbers["mass"].counts[10] + numbers["mass"].counts[9] == 1 and sum(numbers["mass"].counts[13:15]) == 1
    assert [each.line for each in found.at("cross", 0, 0).highest] == [1, 2]
    assert found.outputs is not None and sum(found.outputs.confidence.counts) == 5
    assert [each.length for each in found.outputs.by_length] == [1, 2]


def test_rows_with_one_key_are_not_compared(make_model, make_tiny, tmp_path):
    """The decoder's first row has the largest weight on `<start>` in every head; of a text of one row nothing is compared."""
    model = make_tiny(make_model(4))
    one = surveyed(tmp_path, model, ["helo"], max_length=1)
    assert {share for row in one.agreement["decoder"] for share in row} == {None}
    trace = tv.decode(model, "helo", max_length=6)
    weights = trace.decoder.weights
    assert weights is not None and trace.n_steps > 2
    tops = weights.argmax(-1).reshape(-1, trace.n_steps)[:, 1:]
    several = surveyed(tmp_path, model, ["helo"], max_length=6)
    np.testing.assert_allclose(np.array(several.agreement["decoder"], float), (tops[:, None] == tops).mean(-1))
