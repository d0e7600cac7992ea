"""A tiny random checkpoint on disk, and the command line run inside this process."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints.tiny import tiny_model
from transformer_viz import app_folders, checkpoints
from transformer_viz.commands import main
from transformer_viz.tasks.reverse import Reverse

TASK = Reverse("-abc d\\", 7, (2, 4))


def save_tiny(folder: Path, task: Reverse = TASK, **changes: Any) -> None:
    metrics = {"exact_match": 0.25, "best_head_mass": 0.125}
    arguments: dict[str, Any] = {"variant": "pre-norm", "recipe": {}, "metrics": metrics, **changes}
    checkpoints.save_checkpoint(folder, tiny_model(5, task), task, **arguments)


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output."""
        data = json.loads(self.out)
        assert isinstance(data, dict)
        assert self.out.count("\n") == 1
        return data


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """Names are looked up here and nowhere else, so that no test depends on what is shipped."""
    monkeypatch.setattr(app_folders, "ROOT", tmp_path / "root")
    monkeypatch.setenv("TRANSFORMER_VIZ_CHECKPOINTS", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    save_tiny(tmp_path / "home" / "tiny")
    return tmp_path / "home"


@pytest.fixture
def cli(capsys, monkeypatch) -> Callable[..., Done]:
    """`cli("decode", "abc", stdin=b"…")` runs the command line here."""

    def run(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture
def mistake(cli) -> Callable[..., str]:
    """Runs what must be refused as the user's mistake; gives the one line that says why."""

    def run(*arguments: str, stdin: bytes = b"") -> str:
        done = cli(*arguments, stdin=stdin)
        assert done.code == 2, done
        assert done.out == ""
        assert done.err.startswith("transformer_viz: ")
        assert done.err.endswith("\n")
        line = done.err.removesuffix("\n")
        assert line.isprintable(), "more than one line, or something that acts on the terminal"
        return line

    return run
