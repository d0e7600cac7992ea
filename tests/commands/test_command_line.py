"""What all commands share: finding them, exit codes, one-line errors, and starting without torch."""

import io
import json
import os
import re
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.inside import add_commands
from transformer_viz import Trace, __version__, commands, save_trace
from transformer_viz.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
RAISE = f"from {InputError.__module__} import InputError\nraise InputError"


def python(
    *arguments: str, stdin: bytes = b"", stdout: Any = subprocess.PIPE, folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, input=stdin, stdout=stdout, stderr=subprocess.PIPE, cwd=folder, env=environment, timeout=60, check=False
    )


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """`planted(code)`: a command `zz-planted` whose `run` is this code; one new file and nothing else."""

    def plant(body: str) -> None:
        sys.modules.pop("transformer_viz.commands.zz_planted", None)
        (tmp_path / "zz_planted.py").write_text(f"def run():\n{textwrap.indent(body, '    ')}\n", encoding="utf-8")

    add_commands(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield plant
    sys.modules.pop("transformer_viz.commands.zz_planted", None)


def test_a_command_is_one_new_file(planted, cli):
    planted("print('here')\nreturn 1")
    assert "zz-planted" in commands.names()
    done = cli("zz-planted")
    assert (done.code, done.out, done.err) == (1, "here\n", "")
    assert "zz-planted" in cli("--help").out


def test_every_command_explains_itself(cli):
    everything = cli("--help").out
    for name in commands.names():
        done = cli(name, "--help")
        assert (done.code, done.err) == (0, "")
        assert f"transformer_viz {name}" in done.out and name in everything
    assert cli("--version").out == f"transformer_viz {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["decodd", "abc"], "counter-proof"),
        (["../decode"], "counter-proof"),
        (["_shared"], "counter-proof"),
        ([], "COMMAND"),
        (["--nope"], "COMMAND"),
        (["decode"], "TEXT"),
        (["decode", "abc", "--js"], "--js"),
        (["decode", "abc", "def"], "def"),
        (["decode", "-abc"], "TEXT"),
        (["trace", "abc"], "-o"),
        (["evaluate", "--seed", "9" * 30], "whole number from 0"),
        (["app", "--port", "65536"], "from 1 to 65535"),
        (["checkpoints", "x\x1b[31m\ny"], "\\u001b"),
    ],
    ids=str,
)
def test_impossible_arguments_are_one_line(mistake, arguments, named):
    """Abbreviated options are refused as well: they would break when a longer name joins."""
    assert named in mistake(*arguments)


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (
            "raise ValueError('a\\nb\\x1b[2J')",
            3,
            r"a fault of this program: ValueError: a b\\u001b\[2J.*TRANSFORMER_VIZ_DEBUG=1",
        ),
        (f"{RAISE}('bad\\n\\ntext')", 2, "bad text$"),
        ("import package_that_is_not_there", 2, "package_that_is_not_there is not installed.*requirements.txt"),
        ("open('/' + 'a' * 300)", 2, "aaa: File name too long"),
        ("import torch\ntorch.empty(2**50)", 2, r"ran out of memory \(\[enforce fail"),  # an ordinary RuntimeError
        ("raise MemoryError('much')", 2, r"ran out of memory \(much\)"),
    ],
)
def test_whose_fault_it_is_is_said_in_one_line(planted, cli, body, code, said):
    planted(body)
    done = cli("zz-planted")
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert re.match(f"transformer_viz: .*{said}", done.err)


def test_only_our_own_fault_has_a_traceback(planted, cli, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_VIZ_DEBUG", "1")
    for body, is_ours in (("1 / 0", True), (f"{RAISE}('bad')", False)):
        planted(body)
        assert ("Traceback" in cli("zz-planted").err) == is_ours


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
    "decode abc --stop when": "'when'",
    "decode abc --temperature 0": "--temperature works only with --strategy sample, and this is greedy",
    "decode abc --strategy sample --top-p 2": "above 0 and at most 1",
    "decode abc --chat": "--chat works only with --model",
    "trace abc --edits nonsense -o a.npz": "'nonsense'",
    "counter-proof abc --mistake luck": "'luck'",
    "attribute abc -o a.npz --method occlusion --mode luck": "'luck'",
    "knock-out --how luck": "'luck'",
    "verdict --checkpoint tiny --text xyz": "“x”",
    "patch abc abd --by luck": "'luck'",
    "patch abc xyz --checkpoint tiny": "“x”",
    "effect": "nothing is changed",
    "effect --mistake no-causal --checkpoint nope": "no checkpoint 'nope'",
    "check-masks --checkpoint nope": "no checkpoint 'nope'",
    "evaluate --checkpoint tiny --samples 3": "--samples=3 is not possible; it is a whole number from 12 to ",
    "align-heads --gold de-fr": "'de-fr'",
    "align-heads --checkpoint nope": "no checkpoint 'nope'",
    "survey --texts nowhere": "no file nowhere",
    "survey --checkpoint tiny --held-out 300 --by luck": "'luck'",
    "survey --checkpoint tiny --held-out 300 --gpus-per-worker 1": "--gpus-per-worker is for workers of Ray",
    "train reverse --heads 7": "n_heads=7",
    "train reverse --samples 3": "--samples=3",
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


@pytest.mark.slow
def test_decoding_in_a_process_gives_pure_json(home):
    given = ("decode", "-", "--checkpoint", str(home / "tiny"), "--device", "cpu", "--json")
    done = python("-m", "transformer_viz", *given, stdin=b"abc\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.fullmatch(rb"\{.*\}\n", done.stdout)


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
    done = python("-m", "transformer_viz", *diff, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (1, b"")
    assert rb"'abc' \u2192 'abd'" in done.stdout


def closed_pipe() -> int:
    """`python -m transformer_viz … | head -1`."""
    read, write = os.pipe()
    os.close(read)
    return write


FULL = partial(os.open, "/dev/full", os.O_WRONLY)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full, and pipes that break")
@pytest.mark.parametrize(
    ("opened", "unbuffered", "code", "said"),
    [
        (closed_pipe, "", 0, ""),
        (closed_pipe, "1", 0, ""),
        (
            FULL,
            "",
            2,
            "writing: No space left on device. Make room there, or write elsewhere.",
        ),
    ],
    ids=["the pipe breaks at the end", "the pipe breaks while printing", "a full disk"],
)
def test_output_that_cannot_be_written_is_no_fault(diff, opened, unbuffered, code, said):
    with os.fdopen(opened(), "wb") as file:
        done = python("-m", "transformer_viz", *diff, stdout=file, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr.decode().removeprefix("transformer_viz: ").strip()) == (code, said)


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
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGHUP", 129)])
def test_a_signal_ends_a_command_quietly_and_lets_it_clean_up(name, code):
    """A real signal, while the program waits for what is typed."""
    done = python("-c", ENDED, name)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"cleaned up", b"")


def test_nobody_to_hear_a_mistake_is_no_second_one(planted, cli, monkeypatch):
    """A pipe that is closed, or no standard error at all: the exit code says it still."""
    planted(f"{RAISE}('bad text')")
    with os.fdopen(closed_pipe(), "wb", buffering=0) as pipe:
        for deaf in (io.TextIOWrapper(pipe, write_through=True), None):
            monkeypatch.setattr(sys, "stderr", deaf)
            assert cli("zz-planted").code == 2


PROGRAM = """
import json, os, runpy, signal, sys
said, *sys.argv[1:] = sys.argv[1:]
mine, names, wrong = os.getpid(), [], []

class Moments:
    def find_spec(self, name, path=None, target=None):
        if name in ("transformer_viz", "transformer_viz.__main__"):
            return None  # nothing of ours runs yet
        names.append(name)
        if os.getpid() != mine or (not name.startswith("transformer_viz") and len(names) % 40):
            return None
        child = os.fork()
        if child == 0:
            to = os.open(said, os.O_WRONLY | os.O_APPEND)
            os.dup2(to, 1), os.dup2(to, 2)
            os.kill(os.getpid(), signal.SIGINT)
            os._exit(99)  # it was not heard
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != 130:
            wrong.append((name, code))
        return None

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started to ignore it
sys.path.insert(0, os.getcwd())
sys.meta_path.insert(0, Moments())
try:
    runpy.run_module("transformer_viz", run_name="__main__", alter_sys=True)
finally:
    if os.getpid() == mine:
        print(json.dumps([names, wrong]), file=sys.stderr, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are copied there")
def test_a_start_is_interrupted_at_every_import(tmp_path):
    """Quiet, with exit code 130, at each import of ours and every 40th of all; torch and numpy swallow an exception at many.

    The program starts once. At these imports it is copied (fork), and the copy is interrupted, so that each moment is the same
    in every run; the original goes on to the next.
    """
    said = tmp_path / "said"
    said.touch()
    done = python("-c", PROGRAM, str(said), "decode", "ab")
    assert done.returncode == 0, done.stderr
    names, wrong = json.loads(done.stderr.splitlines()[-1])
    assert wrong == [] and said.read_text() == ""
    assert {"torch", "numpy", "argparse", "transformer_viz.commands.train", "transformer_viz.decoding.stepwise"} <= {*names}
