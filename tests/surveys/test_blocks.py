"""Blocks of texts against plain loops over `tv.decode`, against attention that is known by hand, and with texts that fail."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer_viz as tv
from tests.needs import needs
from tests.readers import families, firefox_files
from tests.surveys.plain import Plain
from tests.surveys.runs import blocks_of, surveyed
from transformer_viz import batches
from transformer_viz.attribution.result import verdict as judging
from transformer_viz.decoding.greedy import greedy
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveys.block_results import BlockResult, read_verdicts
from transformer_viz.surveys.blocks import survey_block, survey_verdicts
from transformer_viz.surveys.corpus import Block, Line
from transformer_viz.surveys.options import SurveyOptions
from transformer_viz.surveys.result import Survey
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.tokenize_batch import padded_batch

WORDS = [f"w{i}" for i in range(42)]
FAMILIES = [(name, True, 1e-9) for name in ("marian", "t5", "gpt2", "bert")]
FAMILIES += [(name, True, 1e-5) for name in ("llama", "modernbert")]
"""These take the softmax in float32, whatever the others are computed in."""
FAMILIES += [(name, False, 1e-5) for name in ("marian", "gemma2")]


def largest_difference(found: Survey, plain: Plain) -> float:
    """Of means, deviations, ends and baselines; counts, roles, lines and who has what are equal."""
    worst: Any = 0.0
    for place in found.places:
        at = place.kind, place.layer, place.head
        assert {role: round(share * found.texts.n_read) for role, share in found.roles(place)} == plain.roles[at]
        for of in found.statistics:
            row, values = found.at(place, of.name), plain.values.get((at, of.name))
            assert (row is None) == (values is None), (place, of.name)
            if row is None or values is None:
                continue
            assert row.n == len(values) == sum(row.counts)
            sd = np.std(values, ddof=1) if len(values) > 1 else 0.0
            wanted = (np.mean(values), sd, min(values), max(values), np.mean(plain.even[at, of.name]))
            got = (row.mean, row.sd, row.min, row.max, row.uniform)
            worst = max(worst, *(abs(a - b) for a, b in zip(got, wanted, strict=True) if a is not None))
        if (texts := found.texts_of(place)) is not None:
            values, lines = plain.values[at, texts.by], plain.lines[at, texts.by]
            apart = sorted(-abs(value - np.mean(values)) for value in values)
            given = {each.line: each.value for each in (*texts.highest, *texts.typical, *texts.unusual)}
            worst = max(worst, *(abs(value - values[lines.index(line)]) for line, value in given.items()))
            farthest = [-abs(each.value - float(np.mean(values))) for each in texts.unusual]
            worst = max(worst, float(np.abs(np.subtract(farthest, apart[: len(farthest)])).max()))
    for kind, rows in found.agreement.items():
        for (a, b), shares in plain.agreement[kind].items():
            share = rows[a][b]
            assert share is not None
            worst = max(worst, abs(share - float(np.mean(shares))))
    return worst


def check(model: LoadedModel, texts: list[str], folder: Path, most: float, *, size: int = 64, **options: Any) -> None:
    found, plain = surveyed(folder, model, texts, size, **options), Plain(model, texts, **options)
    assert found.texts.n_read == len(texts) == found.texts.n
    assert largest_difference(found, plain) < most
    if found.outputs is not None:
        written = [step for trace in plain.traces for step in trace.steps[trace.n_given :]]
        assert sum(found.outputs.confidence.counts) == len(written)
        assert found.outputs.n_exact == sum(trace.is_right is True for trace in plain.traces)


def in_float64(name: str) -> Any:
    """A tiny model of a family, whose numbers are not rounded."""
    model = families.wrap_model(families.untapped(name).double(), families.tokenizer(ends=name not in families.DECODERS), name)
    return model


def sentences(n: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(n)]


def test_our_model_is_that_of_plain_loops_in_float64(make_model, make_tiny, tmp_path):
    """Texts of all lengths, those that end and those that the limit stops; two blocks."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("helo abcd"), n)).strip() or "h" for n in rng.integers(1, 12, 24)]
    check(make_tiny(make_model(4)), texts, tmp_path, 1e-9, size=16)


@pytest.mark.parametrize(("name", "is_exact", "most"), FAMILIES)
def test_other_families_are_those_of_plain_loops(name, is_exact, most, tmp_path):
    check(in_float64(name) if is_exact else families.family(name), sentences(7), tmp_path, most, max_length=6)


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
        for one, other in zip(whole.heads, again.heads, strict=True):
            assert (one.place, one.statistic, one.counts) == (other.place, other.statistic, other.counts)
            assert abs(one.mean - other.mean) < 1e-9
    lengths, run_batch = [], batches.run_batch
    monkeypatch.setattr(
        batches, "run_batch", lambda model, texts, **how: lengths.append(len(texts)) or run_batch(model, texts, **how)
    )
    monkeypatch.setattr(batches, "MOST_WEIGHTS", 4000)
    surveyed(tmp_path, model, texts)
    assert min(lengths) == 1, "no batch was too large"


def test_a_block_is_the_same_bytes_again(make_model, make_tiny):
    """With more threads to compute with, which are given back."""
    model, (block,) = make_tiny(make_model(4)), blocks_of(["helo", "abcd hel", "h"])
    first, before = survey_block(model, block, SurveyOptions()).to_bytes(), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert survey_block(model, block, SurveyOptions()).to_bytes() == first
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_text_that_fails_harms_no_other(make_model, make_tiny, tmp_path):
    """Unreadable, too long, not read by whoever reads files: counted and named; the others as if they were not there."""
    model = make_tiny(make_model(4))
    lines = (
        Line(1, "helo"),
        Line(2, "ZZZ"),
        Line(3, "", fault="it is empty"),
        Line(4, "abcd"),
        Line(5, "a" * 2000),
    )
    found = survey_block(model, Block(0, lines), SurveyOptions())
    alone = survey_block(model, Block(0, (lines[0], lines[3])), SurveyOptions())
    assert [i for i, fault in enumerate(found.faults) if fault is None] == [0, 3]
    assert found.faults[2] == "it is empty" and "Z" in str(found.faults[1]) and len(str(found.faults[4])) <= 1000
    for name in ("encoder.values", "decoder.values", "cross.values"):
        assert np.array_equal(found.arrays[name][:, :, [0, 3]], alone.arrays[name], equal_nan=True)
        assert np.isnan(found.arrays[name][:, :, [1, 2, 4]]).all()


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
    assert [str(fault)[:20] for fault in found.faults] == ["None", "no token is allowed", "tiny computes number", "None"]
    assert all(np.isnan(found.arrays[f"{kind}.values"][:, :, [1, 2]]).all() for kind in ("encoder", "decoder", "cross"))


def test_nothing_that_can_be_read_is_a_block_too(make_model, make_tiny, tmp_path):
    model = make_tiny(make_model(4))
    found = surveyed(tmp_path, model, ["ZZZ", "YYY"])
    assert (found.texts.n, found.texts.n_read, found.texts.n_failed) == (2, 0, 2)
    assert not found.heads and not found.examples
    assert found.outputs is not None and found.outputs.n == 0


def test_targets_are_the_known_answers():
    """Exact, wrong at a known place, too long, and none."""
    model = in_float64("t5")
    traces = [tv.decode(model, text, max_length=9) for text in sentences(30)]
    trace = next(t for t in traces if t.finished == "end" and len(t.steps) >= 4 and set(t.output_tokens[:-1]) <= set(WORDS))
    own, text = trace.output_tokens[:-1], trace.source
    wrong = WORDS[WORDS.index(own[1]) - 1]
    targets = (" ".join(own), " ".join((own[0], wrong, *own[2:])), " ".join((*own, own[0])))
    lines = (*(Line(i, text, target) for i, target in enumerate(targets, 1)), Line(4, text))
    found = outputs_of(survey_block(model, Block(0, lines), SurveyOptions(max_length=9)))
    n = len(trace.steps)
    assert found["is_known"].tolist() == [True, True, True, False] and found["is_exact"].tolist() == [True, False, False, False]
    assert found["n_tokens"].tolist() == [n, n, n + 1, 0] and found["n_right"].tolist() == [n, n - 1, n - 1, 0]
    p = [step.probability for step in trace.steps]
    assert found["confidence"] == pytest.approx([0, p[1], p[-1], np.exp(np.log(p).mean())])
    # Judged are tokens after a right prefix: all of the first and the third, two of the second.
    assert found["n_judged"].tolist() == [n, 2, n, 0] and found["n_judged_right"].tolist() == [n, 1, n - 1, 0]
    assert found["p"] == pytest.approx([*p, *p, *p, *p]) and found["n_written"].tolist() == [n] * 4
    assert found["length"].tolist() == [len(text.split())] * 4


def outputs_of(result: BlockResult) -> dict[str, Any]:
    return {name.removeprefix("outputs."): array for name, array in result.arrays.items() if name.startswith("outputs.")}


def test_sentences_that_have_ended_are_left_out():
    """The same ids and the same weights as when they are read on; zeros after their end."""
    model = tv.load_checkpoint("reverse-small")
    rows = [model.tokenizer.encode_source("abcdefghijkl"[: 1 + i % 12]) for i in range(24)]
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
    numbers = {row.statistic: row for row in found.heads if row.kind == "cross"}
    # Reverse: step 0 must look at the last letter, 1 at the one before, the last step at nothing.
    assert numbers["mass"].mean == pytest.approx(((0.6 + 0.8) / 2 + 0.5) / 2)
    assert numbers["hit_rate"].mean == 1 and numbers["mass"].uniform == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert numbers["first_key"].mean == pytest.approx(((0.1 + 0.2 + 0) / 3 + (0.25 + 0.5) / 2) / 2)
    assert numbers["last_key"].mean == pytest.approx(((0.1 + 0 + 1) / 3 + (0.25 + 0.25) / 2) / 2)
    assert numbers["special"].mean == pytest.approx(((0.2 + 0.2 + 1) / 3 + (0.5 + 0.75) / 2) / 2)
    assert numbers["distance"].mean == pytest.approx(((0.2 + 0.2 + 0.1 + 0.2 + 0.1) / 2 + 0.5) / 2, abs=1)
    assert "itself" not in numbers and numbers["mass"].min == pytest.approx(0.5) and numbers["mass"].max == pytest.approx(0.7)
    assert numbers["mass"].sd == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert numbers["mass"].counts[10] + numbers["mass"].counts[9] == 1 and sum(numbers["mass"].counts[13:15]) == 1
    assert [each.line for texts in found.examples if texts.kind == "cross" for each in texts.highest] == [1, 2]
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


def test_verdicts_of_lines_are_those_of_runs(make_model, make_tiny, tmp_path):
    """A line that cannot be read leaves nothing."""
    model = make_tiny(make_model(4, n_heads=2, n_encoder_layers=1, n_decoder_layers=1))
    lines = (Line(3, "helo"), Line(5, "ZZ"), Line(7, "", fault="it is empty"), Line(8, "abc"))
    found = survey_verdicts(model, Block(0, lines), SurveyOptions(max_length=4, mode="position"))
    (tmp_path / "verdicts").write_bytes(found.to_bytes())
    again = read_verdicts(tmp_path / "verdicts")
    wanted = tv.verdict(model, [tv.decode(model, text, max_length=4) for text in ("helo", "abc")], mode="position", seed=0)
    assert repr(judging.merge_verdicts(again.verdicts, again.missing, seed=0)) == repr(wanted)
