"""Writes requirements.hashes: of each package of the image the version that is installed here, and the SHA-256 of its files.

`make hashes` runs it after `make lock`. pip itself asks the package index, for both processors and the Python of the image.
torch is left out: the image takes it from PyTorch's own index.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROCESSORS = ("x86_64", "aarch64")
PYTHON = "3.11"
"""That of the image's Debian."""
_GLIBC = (36, 34, 31, 28, 27, 26, 24, 17)
"""The second numbers of the glibcs that wheels are built for, up to that of Debian 12, which is 2.36."""


def packages() -> dict[str, str]:
    """The versions of what requirements.txt names and of all that it needs, without torch, by canonical name."""
    lines = (line.strip() for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines())
    wanted, found = [Requirement(line) for line in lines if line and not line.startswith("#")], dict[str, str]()
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        installed = distribution(name)
        found[name] = installed.version
        wanted += map(Requirement, installed.requires or ())
    del found["torch"]
    return dict(sorted(found.items()))


def hashes(pins: list[str]) -> dict[str, set[str]]:
    """The SHA-256 of the wheels that pip would install of each of these, by the canonical name."""
    found = defaultdict[str, set[str]](set)
    for processor in PROCESSORS:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            platforms = [part for minor in _GLIBC for part in ("--platform", f"manylinux_2_{minor}_{processor}")]
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
            command += ["--ignore-installed", "--no-deps", "--only-binary", ":all:", "--target", folder]
            command += [
                "--implementation",
                "cp",
                "--python-version",
                PYTHON,
                *platforms,
                "--platform",
                f"manylinux2014_{processor}",
            ]
            subprocess.run([*command, "--report", str(report), *pins], check=True)
            for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
                found[canonicalize_name(item["metadata"]["name"])].add(
                    item["download_info"]["archive_info"]["hashes"]["sha256"]
                )
    return found


if __name__ == "__main__":
    versions = packages()
    sums = hashes([f"{name}=={version}" for name, version in versions.items()])
    for name, version in versions.items():
        print(f"{name}=={version}", *(f"--hash=sha256:{each}" for each in sorted(sums[name])), sep=" \\\n    ")
