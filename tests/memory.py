"""What a process takes of memory, as Linux tells it; a program that measures itself imports nothing heavier."""

import contextlib
from pathlib import Path

STATUS = Path("/proc/self/status")


def bytes_now(name: str = "VmRSS") -> int:
    """`VmRSS`, what the process takes now, or `VmHWM`, the most that it took; 0 where the system does not say."""
    return 1024 * int(STATUS.read_text().split(f"{name}:")[1].split()[0]) if STATUS.exists() else 0


def peak() -> int:
    """The most so far. The usual `ru_maxrss` would begin with that of the process which started this one."""
    return bytes_now("VmHWM")


def forget_peak() -> int:
    """From here on the peak counts anew, where the system can do that; returns the bytes that the process has now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()
