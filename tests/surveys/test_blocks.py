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
from transformer_viz.decoding import memory
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.schema import to_plain
from transformer_viz.surveys.blocks import SurveyOptions, read_verdicts, survey_block, survey_verdicts
from transformer_viz.surveys.corpus import Block, Line
from transformer_viz.surveys.result import Survey

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
    return families.wrap_model(families.untapped(name).double(), families.tokenizer(ends=name not in families.DECODERS), name)


def sentences(n: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(n)]


def test_our_model_is_that_of_plain_loops_in_float64(make_model, make_tiny, tmp_path):
    """Texts of all lengths, those that end at different steps and those that the limit stops; two blocks."""
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("helo abcd"), n)).strip() or "h" for n in rng.integers(1, 12, 24)]
    check(make_tiny(make_model(4)), texts, tmp_path, 1e-9, size=16)
    trained = tv.load_checkpoint("reverse-small")
    check(replace(trained, network=trained.network.double()), ["abcdefghijkl"[: 1 + i % 12] for i in range(24)], tmp_path, 1e-9)


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
    exact = replace(model, network=model.network.double())
    check(exact, texts, tmp_path, 1e-9)


def test_how_texts_are_put_together_changes_nothing(make_model, make_tiny, tmp_path, monkeypatch):
    """Alone, in small batches, and where several do not fit."""
    model, texts = make_tiny(make_model(4)), ["helo", "abcd hel", "h", "lo lo lo", "cab"]
    whole, run = surveyed(tmp_path, model, texts), batches.run_batch
    for module, name, value in ((batches, "AT_ONCE", 2), (memory, "KEPT", 4000), (memory, "KEPT", 1)):
        sizes: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            patch.setattr(batches, "run_batch", lambda m, some, n=sizes, **how: n.append(len(some)) or run(m, some, **how))
            again = surveyed(tmp_path, model, texts)
        assert len(sizes) > 1 and min(sizes) == 1
        for one, other in zip(whole.heads, again.heads, strict=True):
            assert (one.place, one.statistic, one.counts) == (other.place, other.statistic, other.counts)
            assert abs(one.mean - other.mean) < 1e-9


def test_a_block_is_the_same_bytes_again_and_holds_what_failed(make_model, make_tiny, tmp_path):
    """With more threads to compute with, which are given back. Of texts none of which is read there is a block too."""
    model, (block,) = make_tiny(make_model(4)), blocks_of(["helo", "abcd hel", "h"])
    first, before = survey_block(model, block, SurveyOptions()).to_bytes(), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert survey_block(model, block, SurveyOptions()).to_bytes() == first
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    found = surveyed(tmp_path, model, ["ZZZ", "YYY"])
    assert (found.texts.n, found.texts.n_read, found.texts.n_failed) == (2, 0, 2)
    assert not found.heads and not found.examples and found.outputs is not None and found.outputs.n == 0


def test_a_text_that_fails_harms_no_other(make_model, make_tiny):
    """Unreadable, too long, not read by whoever reads files: counted and named; the others as if they were not there."""
    model = make_tiny(make_model(4))
    lines = (Line(1, "helo"), Line(2, "ZZZ"), Line(3, "", fault="it is empty"), Line(4, "abcd"), Line(5, "a" * 2000))
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


def test_targets_are_the_known_answers():
    """Exact, wrong at a known place, too long, and none."""
    model = in_float64("t5")
    traces = [tv.decode(model, text, max_length=9) for text in sentences(30)]
    trace = next(t for t in traces if t.finished == "end" and len(t.steps) >= 4 and set(t.output_tokens[:-1]) <= set(WORDS))
    own, text, n = trace.output_tokens[:-1], trace.source, len(trace.steps)
    wrong = WORDS[WORDS.index(own[1]) - 1]
    targets = (" ".join(own), " ".join((own[0], wrong, *own[2:])), " ".join((*own, own[0])))
    lines = (*(Line(i, text, target) for i, target in enumerate(targets, 1)), Line(4, text))
    arrays = survey_block(model, Block(0, lines), SurveyOptions(max_length=9)).arrays
    p = [step.probability for step in trace.steps]
    wanted = {
        "is_known": [True, True, True, False],
        "is_exact": [True, False, False, False],
        "n_tokens": [n, n, n + 1, 0],
        "n_right": [n, n - 1, n - 1, 0],
        "confidence": [0, p[1], p[-1], np.exp(np.log(p).mean())],
        # Judged are tokens after a right prefix: all of the first and the third, two of the second.
        "n_judged": [n, 2, n, 0],
        "n_judged_right": [n, 1, n - 1, 0],
        "p": p * 4,
        "n_written": [n] * 4,
        "length": [len(text.split())] * 4,
    }
    assert {name: arrays[f"outputs.{name}"].tolist() for name in wanted} == {
        name: pytest.approx(numbers) for name, numbers in wanted.items()
    }


def test_of_a_text_of_one_row_nothing_is_compared(make_model, make_tiny, tmp_path):
    """The decoder's first row has the largest weight on `<start>` in every head."""
    found = surveyed(tmp_path, make_tiny(make_model(4)), ["helo"], max_length=1)
    assert {share for row in found.agreement["decoder"] for share in row} == {None}


def test_verdicts_of_lines_are_those_of_runs(make_model, make_tiny, tmp_path):
    """A line that cannot be read leaves nothing."""
    model = make_tiny(make_model(4, n_heads=2, n_encoder_layers=1, n_decoder_layers=1))
    lines = (Line(3, "helo"), Line(5, "ZZ"), Line(7, "", fault="it is empty"), Line(8, "abc"))
    found = survey_verdicts(model, Block(0, lines), SurveyOptions(max_length=4, mode="position"))
    (tmp_path / "verdicts").write_bytes(found.to_bytes())
    again = read_verdicts(tmp_path / "verdicts")
    wanted = tv.judge_attention(
        model, [tv.decode(model, text, max_length=4) for text in ("helo", "abc")], mode="position", seed=0
    )
    assert to_plain(judging.merge_verdicts(again.verdicts, again.missing, seed=0)) == to_plain(wanted)
