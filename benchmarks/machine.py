"""What a run was measured on: processor, system, versions, and how busy the machine was."""

import os
import platform
import re
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import torch

from benchmarks import served

PACKAGES = ("torch", "numpy", "streamlit", "plotly", "transformers", "bertviz")


def machine() -> dict[str, str | int | float | None]:
    """Names and versions as plain data; None where something is not there."""
    info = Path("/proc/cpuinfo")
    versions = {package.name: package.version for package in distributions()}
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return {
        "processor": found[1] if found else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "torch threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "load average at the start": round(os.getloadavg()[0], 2),
        "Python": platform.python_version(),
        **{package: versions.get(package) for package in PACKAGES},
        "commit": _commit(),
    }


def _commit() -> str | None:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=served.ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
