"""The Node.js with which the tests of the scripts run: the one that Playwright for Python brings."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path


def node() -> Path | None:
    """Where it lies; None where Playwright is not installed, or brings none for this system."""
    try:
        found = files("playwright") or []
    except PackageNotFoundError:
        return None
    names = ("playwright/driver/node", "playwright/driver/node.exe")
    return next((Path(str(file.locate())) for file in found if file.as_posix() in names), None)


def check(*scripts: Path) -> int:
    """Asks Node whether these scripts can be read; says which cannot. Where there is no Node it says so."""
    program = node()
    if program is None:
        print("The scripts are not checked: Playwright, which brings Node.js, is not installed.")
        return 0
    return max(subprocess.run([program, "--check", script], check=False).returncode for script in scripts)


if __name__ == "__main__":
    package = Path(__file__).parents[1] / "transformer_viz"
    sys.exit(check(*sorted(package.rglob("*.js"))))
