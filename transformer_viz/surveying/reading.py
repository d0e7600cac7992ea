"""A corpus, line by line: a file, standard input, texts as they are, or those by which a task's models are judged.

No more than a line is held at a time. A line that cannot be read is counted and says why; the others are read all the same.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from transformer_viz import reading
from transformer_viz.errors import FileError, InputError, OptionError, quoted
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.surveying.block import BLOCK_SIZE, Block, Line

LONGEST_LINE, MOST_LINES = 100_000, 10_000_000
"""Bytes of a line, and lines of a corpus."""
_LARGEST_FILE = 2**40
_SHOWN, _CHUNK = 200, 2**20
_BOM = b"\xef\xbb\xbf"

STANDARD_INPUT = "-"
Lines = str | PathLike[str] | Sequence[str]
"""The path of a file with a text a line, `-` for standard input, or texts."""
Raw = tuple[str, str | None]
"""A line's text, or its beginning, and why it is not read."""


@dataclass(frozen=True)
class Corpus:
    """Lines that are read once.

    Attributes:
        source: what people call it, never a path.
        n_lines: how many there are, or at most; None where only the end tells.
        lines: in order.
    """

    source: str
    n_lines: int | None
    lines: Iterator[Line]

    def blocks(self) -> Iterator[Block]:
        """The lines, `BLOCK_SIZE` at a time."""
        number = 0
        while lines := tuple(islice(self.lines, BLOCK_SIZE)):
            yield Block(number, lines)
            number += 1


def corpus_of(texts: Lines, targets: Lines | None = None) -> Corpus:
    """A corpus that somebody gives.

    Args:
        texts: the path of a UTF-8 file with a text a line, `-` for standard input, or a list of texts.
        targets: likewise a known answer for each; one that is empty is not known.

    Raises:
        InputError: there is no such file, it is no regular one or empty, something is no text, there are too many lines, or
            not one target for each text. Of standard input that is found out at its end.
    """
    n_lines = _count(texts)
    if targets is not None and n_lines is not None and (n_targets := _count(targets)) != n_lines:
        raise InputError(f"There are {n_lines} texts and {n_targets} targets. Give one target for each text, line by line.")
    lines = _checked(_numbered(_raw(texts), None if targets is None else _raw(targets)))
    return Corpus(_source(texts), n_lines, lines)


def held_out_of(model: LoadedModel, n: int, seed: int) -> Corpus:
    """So many texts by which models of a task are judged: never seen in training where the task keeps some apart.

    Raises:
        OptionError: the model has no task, or there are fewer than one of each kind and length, or too many.
    """
    if (task := model.task) is None:
        raise OptionError(f"{model.name} has no task whose texts could be held out of training; give texts")
    task.check_samples(n, "held_out=")
    lines = (Line(number, text) for number, (_, text) in enumerate(task.judged(n, seed), 1))
    return Corpus(f"{task.judged_by}, seed {seed}", n, _checked(lines))


def _source(texts: Lines) -> str:
    if texts == STANDARD_INPUT:
        return "standard input"
    return Path(texts).name if isinstance(texts, str | PathLike) else "given texts"


def _checked(lines: Iterator[Line]) -> Generator[Line]:
    line = None
    for line in lines:
        if line.number > MOST_LINES:
            raise InputError(f"There are more than {MOST_LINES:,} lines; survey them in parts.")
        yield line
    if line is None:
        raise InputError("There is no text: no line is there to be read. Give a text a line.")


def _numbered(texts: Iterator[Raw], targets: Iterator[Raw] | None) -> Iterator[Line]:
    if targets is None:
        yield from (Line(number, text, fault=fault) for number, (text, fault) in enumerate(texts, 1))
        return
    for number, (text, target) in enumerate(zip_longest(texts, targets), 1):
        if text is None or target is None:
            raise InputError(f"There are {'more' if text is None else 'fewer'} targets than texts; line {number} has only one.")
        # An empty target says that the answer is not known.
        wrong_target = f"of its target: {target[1]}" if target[0] and target[1] else None
        yield Line(number, text[0], target[0] or None, text[1] or wrong_target)


def _raw(given: Lines) -> Iterator[Raw]:
    if isinstance(given, str | PathLike):
        return _of_file(given)
    # Half a character is no text, which is said as of any other line.
    return (_of_bytes(text.encode(errors="surrogatepass")) for text in given)


def _of_file(path: str | PathLike[str]) -> Generator[Raw]:
    with _opened(path) as file:
        bom = _BOM
        # Longer than the longest line with its mark and its break, so that one that is cut is seen to be too long.
        while line := file.readline(LONGEST_LINE + 5):
            text = _without_break(line).removeprefix(bom)
            yield _too_long(text, file, line) if len(text) > LONGEST_LINE else _of_bytes(text)
            bom = b""


def _too_long(text: bytes, file: BinaryIO, line: bytes) -> Raw:
    """Reads on to the line's end, and keeps nothing of it."""
    n_bytes = len(text)
    while not line.endswith(b"\n") and (line := file.readline(_CHUNK)):
        n_bytes += len(_without_break(line))
    return _beginning(text), f"it has {n_bytes:,} bytes; at most {LONGEST_LINE:,} are read"


def _without_break(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line


def _of_bytes(text: bytes) -> Raw:
    if not text:
        return "", "it is empty"
    if len(text) > LONGEST_LINE:
        return _beginning(text), f"it has {len(text):,} bytes; at most {LONGEST_LINE:,} are read"
    try:
        return text.decode(), None
    except UnicodeDecodeError:
        return _beginning(text), "it is not UTF-8 text"


def _beginning(text: bytes) -> str:
    return text[:_SHOWN].decode(errors="replace")


def _count(given: Lines) -> int | None:
    """How many lines there are, of which none is held; None of standard input."""
    if given == STANDARD_INPUT:
        return None
    if not isinstance(given, str | PathLike):
        if wrong := [each for each in given if not isinstance(each, str)]:
            raise InputError(f"{quoted(wrong[0])} is no text.")
        return len(given)
    n, last = 0, b""
    with _opened(given) as file:
        while chunk := file.read(_CHUNK):
            n, last = n + chunk.count(b"\n"), chunk[-1:]
    return n + (last not in (b"", b"\n"))


@contextmanager
def _opened(path: str | PathLike[str]) -> Generator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield _standard_input()
        return
    try:
        with reading.opened(path, _LARGEST_FILE) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)[-200:]!r}.") from None
    except FileError as error:
        raise InputError(f"{str(path)[-200:]!r} is not read: {error}.") from error


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InputError("Texts are - and standard input is closed. Name a file, or pipe them in.")
    return sys.stdin.buffer
