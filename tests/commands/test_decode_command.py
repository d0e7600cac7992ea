"""`decode` and `trace`: what goes in by argument and by pipe, what comes out for people and for programs."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.commands.conftest import save_tiny
from transformer_viz import decode, load_checkpoint, load_trace
from transformer_viz.commands import _shared
from transformer_viz.commands.decode import answer_line, other_tokens, summary
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.trace.steps import Step


@pytest.fixture
def run(cli):
    """`run("abc", …)`: `decode` with the tiny checkpoint on the CPU."""
    return lambda *arguments, **more: cli("decode", "--checkpoint", "tiny", "--device", "cpu", *arguments, **more)


def test_json_is_the_run_itself(home, run):
    """Every number against decoding by the Python API."""
    done = run("abc d", "--json")
    assert (done.code, done.err) == (0, "")
    data, trace = done.json, decode(load_checkpoint("tiny", device="cpu"), "abc d")
    assert (data["source"], data["text"], data["expected"]) == ("abc d", trace.text, "d cba")
    assert data["source_tokens"] == ["<start>", *"abc d", "<end>"]
    for name in ("target_tokens", "output_tokens"):
        assert data[name] == list(getattr(trace, name))
    assert (data["checkpoint"], data["device"], data["finished"]) == ("tiny", "cpu", trace.finished)
    for given, step in zip(data["steps"], trace.steps, strict=True):
        assert (given["token"], given["rank"]) == (step.token, 0) and step.rank == 0
        assert given["probability"] == pytest.approx(step.probability, abs=1e-6)
        assert given["log_probability"] == pytest.approx(step.log_probability, abs=1e-5)
        assert [token for token, _ in given["candidates"]] == [token for token, _ in step.candidates]
        assert given["candidates"][0] == [given["token"], pytest.approx(given["probability"], abs=1e-6)]


@pytest.mark.parametrize(
    ("data", "text"), [(b"abc", "abc"), (b"abc\n", "abc"), (b"abc\r\n", "abc"), (b" a b \n", " a b "), (b"--\n", "--")]
)
def test_standard_input_loses_one_line_break_and_nothing_else(home, run, data, text):
    assert run("-", "--json", stdin=data).json["source"] == text


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"\n", "empty"),
        (b"abc\n\n", "Character 4"),
        (b"abc\r", "a line break"),
        (b"\xff\xfe", "not UTF-8"),
        ("é".encode(), "Character 1"),
        (b"a" * 1_000_001, "one source text"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_bad_standard_input(home, mistake, data, named):
    """The fixture's stream claims to be ASCII: bytes are UTF-8 whatever the machine's locale."""
    assert named in mistake("decode", "--checkpoint", "tiny", "--device", "cpu", "-", stdin=data)


@pytest.mark.parametrize("text", ["-abc", "--", "-"])
def test_text_that_begins_with_a_dash(home, run, text):
    """A single dash still means standard input."""
    assert run("--json", "--", text, stdin=b"d\n").json["source"] == ("d" if text == "-" else text)


def test_the_table_for_people(home, run):
    lines, data = run("a b").out.splitlines(), run("a b", "--json").json
    assert lines[0] == data["text"] and len(lines) == len(data["steps"]) + 3
    for number, (line, step) in enumerate(zip(lines[2:-1], data["steps"], strict=True), start=1):
        shown = [(step["token"], step["probability"]), *step["candidates"][1:4]]
        expected = [part for token, p in shown for part in (token.replace(" ", "␣"), f"{p:.4f}")]
        assert line.split() == [str(number), *expected]
    assert lines[-1].endswith("tiny on cpu")


def test_the_last_line_judges(home):
    """Right, wrong, cut off, and without a true answer; by planted traces."""
    trace = decode(load_checkpoint("tiny", device="cpu"), "ab")
    right = replace(trace, text="ba", finished="end")
    assert answer_line(right) == "right"
    wrong = replace(right, text="ab", output_tokens=(), steps=(), expected_tokens=None)
    assert answer_line(replace(wrong, output_tokens=trace.output_tokens)) == "wrong, expected “ba”"
    cut = answer_line(replace(right, finished="length", expected_tokens=("ba", "<end>")))
    assert cut == f"stopped after {len(trace.steps)} tokens without <end>; wrong, expected “ba”, differs from step 1 on"
    unknown = replace(right, expected=None, expected_tokens=None, alignment=(None,) * trace.n_steps)
    assert answer_line(unknown) == "not known whether it is right"


def test_what_was_written_is_not_listed_as_its_own_alternative():
    """A sampled token need not be the most probable one."""
    best = (("a", 0.5), ("b", 0.25), (" ", 0.125), ("d", 0.0625), ("e", 0.0))
    step = Step(token="b", probability=0.25, log_probability=-1.4, rank=1, candidates=best)
    assert other_tokens(step) == "a 0.5000  ␣ 0.1250  d 0.0625"
    assert other_tokens(replace(step, rank=9)).startswith("a 0.5000  b 0.2500")


def test_nothing_in_the_table_acts_on_the_terminal(home, run):
    """A checkpoint may come from anywhere: control and direction characters in its vocabulary are spelled out."""
    alphabet = "".join(map(chr, [*range(0x00, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
    save_tiny(home / "wild", Reverse(alphabet, 7, (2, 4)))
    done = run("--checkpoint", "wild", "\x1b\x07\u202e", "--candidates", "50")
    assert done.code == 0
    assert all(line.isprintable() for line in done.out.split("\n"))
    assert "<U+001B>" in done.out


def test_trace_writes_what_decode_shows(home, cli, mistake, tmp_path):
    arguments = ("trace", "abc", "--checkpoint", "tiny", "--device", "cpu", "-o", "run.npz", "--candidates", "4")
    (tmp_path / "run.npz").write_bytes(b"precious")
    assert "--force" in mistake(*arguments) and (tmp_path / "run.npz").read_bytes() == b"precious"
    done = cli(*arguments, "--force")
    loaded, want = load_trace(tmp_path / "run.npz"), decode(load_checkpoint("tiny", device="cpu"), "abc")
    assert (done.code, done.out, done.err) == (0, f"run.npz: {want.text}\n", "")
    assert len(loaded.steps[0].candidates) == 4 and loaded.output_tokens == want.output_tokens
    for kind in want.kinds:
        np.testing.assert_allclose(loaded.attentions[kind].weights, want.attentions[kind].weights, atol=1e-6)


def test_trace_files_that_cannot_be(home, mistake, tmp_path):
    (tmp_path / "folder.npz").mkdir()
    before = sorted(tmp_path.iterdir())
    for name, named in (("run.txt", ".npz"), ("nowhere/run.npz", "no folder nowhere"), ("folder.npz", "is a folder")):
        assert named in mistake("trace", "abc", "--checkpoint", "tiny", "-o", name, "--force")
    assert sorted(tmp_path.iterdir()) == before


def test_numbers_that_are_not_finite_become_null(home, capsys):
    """`NaN` is no JSON; most readers refuse the whole object."""
    trace = decode(load_checkpoint("tiny", device="cpu"), "abc")
    none = {"probability": math.nan, "log_probability": -math.inf, "candidates": (("a", math.nan),)}
    step = replace(trace.steps[0], sampling_probability=0.5, **none)
    data = summary(replace(trace, steps=(step, *trace.steps[1:]), mistake="future"))
    first = {"probability": None, "log_probability": None, "candidates": [["a", None]], "sampling_probability": 0.5}
    assert {name: data["steps"][0][name] for name in first} == first
    assert data["steps"][1]["sampling_probability"] is None and data["mistake"] == "future"
    json.dumps(data, allow_nan=False)
    _shared.print_json({"x": math.nan, "y": [(-math.inf, 1)]})
    assert json.loads(capsys.readouterr().out) == {"x": None, "y": [[None, 1]]}


def test_what_is_kept_and_how_much_may_be(home, cli, mistake, tmp_path):
    """Layers count from 1 here; a run that is too large is the user's mistake, on one line."""
    options = ("--checkpoint", "tiny", "--device", "cpu", "abc")
    assert cli("trace", *options, "-o", "part.npz", "--precision=float16", "--kinds=cross,decoder", "--layers=2").code == 0
    trace = load_trace(tmp_path / "part.npz")
    assert (trace.kinds, trace.precision) == (("decoder", "cross"), "float16")
    assert trace.decoder.layers == trace.cross.layers == (1,)
    assert cli("render", "part.npz", "-o", "part.html", "--head", "cross.2", "--what", "attention").code == 0
    refusals = {
        ("--max-trace-bytes", "1000"): "max_trace_bytes=1000 allows 1 kB",
        ("--layers", "2"): "--layers 2 is not possible; encoder attention has layers 1.",
        ("--kinds", "self"): "'self' is not known",
        ("--precision", "float8"): "float8",
    }
    for given, words in refusals.items():
        assert words in mistake("trace", "-o", "large.npz", *options, *given)
    assert not (tmp_path / "large.npz").exists()
