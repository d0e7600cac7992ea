"""`decode` and `trace`: what goes in by argument and by pipe, what comes out for people and for programs."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from transformer_viz import decode, load_checkpoint, load_trace
from transformer_viz.commands import _shared
from transformer_viz.commands.decode import other_tokens, summary, verdict
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.trace.steps import Step


@pytest.fixture
def run(cli):
    """`run("abc", …)`: `decode` with the tiny checkpoint on the CPU."""
    return lambda *arguments, **more: cli("decode", "--checkpoint", "tiny", "--device", "cpu", *arguments, **more)


@pytest.fixture
def refused(mistake, home):
    return lambda *arguments, **more: mistake("decode", "--checkpoint", "tiny", "--device", "cpu", *arguments, **more)


def test_json_is_the_run_itself(home, run):
    """Every number against decoding by the Python API."""
    done = run("abc d", "--json")
    assert (done.code, done.err) == (0, "")
    data, trace = done.json, decode(load_checkpoint("tiny", device="cpu"), "abc d")
    assert data["source"] == "abc d"
    assert data["text"] == trace.text
    assert data["expected"] == "d cba"
    assert data["source_tokens"] == ["<start>", *"abc d", "<end>"]
    assert data["target_tokens"] == list(trace.target_tokens)
    assert data["output_tokens"] == list(trace.output_tokens)
    assert data["finished"] == trace.finished
    assert (data["checkpoint"], data["device"]) == ("tiny", "cpu")
    assert len(data["steps"]) == len(trace.steps)
    for given, step in zip(data["steps"], trace.steps, strict=True):
        assert given["token"] == step.token
        assert given["rank"] == step.rank == 0
        assert given["probability"] == pytest.approx(step.probability, abs=1e-6)
        assert given["log_probability"] == pytest.approx(step.log_probability, abs=1e-5)
        assert [token for token, _ in given["candidates"]] == [token for token, _ in step.candidates]
        assert given["candidates"][0] == [given["token"], pytest.approx(given["probability"], abs=1e-6)]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"abc", "abc"),
        (b"abc\n", "abc"),
        (b"abc\r\n", "abc"),
        (b" a b \n", " a b "),
        (b"-", "-"),
        (b"--\n", "--"),
    ],
)
def test_standard_input_loses_one_line_break_and_nothing_else(home, run, data, text):
    assert run("-", "--json", stdin=data).json["source"] == text


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"abc\n\n", "Character 4"),
        (b"abc\r", "a line break"),
        (b"a\nb\n", "Character 2"),
        (b"\xff\xfe", "not UTF-8"),
        ("é".encode(), "Character 1"),
        (b"a" * 1_000_001, "one source text"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_bad_standard_input(refused, data, named):
    """The fixture's stream claims to be ASCII: bytes are UTF-8 whatever the machine's locale."""
    assert named in refused("-", stdin=data)


@pytest.mark.parametrize("text", ["-abc", "--", "-", "--a-b", "-c"])
def test_text_that_begins_with_a_dash(home, run, text):
    if text == "-":  # still means standard input
        assert run("--json", "--", text, stdin=b"d\n").json["source"] == "d"
    else:
        assert run("--json", "--", text).json["source"] == text


def test_the_table_for_people(home, run):
    lines = run("a b").out.splitlines()
    data = run("a b", "--json").json
    assert lines[0] == data["text"]
    assert len(lines) == len(data["steps"]) + 3
    for number, (line, step) in enumerate(zip(lines[2:-1], data["steps"], strict=True), start=1):
        token = "␣" if step["token"] == " " else step["token"]
        others = [("␣" if t == " " else t, p) for t, p in step["candidates"][1:4]]
        assert line.split() == [
            str(number),
            token,
            f"{step['probability']:.4f}",
            *[part for token, p in others for part in (token, f"{p:.4f}")],
        ]
    assert lines[-1].endswith("tiny on cpu")


def test_the_last_line_judges(home):
    """Right, wrong, cut off, and without a true answer; by planted traces."""
    trace = decode(load_checkpoint("tiny", device="cpu"), "ab")
    right = replace(trace, text="ba", finished="end")
    assert verdict(right) == "right"
    wrong = replace(right, text="ab", output_tokens=(), steps=(), expected_tokens=None)
    assert verdict(replace(wrong, output_tokens=trace.output_tokens)) == "wrong, expected “ba”"
    cut = verdict(replace(right, finished="length", expected_tokens=("ba", "<end>")))
    assert cut == f"stopped after {len(trace.steps)} tokens without <end>; wrong, expected “ba”, differs from step 1 on"
    unknown = replace(right, expected=None, expected_tokens=None, alignment=(None,) * trace.n_steps)
    assert verdict(unknown) == "not known whether it is right"


def test_what_was_written_is_not_listed_as_its_own_alternative():
    """A sampled token need not be the most probable one."""
    best = (("a", 0.5), ("b", 0.25), (" ", 0.125), ("d", 0.0625), ("e", 0.0))
    step = Step(token="b", probability=0.25, log_probability=-1.4, rank=1, candidates=best)
    assert other_tokens(step) == "a 0.5000  ␣ 0.1250  d 0.0625"
    assert other_tokens(replace(step, rank=9)).startswith("a 0.5000  b 0.2500")


def test_nothing_in_the_table_acts_on_the_terminal(home, run, save):
    """A checkpoint may come from anywhere: control and direction characters in its vocabulary are spelled out."""
    alphabet = "".join(map(chr, [*range(0x00, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
    save(home / "wild", Reverse(alphabet, 7, (2, 4)))
    done = run("--checkpoint", "wild", "\x1b\x07\u202e", "--candidates", "50")
    assert done.code == 0
    assert all(line.isprintable() for line in done.out.split("\n"))
    assert "<U+001B>" in done.out


# Which checkpoint


def test_a_folder_by_its_path(home, cli):
    for path in ("home/tiny", "./home/../home/tiny", str(home / "tiny"), "home/tiny/"):
        assert cli("decode", "abc", "--checkpoint", path, "--json").json["checkpoint"] == "tiny"


# The file


def test_trace_writes_what_decode_shows(home, cli, tmp_path):
    done = cli("trace", "abc", "--checkpoint", "tiny", "--device", "cpu", "-o", "run.npz", "--candidates", "4")
    loaded, want = load_trace(tmp_path / "run.npz"), decode(load_checkpoint("tiny", device="cpu"), "abc")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"run.npz: {want.text}\n"
    assert len(loaded.steps[0].candidates) == 4
    assert loaded.output_tokens == want.output_tokens
    for kind in want.kinds:
        weights, wanted = loaded.attentions[kind].weights, want.attentions[kind].weights
        np.testing.assert_allclose(weights, wanted, atol=1e-6)


def test_trace_does_not_overwrite_unasked(home, cli, mistake, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"precious")
    arguments = ("trace", "abc", "--checkpoint", "tiny", "-o", "run.npz")
    line = mistake(*arguments)
    assert "--force" in line
    assert path.read_bytes() == b"precious"
    assert cli(*arguments, "--force").code == 0
    assert load_trace(path).source == "abc"


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("run.txt", ".npz"),
        ("nowhere/run.npz", "no folder nowhere"),
        ("folder.npz", "is a folder"),
        ("a" * 300 + ".npz", "too long"),
    ],
)
def test_trace_files_that_cannot_be(home, mistake, tmp_path, name, named):
    (tmp_path / "folder.npz").mkdir()
    before = sorted(tmp_path.iterdir())
    assert named in mistake("trace", "abc", "--checkpoint", "tiny", "-o", name, "--force")
    assert sorted(tmp_path.iterdir()) == before


# The conversion


def test_numbers_that_are_not_finite_become_null(home):
    trace = decode(load_checkpoint("tiny", device="cpu"), "abc")
    step = replace(
        trace.steps[0], probability=math.nan, log_probability=-math.inf, candidates=(("a", math.nan),), sampling_probability=0.5
    )
    data = summary(replace(trace, steps=(step, *trace.steps[1:]), mistake="future"))
    assert data["steps"][0]["probability"] is None
    assert data["steps"][0]["log_probability"] is None
    assert data["steps"][0]["candidates"] == [["a", None]]
    assert data["steps"][0]["sampling_probability"] == 0.5
    assert data["steps"][1]["sampling_probability"] is None
    assert data["mistake"] == "future"
    json.dumps(data, allow_nan=False)


def test_what_json_cannot_say_is_null(capsys):
    """`NaN` is no JSON; most readers refuse the whole object."""
    _shared.print_json({"x": math.nan, "y": [(-math.inf, 1)]})
    assert json.loads(capsys.readouterr().out) == {"x": None, "y": [[None, 1]]}


def test_what_is_kept_and_how_much_may_be(home, cli, mistake, tmp_path):
    """Layers count from 1 here; a run that is too large is the user's mistake, on one line."""
    options = ("--checkpoint", "tiny", "--device", "cpu", "abc")
    file = tmp_path / "part.npz"
    done = cli("trace", *options, "-o", str(file), "--precision", "float16", "--kinds", "cross,decoder", "--layers", "2")
    assert done.code == 0
    trace = load_trace(file)
    assert (trace.kinds, trace.decoder.layers, trace.cross.layers, trace.precision) == (
        ("decoder", "cross"),
        (1,),
        (1,),
        "float16",
    )
    assert cli("render", str(file), "-o", str(tmp_path / "part.html"), "--layer", "2", "--what", "attention").code == 0
    assert "--layer 1 is not possible; this run's cross attention has 2" in mistake(
        "render", str(file), "-o", str(tmp_path / "no.html"), "--layer", "1"
    )
    refusals = {
        ("--max-trace-bytes", "1000"): "max_trace_bytes=1000 allows 1 kB",
        ("--layers", "2"): "--layers 2 is not possible; encoder attention has layers 1 to 1",
        ("--layers", "0"): "'0'",
        ("--kinds", "self"): "'self' is not known",
        ("--precision", "float8"): "float8",
    }
    for command in (("decode",), ("trace", "-o", str(tmp_path / "large.npz"))):
        for given, words in refusals.items():
            assert words in mistake(*command, *options, *given)
    assert not (tmp_path / "large.npz").exists()
