"""What all commands share: finding them, exit codes, one-line errors, and starting without torch."""

import io
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.inside import add_commands
from transformer_viz import Trace, __version__, commands, save_trace
from transformer_viz.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["app", "checkpoints", "decode", "diff", "evaluate", "trace", "train"]


def python(
    *arguments: str, stdin: bytes | None = b"", folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=60,
    )


def program(*arguments: str, **more) -> subprocess.CompletedProcess[bytes]:
    return python("-m", "transformer_viz", *arguments, **more)


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """`planted(code)`: a command `zz-planted` whose `run` is this code; one new file and nothing else."""

    def plant(body: str) -> None:
        source = f"def run():\n{textwrap.indent(body, '    ')}\n"
        (tmp_path / "zz_planted.py").write_text(source, encoding="utf-8")
        add_commands(monkeypatch, tmp_path)

    yield plant
    sys.modules.pop("transformer_viz.commands.zz_planted", None)


def test_a_command_is_one_new_file(planted, cli):
    planted("print('here')\nreturn 1")
    assert "zz-planted" in commands.names()
    done = cli("zz-planted")
    assert (done.code, done.out, done.err) == (1, "here\n", "")
    assert "zz-planted" in cli("--help").out


def test_every_command_explains_itself(cli):
    for name in COMMANDS:
        done = cli(name, "--help")
        assert (done.code, done.err) == (0, "")
        assert f"transformer_viz {name}" in done.out
    everything = cli("--help").out
    assert all(name in everything for name in COMMANDS)


def test_version(cli):
    done = cli("--version")
    assert (done.code, done.out) == (0, f"transformer_viz {__version__}\n")


@pytest.mark.parametrize("arguments", [["decodd", "abc"], [""], ["../decode"], ["_shared"]])
def test_an_unknown_command_lists_the_known(mistake, arguments):
    line = mistake(*arguments)
    assert all(name in line for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["--nope"], "COMMAND"),
        (["decode"], "TEXT"),
        (["decode", "abc", "--nope"], "--nope"),
        (["decode", "abc", "--js"], "--js"),
        (["decode", "abc", "def"], "def"),
        (["decode", "-abc"], "TEXT"),
        (["decode", "abc", "--candidates", "many"], "'many'"),
        (["trace", "abc"], "-o"),
        (["evaluate", "--seed", "-1"], "'-1'"),
        (["evaluate", "--seed", "9" * 30], "whole number from 0"),
        (["app", "--port", "0"], "'0'"),
        (["app", "--port", "65536"], "from 1 to 65535"),
        (["checkpoints", "x\x1b[31m\ny"], "\\u001b"),
    ],
    ids=str,
)
def test_impossible_arguments_are_one_line(mistake, arguments, named):
    """Abbreviated options are refused as well: they would break when a longer name joins."""
    assert named in mistake(*arguments)


def test_our_own_fault_is_said_to_be_ours(planted, cli, monkeypatch):
    planted("raise ValueError('a\\nb\\x1b[2J')")
    done = cli("zz-planted")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("\n") == 1
    assert "a fault of this program: ValueError: a b\\u001b[2J" in done.err
    assert "TRANSFORMER_VIZ_DEBUG=1" in done.err
    monkeypatch.setenv("TRANSFORMER_VIZ_DEBUG", "1")
    done = cli("zz-planted")
    assert done.code == 3
    assert "Traceback" in done.err


def test_a_users_mistake_never_shows_a_traceback(planted, mistake, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_VIZ_DEBUG", "1")
    planted(f"from {InputError.__module__} import InputError\nraise InputError('bad\\n\\ntext')")
    assert mistake("zz-planted") == "transformer_viz: bad text"


def test_a_missing_package_is_not_our_fault(planted, mistake):
    planted("import package_that_is_not_there")
    line = mistake("zz-planted")
    assert "package_that_is_not_there is not installed" in line
    assert "requirements.txt" in line


@pytest.mark.skipif(os.name == "nt", reason="other words there")
def test_what_the_machine_refuses_is_not_our_fault(planted, mistake):
    planted("open('/' + 'a' * 300)")
    assert "aaa: File name too long" in mistake("zz-planted")


def test_an_interrupt_is_quiet(planted, cli):
    planted("raise KeyboardInterrupt")
    done = cli("zz-planted")
    assert (done.code, done.out, done.err) == (130, "", "")


# In a process of its own


WITHOUT_TORCH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
for name in ("torch", "numpy", "pandas", "streamlit", "plotly", "tqdm"):
    sys.modules[name] = None
from transformer_viz.commands import main
answers = []
for number, line in enumerate(json.loads(sys.argv[1])):
    if number == 3:
        # What follows looks at tasks, which draw with numpy.
        for name in ("numpy", "pandas", "streamlit", "plotly", "tqdm"):
            del sys.modules[name]
        from transformer_viz import app_folders
        app_folders.ROOT = Path("root")
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(line.split())
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
REFUSED = {
    "decode abc --checkpoint nope": "no checkpoint 'nope'. Known are tiny",
    "decode abc --checkpoint ./nope": "no checkpoint folder './nope'",
    "decode abc --checkpoint ./empty": "config.json is missing",
    "decode abc --model nope": "no model 'nope'. Known are tiny",
    "decode abc --model ./empty": "empty",
    "decode abc --device gpu": "'gpu'",
    "decode xyz --checkpoint tiny": "“x”",
    "decode abc --checkpoint tiny --prefix xyz": "“x”",
    "decode abc --checkpoint tiny --ban q": "ban: token 'q' is not in the vocabulary",
    "decode abc --strategy best": "'best'",
    "decode abc --stop when": "'when'",
    "decode abc --temperature 0": "--temperature works only with --strategy sample, and this is greedy",
    "decode abc --strategy sample --beam-size 3": "--beam-size works only with --strategy beam, and this is sample",
    "decode abc --strategy sample --top-p 2": "above 0 and at most 1",
    "decode abc --chat": "--chat works only with --model",
    "trace abc --edits nonsense -o a.npz": "'nonsense'",
    "counter-proof abc --mistake luck": "'luck'",
    "attribute abc -o a.npz --method luck": "'luck'",
    "attribute abc -o a.npz --method occlusion --mode luck": "'luck'",
    "knock-out --how luck": "'luck'",
    "verdict --checkpoint tiny --text xyz": "“x”",
    "patch abc abd --by luck": "'luck'",
    "patch abc xyz --checkpoint tiny": "“x”",
    "effect": "nothing is changed",
    "effect --mistake no-causal --checkpoint nope": "no checkpoint 'nope'",
    "check-masks --checkpoint nope": "no checkpoint 'nope'",
    "evaluate --checkpoint tiny --samples 3": "--samples 3 is not possible; it is a whole number from 12 (one for each",
    "align-heads --gold de-fr": "'de-fr'",
    "align-heads --checkpoint nope": "no checkpoint 'nope'",
    "survey --texts nowhere": "no file nowhere",
    "survey --checkpoint tiny --held-out 3": "--held-out 3 is not possible; it is a whole number from 12 (one for each",
    "survey --checkpoint tiny --held-out 300 --by luck": "'luck'",
    "survey --checkpoint tiny --held-out 300 --gpus-per-worker 1": "--gpus-per-worker is for workers of Ray",
    "train reverse --heads 7": "n_heads=7",
    "train reverse --samples 3": "--samples 3",
    "train reverse -o empty": "exists already",
    "train reverse --source-embedding nowhere": "no file nowhere",
    "render nowhere.npz -o a.html": "no file nowhere.npz",
    "app --model ./empty": "no model in",
}
"""What is wrong with a line, found where torch cannot be imported."""


def test_help_and_mistakes_answer_without_torch(home, tmp_path):
    """Guards a program that takes seconds to say that a name is misspelt."""
    (tmp_path / "empty").mkdir()
    lines = ["--help", "train --help", "--version", *REFUSED]
    done = python("-c", WITHOUT_TORCH, json.dumps(lines), folder=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [code for code, _, _ in answers] == [0, 0, 0, *[2] * len(REFUSED)]
    for (line, words), (_, out, err) in zip(REFUSED.items(), answers[3:], strict=True):
        assert (out, err.count("\n")) == ("", 1), line
        assert words in err, line


def test_decoding_in_a_process_gives_pure_json(home):
    done = program("decode", "-", "--checkpoint", str(home / "tiny"), "--device", "cpu", "--json", stdin=b"abc\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"{")
    assert done.stdout.endswith(b"}\n")
    assert done.stdout.count(b"\n") == 1


@pytest.fixture
def diff(tmp_path) -> list[str]:
    """Arguments of a command that prints several lines without torch, which would take two seconds to begin."""
    for word in ("abc", "abd"):
        save_trace(
            Trace.from_arrays(cross=np.ones((1, 1, 1, 1)), source_tokens=[word], target_tokens=["x"]), tmp_path / f"{word}.npz"
        )
    return ["diff", *(str(tmp_path / f"{word}.npz") for word in ("abc", "abd"))]


def test_what_the_terminal_cannot_show_is_escaped(diff):
    """An arrow on an ASCII terminal; guards a UnicodeEncodeError that calls itself a fault of the program."""
    done = program(*diff, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (1, b"")
    assert rb"'abc' \u2192 'abd'" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="pipes of another kind")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_error(diff, unbuffered):
    """`python -m transformer_viz … | head -1`: whether the pipe breaks while printing or when the rest is written out."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "transformer_viz", "diff", diff[1], diff[1]],
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_told_in_one_line(diff):
    command = [sys.executable, "-m", "transformer_viz", *diff]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, cwd=ROOT, text=True)
    said = "transformer_viz: writing: No space left on device. Make room there, or write elsewhere.\n"
    assert (done.returncode, done.stderr) == (2, said)


ENDED = """
import os, signal, sys
from transformer_viz.__main__ import run
number = getattr(signal, sys.argv[1])
class Keyboard:
    @property
    def buffer(self):
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            os.write(1, b"cleaned up")
sys.stdin = Keyboard()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started to ignore it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what nohup starts ignores this
sys.argv[1:] = ["decode", "-"]
run()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_a_command_quietly_and_lets_it_clean_up(name, code):
    """A real signal, while the program waits for what is typed."""
    done = python("-c", ENDED, name)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"cleaned up", b"")


def test_too_little_memory_is_not_our_fault(planted, mistake):
    """torch's own error, which is an ordinary RuntimeError, and Python's."""
    planted("import torch\ntorch.empty(2**50)")
    assert "ran out of memory ([enforce fail" in mistake("zz-planted")
    del sys.modules["transformer_viz.commands.zz_planted"]
    planted("raise MemoryError('much')")
    assert "ran out of memory (much)" in mistake("zz-planted")


def test_nobody_to_hear_a_mistake_is_no_second_one(planted, cli, monkeypatch):
    """A log on the full disk, a pipe that is closed, no standard error at all: the exit code says it still."""
    planted(f"from {InputError.__module__} import InputError\nraise InputError('bad text')")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb", buffering=0) as pipe:
        for deaf in (io.TextIOWrapper(pipe, write_through=True), None):
            monkeypatch.setattr(sys, "stderr", deaf)
            assert cli("zz-planted").code == 2
