"""Marian's binary format, as marian-nmt writes it in `src/common/binary.cpp`: names, types, shapes and numbers of tensors.

All little-endian: u64 version, u64 n; n headers of four u64 (length of the name, type, number of dimensions, bytes of data);
the names, each with a NUL; the shapes, i32; a u64 that says how many bytes to pass over; the data of one tensor after the
other.
"""

import math
import os
import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from transformer_viz.errors import FileError, short_repr

FLOAT32, INT8, BYTES = 0x404, 0x4101, 0x101
"""Types of items: single precision; 8-bit whole numbers (intgemm) with one multiplier; a text."""
_TYPES = {0x4102: "16-bit whole numbers", 0x402: "half precision", 0x408: "double precision"}
_VERSION = 1
_MOST_ITEMS, _LONGEST_NAME, _MOST_DIMENSIONS = 4096, 200, 4
_LARGEST_HEADER = _MOST_ITEMS * (4 * 8 + _LONGEST_NAME + 4 * _MOST_DIMENSIONS) + 1024
_LARGEST_TEXT = 2**16


@dataclass(frozen=True)
class Item:
    """One tensor of a file, before its numbers are read.

    Attributes:
        name: in the file.
        type: one of the constants above, or another.
        shape: of the tensor.
        start: of its data in the file, in bytes.
        n_bytes: of its data.
    """

    name: str
    type: int
    shape: tuple[int, ...]
    start: int
    n_bytes: int

    @property
    def n_numbers(self) -> int:
        """The number of the tensor's numbers."""
        return math.prod(self.shape)


def items(file: BinaryIO) -> dict[str, Item]:
    """Lists the tensors of a file by name, each within the file. Only its head is read.

    Raises:
        FileError: it is in another format, or a part of it is missing.
    """
    size = os.fstat(file.fileno()).st_size
    head, place = file.read(min(size, _LARGEST_HEADER)), 0

    def take(n: int) -> bytes:
        nonlocal place
        part = head[place : place + n]
        if len(part) < n:
            raise FileError("it ends within its list of tensors, so a part is missing; download it again")
        place += n
        return part

    def whole_numbers(sign: str, n: int) -> tuple[int, ...]:
        return struct.unpack(f"<{n}{sign}", take(struct.calcsize(f"<{n}{sign}")))

    version, n = whole_numbers("Q", 2)
    if version != _VERSION or not 0 < n <= _MOST_ITEMS:
        raise FileError(f"it is not in Marian's binary format, version {_VERSION}")
    headers = [whole_numbers("Q", 4) for _ in range(n)]
    if any(length > _LONGEST_NAME or n_dimensions > _MOST_DIMENSIONS for length, _, n_dimensions, _ in headers):
        raise FileError(f"a tensor has a name of more than {_LONGEST_NAME} bytes, or more than {_MOST_DIMENSIONS} dimensions")
    try:
        names = [take(length).rstrip(b"\0").decode("ascii") for length, *_ in headers]
    except UnicodeDecodeError:
        raise FileError("a tensor has a name that is not ASCII") from None
    shapes = [whole_numbers("i", n_dimensions) for _, _, n_dimensions, _ in headers]
    (padding,) = whole_numbers("Q", 1)
    start, tensors = place + padding, dict[str, Item]()
    for name, (_, kind, _, n_bytes), shape in zip(names, headers, shapes, strict=True):
        if start + n_bytes > size:
            needed = f"its tensors need {start + n_bytes:,}"
            raise FileError(f"it has {size:,} bytes, but {needed}, so a part is missing; download it again")
        if name in tensors:
            raise FileError(f"it has two tensors named {short_repr(name)}")
        if any(length < 1 for length in shape):
            raise FileError(f"{short_repr(name)} has a dimension of a length below 1")
        tensors[name] = Item(name, kind, shape, start, n_bytes)
        start += n_bytes
    return tensors


def numbers(file: BinaryIO, item: Item) -> np.ndarray:
    """Reads all numbers of an item in single precision, in the order in which they lie there: (number,).

    Raises:
        FileError: a type that is not read, too few bytes, or a number that is not finite.
    """
    n = item.n_numbers
    # The multiplier follows the whole numbers at once.
    needed = {FLOAT32: 4 * n, INT8: n + 4}.get(item.type)
    if needed is None:
        kind = _TYPES.get(item.type, f"the type {item.type:#x}")
        raise FileError(
            f"{short_repr(item.name)} holds {kind}; only single precision and 8-bit whole numbers (intgemm8) are read"
        )
    if needed > item.n_bytes:
        raise FileError(f"{short_repr(item.name)} has {item.n_bytes:,} bytes, but its shape needs {needed:,}")
    data = _data(file, item, needed)
    if item.type == INT8:
        multiplier = float(np.frombuffer(data, "<f4", 1, n)[0])
        if not (math.isfinite(multiplier) and multiplier > 0):
            raise FileError(f"{short_repr(item.name)} has the multiplier {multiplier}, which must be a number above 0")
        with np.errstate(over="ignore"):  # what is not finite is refused below
            numbers = np.frombuffer(data, np.int8, n).astype(np.float32) / np.float32(multiplier)
    else:
        numbers = np.frombuffer(data, "<f4", n).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise FileError(f"{short_repr(item.name)} has a number that is not finite")
    return numbers


def text(file: BinaryIO, item: Item) -> str:
    """The text of an item, without the NUL that ends it.

    Raises:
        FileError: it is none.
    """
    if item.type != BYTES or item.n_bytes > _LARGEST_TEXT:
        raise FileError(f"{short_repr(item.name)} should be a text of at most {_LARGEST_TEXT:,} bytes")
    try:
        return _data(file, item, item.n_bytes).rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(f"{short_repr(item.name)} is not UTF-8 text") from None


def _data(file: BinaryIO, item: Item, n: int) -> bytes:
    file.seek(item.start)
    data = file.read(n)
    if len(data) < n:
        raise FileError("it became shorter while it was read; try again when nothing writes to it")
    return data
