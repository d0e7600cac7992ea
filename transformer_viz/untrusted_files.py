"""Reads files that anyone may have written: regular files of limited size, and JSON without ambiguities.

A name may stand for a pipe, which would block for ever, or for an endless device. So a file is opened without waiting, the open
file must be a regular one, and its size is taken from the open file, since the name may stand for another file by then. Links
to regular files are followed, since people link checkpoints into a folder.
"""

import json
import math
import os
import stat
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from transformer_viz.errors import FileError
from transformer_viz.text_display import shorten

_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_DEEPEST = 64
"""Lists and objects within each other: as many as every part of Python and of the app can take."""


@contextmanager
def open_file(path: str | PathLike[str], most: int) -> Generator[BinaryIO]:
    """A regular file of at most `most` bytes, open for reading.

    Raises:
        FileNotFoundError: there is none of this name.
        FileError: something else has this name, it is larger, or it may not be read.
    """
    try:
        number = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise
    except ValueError:  # a NUL in the name
        raise FileError("no file can have this name") from None
    except OSError as error:
        raise FileError(_reason(error)) from error
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"it is {_KINDS.get(stat.S_IFMT(status.st_mode), 'something else')}, not a file")
        if status.st_size > most:
            raise FileError(f"it has {status.st_size:,} bytes; at most {most:,} are read")
    except BaseException:
        os.close(number)
        raise
    with os.fdopen(number, "rb") as file:
        yield file


def read_bytes(path: str | PathLike[str], most: int) -> bytes:
    """The content of a regular file, as far as it reached when it was opened; see `open_file`."""
    with open_file(path, most) as file:
        return _read(file, os.fstat(file.fileno()).st_size)


def read_text(path: str | PathLike[str], most: int) -> str:
    """The content of a UTF-8 file; see `open_file`."""
    return _decode(read_bytes(path, most))


def read_json(path: str | PathLike[str], most: int) -> Any:
    """Reads a JSON file; see `open_file` and `parse_json`."""
    return parse_json(read_bytes(path, most))


@contextmanager
def open_tensors(path: str | PathLike[str], most: int, most_header: int, framework: str = "pt") -> Generator[Any]:
    """A safetensors file, as `safe_open` gives it: names, shapes and numbers are read when they are asked for.

    Args:
        path: of the file.
        most: the most bytes that it may have.
        most_header: the most bytes of its names and shapes, which become objects as soon as it is opened.
        framework: whose arrays its numbers become, `pt` or `numpy`.

    Raises:
        FileNotFoundError: there is none of this name.
        FileError: see `open_file`; also where it is no safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    with open_file(path, most) as file:
        length = int.from_bytes(_read(file, 8), "little")
        if not length or length > most_header:
            raise FileError(f"it is no safetensors file, or names more than {most_header:,} bytes of tensors")
        # The library opens names only. This one stands for what was opened, whatever has been put under the other since.
        name = Path("/dev/fd") / str(file.fileno())
        try:
            with safe_open(name if name.exists() else path, framework=framework) as tensors:
                yield tensors
        except MemoryError:  # there is no room to map it, however little of it is read
            raise FileError("it needs more memory than there is") from None
        except (SafetensorError, OSError) as error:
            raise FileError(f"it is no whole safetensors file ({shorten(str(error), 200)})") from error


def parse_json(data: str | bytes) -> Any:
    """Parses JSON, and refuses what programs read differently or what fails later.

    Raises:
        FileError: it is no UTF-8 or no JSON, a name stands twice in an object, a number is not finite, text holds half of a
            character, or it is nested more than 64 deep.
    """
    text = data if isinstance(data, str) else _decode(data)
    try:
        value = json.loads(text, object_pairs_hook=_read_object, parse_float=_finite_number, parse_constant=_finite_number)
        _check_depth(value)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FileError("it holds half of a character (a lone surrogate), which is no text") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"it is not JSON ({type(error).__name__})") from error
    return value


def is_file(path: Path) -> bool:
    """Tells whether a regular file, or a link to one, has this name; False where that cannot be found out."""
    return os.path.isfile(path)  # noqa: PTH113 — that of pathlib raises where a folder may not be looked into


def is_folder(path: Path) -> bool:
    """Tells whether a folder, or a link to one, has this name; False where that cannot be found out."""
    return os.path.isdir(path)  # noqa: PTH112


def modification_time(path: Path) -> float:
    """When a file was last changed, in seconds since 1970; 0 where that cannot be found out, as of a link to nothing."""
    try:
        return path.stat().st_mtime
    except (OSError, ValueError):
        return 0.0


def file_size(path: Path) -> int:
    """Bytes of a file; 0 where that cannot be found out."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def list_folder(folder: Path) -> list[Path]:
    """Lists a folder, in alphabetical order; nothing where it cannot be looked into."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _read(file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except OSError as error:  # of a bad disk, or of a file of the system that cannot be read so
        raise FileError(_reason(error)) from error


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileError("it is not UTF-8 text") from None


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise FileError(f"{name[:40]!r} stands twice in one object")
    return values


def _finite_number(text: str) -> float:
    """`NaN`, `Infinity` and 1e999 are refused."""
    number = float(text)
    if not math.isfinite(number):
        raise FileError(f"{text[:40]} should be a finite number")
    return number


def _check_depth(value: Any) -> None:
    """Level by level: what is nested deeply can be neither copied nor printed by functions that call themselves."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = [part for part in level if isinstance(part, list | dict)]
        level = [child for part in inner for child in (part.values() if isinstance(part, dict) else part)]
        if not level:
            return
    raise FileError(f"it is nested more than {_DEEPEST} deep")


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
