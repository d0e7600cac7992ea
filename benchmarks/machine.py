"""What a run was measured on: processor, memory, system, versions, and how busy the machine was before it began."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks import served
from transformer_viz.model import devices

PACKAGES = ("torch", "numpy", "streamlit", "plotly", "transformers", "bertviz")


def machine() -> dict[str, str | int | float | None]:
    """Names and versions as plain data; None where something is not there."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "torch threads": torch.get_num_threads(),
        "memory in GB": _memory(),
        "device": devices.title(torch.device("cuda")) if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "load average at the start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "Python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "Chromium": _said(served.chromium(), "--version"),
        "commit": _commit(),
    }


def is_busy() -> bool:
    """Whether other programs were at work: then absolute times are not those of this machine."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _memory() -> float | None:
    info = Path("/proc/meminfo")
    found = re.search(r"^MemTotal:\s+(\d+) kB", info.read_text(), re.MULTILINE) if info.exists() else None
    return round(int(found[1]) / 2**20, 1) if found else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    commit = _said("git", "rev-parse", "--short", "HEAD")
    return commit and commit + (" with changes" if _said("git", "status", "--porcelain") else "")


def _said(program: str | None, *arguments: str) -> str | None:
    """What a program prints, or None where there is no such program."""
    if program is None:
        return None
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, cwd=served.ROOT)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip() or None
