"""The workflows of GitHub call what a developer has: targets of the Makefile, and the Pythons that the package names."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_make_of_a_workflow_is_a_target(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    lines = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    called = [name for line in lines for name in re.findall(r"^make ([a-z-]+)", line, flags=re.MULTILINE)]
    assert called or "bash .ci/run" in lines
    assert set(called) <= targets
    assert all("timeout-minutes" in job for job in jobs)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_one_commit_with_its_version_beside_it(path: Path) -> None:
    """A tag and a branch can be moved to other code, which would run with the workflow's rights."""
    used = re.findall(r"uses: *(.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used)


def test_ci_tries_the_pythons_that_the_package_and_make_name() -> None:
    matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["tests"]["strategy"][
        "matrix"
    ]
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), flags=re.MULTILINE)
    assert matrix["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    fits = re.search(r"\((3), (\d+)\) <= sys.version_info < \(3, (\d+)\)", MAKEFILE)
    assert fits and [f"3.{minor}" for minor in range(int(fits[2]), int(fits[3]))] == named


def test_the_citation_says_the_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    version = (ROOT / "transformer_viz/version.py").read_text(encoding="utf-8")
    assert f'"{cited["version"]}"' in version
    assert (cited["title"], cited["license"]) == ("Transformer Viz", PROJECT["license"])
    assert cited["authors"] == PROJECT["authors"]
