"""`make` on a fresh machine: what it installs from where, and whether `requirements.lock` is what is installed.

A script stands for Python: it makes a virtual environment that is a copy of itself, writes down what pip was asked for, and
answers `pip freeze` with a file.
"""

import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PYTORCH = "https://download.pytorch.org/whl/cpu"
PYTHON = """#!/bin/sh
case "$*" in
  *sys.version_info*) exit $UNFIT ;;
  *"-m venv "*) for folder; do :; done; mkdir -p "$folder/bin" && cp "$0" "$folder/bin/python" ;;
  *"pip freeze"*) cat freeze.txt ;;
  *"-m pip"*) echo "$*" >> asked.txt; case "$*" in *$UNREACHABLE*) exit 1 ;; esac ;;
esac
"""
OF_CUDA = "".join(f"{name}==1.2.3\n" for name in ("cuda-toolkit", "nvidia-cublas", "nvidia-nccl-cu13", "triton"))

pytestmark = pytest.mark.skipif(shutil.which("make") is None or os.name == "nt", reason="needs make and a POSIX shell")


@dataclass(frozen=True)
class Checkout:
    """What `make` reads, in a folder of its own."""

    folder: Path

    def make(
        self, *arguments: str, unreachable: str = "nowhere", unfit: str = "0", freeze: str = LOCK
    ) -> subprocess.CompletedProcess[str]:
        (self.folder / "freeze.txt").write_text("".join(sorted(freeze.splitlines(keepends=True))), encoding="utf-8")
        return subprocess.run(
            ["make", "--no-print-directory", f"PYTHON={self.folder / 'python'}", *arguments],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "UNREACHABLE": unreachable, "UNFIT": unfit, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def asked(self) -> list[str]:
        """What pip was asked for, a call a line."""
        return (self.folder / "asked.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for name in ("Makefile", "pyproject.toml", "requirements.txt", "requirements-dev.txt", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "requirements.lock").write_text("".join(sorted(LOCK.splitlines(keepends=True))), encoding="utf-8")
    (tmp_path / "python").write_text(PYTHON, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    return Checkout(tmp_path)


@pytest.mark.parametrize("build", ["", "+cpu", "+cu130"])
def test_what_torchs_build_brings_is_no_difference_from_the_lock(checkout: Checkout, build: str) -> None:
    installed = LOCK.replace("torch==2.13.0\n", f"torch==2.13.0{build}\n") + ("" if build == "+cpu" else OF_CUDA)
    done = checkout.make("locked", freeze=installed)
    assert (done.returncode, done.stderr) == (0, "")
    assert checkout.make("lock", freeze=installed).returncode == 0
    assert sorted((checkout.folder / "requirements.lock").read_text(encoding="utf-8").splitlines()) == sorted(LOCK.splitlines())


@pytest.mark.parametrize("changed", ["", "plotly==7.1.1\n", "plotly==7.1.0\ntritonclient==2.6\n"])
def test_another_package_or_version_is(checkout: Checkout, changed: str) -> None:
    done = checkout.make("locked", freeze=LOCK.replace("plotly==7.1.0\n", changed))
    assert done.returncode == 2 and "renew it with: make clean lock" in done.stderr


def test_torch_without_cuda_comes_from_pytorch_before_all_else(checkout: Checkout) -> None:
    done = checkout.make(".venv/.dev-installed", "TORCH=cpu")
    assert done.returncode == 0, done.stderr
    torch, of_app, of_tests = checkout.asked
    assert torch.endswith(f"--no-deps --index-url {PYTORCH} torch==2.13.0")
    assert "requirements.txt" in of_app and "requirements-dev.txt" in of_tests
    assert PYTORCH not in of_app + of_tests


def test_where_pytorch_cannot_be_reached_it_says_how_to_go_on(checkout: Checkout) -> None:
    done = checkout.make(".venv/.app-installed", "TORCH=cpu", unreachable=PYTORCH)
    assert done.returncode == 2
    assert f"torch 2.13.0 could not be installed from {PYTORCH}" in done.stderr
    assert "5.3 GB" in done.stderr and "PIP_FIND_LINKS=FOLDER make app TORCH=cpu" in done.stderr
    assert len(checkout.asked) == 1, "nothing else is installed, which would bring CUDA"
    assert not (checkout.folder / ".venv" / ".app-installed").exists()


def test_a_python_that_torch_is_not_built_for_is_named(checkout: Checkout) -> None:
    done = checkout.make(".venv/.app-installed", unfit="1")
    assert done.returncode == 2
    assert "is not Python 3.11 to 3.14; name one that is: make app PYTHON=python3.12" in done.stderr


def test_the_lowest_versions_are_those_of_pyproject(checkout: Checkout) -> None:
    done = checkout.make("build/lowest.txt")
    assert done.returncode == 0, done.stderr
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    asked = map(Requirement, [*project["dependencies"], *chain(*project["optional-dependencies"].values())])
    lowest = {each.name: bound.version for each in asked for bound in each.specifier if bound.operator == ">="}
    torch = lowest.pop("torch")
    written = (checkout.folder / "build/lowest.txt").read_text(encoding="utf-8").splitlines()
    assert dict(line.split("==") for line in written) == lowest
    # torch comes last, since requirements.txt names another.
    assert checkout.make("lowest").returncode == 0
    assert [line for line in checkout.asked if f"torch=={torch}.*" in line]
