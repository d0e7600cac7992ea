"""`requirements.lock`: the exact versions that CI ran, for every package that the lists of requirements name."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from deploy import hashes

ROOT = Path(__file__).resolve().parents[1]
LISTS = ("requirements.txt", "requirements-dev.txt")


def requirements(name: str) -> list[Requirement]:
    lines = (line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-r "))]


def test_each_line_is_one_version_that_any_index_may_have() -> None:
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), f"{line!r}: no address, no build of one machine"


@pytest.mark.parametrize("name", LISTS)
def test_each_requirement_is_locked_within_its_range(name: str) -> None:
    locked = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in requirements("requirements.lock")}
    for wanted in requirements(name):
        version = locked.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is missing; renew requirements.lock with: make clean lock"
        assert Version(version) in wanted.specifier, f"{wanted}: {version} is locked; renew with: make clean lock"


def test_the_image_is_installed_from_files_that_are_known_by_their_sums() -> None:
    """All that requirements.txt needs, in the versions of the lock, but for torch, which comes from an index of its own."""
    listed = dict[str, str]()
    for entry in re.sub(r" *\\\n *", " ", (ROOT / "requirements.hashes").read_text(encoding="utf-8")).splitlines():
        pin, *sums = entry.split()
        assert sums and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in sums), pin
        name, version = pin.split("==")
        listed[name] = version
    locked = {str(canonicalize_name(pin.name)): str(pin.specifier)[2:] for pin in requirements("requirements.lock")}
    # pip's list of what is installed leaves setuptools out.
    locked |= {"setuptools": listed["setuptools"]}
    assert listed == {name: locked[name] for name in hashes.packages()}, "renew requirements.hashes with: make hashes"


def test_the_package_asks_for_the_ranges_of_the_app() -> None:
    """torch aside: there an open range is what a GPU's own build needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = (project["dependencies"], *project["optional-dependencies"].values())
    asked = {wanted.name: wanted for group in groups for wanted in map(Requirement, group)}
    for wanted in requirements("requirements.txt"):
        if wanted.name != "torch":
            assert asked[wanted.name] == wanted
    (exact,) = (wanted for wanted in requirements("requirements.txt") if wanted.name == "torch")
    assert Version(str(exact.specifier).removeprefix("==")) in asked["torch"].specifier
