"""The texts of a survey: lines of a file or of standard input, a list of texts, or held-out texts of a task.

A line that cannot be read is counted with the reason, and the others are read. A line that is too long is never kept in memory.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

from transformer_viz import untrusted_files
from transformer_viz.errors import FileError, InputError, OptionError, short_repr
from transformer_viz.loaded_model import LoadedModel

BLOCK_SIZE = 64
"""Lines of a block; the last one may have fewer. It is fixed, so that a block's result is the same wherever it is run."""
LONGEST_LINE, MOST_LINES = 100_000, 1_000_000
"""Bytes of a line, and lines of a corpus."""
_LARGEST_FILE = 2**40
_SHOWN, _CHUNK = 200, 2**20
_BOM = b"\xef\xbb\xbf"
STANDARD_INPUT = "-"
Lines = str | PathLike[str] | Sequence[str]
"""The path of a file with a text a line, `-` for standard input, or texts."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a corpus.

    Attributes:
        number: counted from 1, as an editor counts them; every line counts, an empty one too.
        text: without its line break; of a line that is not read the beginning, for people.
        target: the known answer, or None.
        fault: why the line is not read, as a sentence without its full stop; None where it is read.
    """

    number: int
    text: str
    target: str | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Block:
    """The lines that one worker gets at once, and the number of this block, from 0."""

    number: int
    lines: tuple[Line, ...]

    @property
    def content(self) -> bytes:
        """The bytes of all lines, as they decide what comes of them."""
        return json.dumps([(line.number, line.text, line.target, line.fault) for line in self.lines]).encode()


@dataclass(frozen=True)
class Corpus:
    """The lines of a corpus, and what people call their source, never a path.

    Raises:
        InputError: there is no line, or too many.
    """

    source: str
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        if not self.lines:
            raise InputError("There is no text. Give one text a line.")
        if len(self.lines) > MOST_LINES:
            raise InputError(f"There are more than {MOST_LINES:,} lines; survey them in parts.")

    @cached_property
    def blocks(self) -> list[Block]:
        """The lines, `BLOCK_SIZE` at a time."""
        return blocks_of(self.lines, BLOCK_SIZE)

    @cached_property
    def digest(self) -> str:
        """The digest of all lines, in hex."""
        hashed = hashlib.sha256()
        for block in self.blocks:
            hashed.update(block.content)
        return hashed.hexdigest()


def blocks_of(lines: Sequence[Line], size: int) -> list[Block]:
    """Lines that follow each other, so many at a time."""
    return [Block(i // size, tuple(lines[i : i + size])) for i in range(0, len(lines), size)]


def read_corpus(texts: Lines, targets: Lines | None = None) -> Corpus:
    """A corpus from a file, standard input or a list.

    Args:
        texts: the path of a UTF-8 file with a text a line, `-` for standard input, or a list of texts.
        targets: the known answers in the same form, one for each text; one that is empty is not known.

    Raises:
        InputError: there is no such file, it is no regular one or empty, something is no text, there are too many lines, or
            not one target for each text.
    """
    read, answers = _read(texts), None if targets is None else _read(targets)
    if answers is not None and len(answers) != len(read):
        raise InputError(
            f"There are {len(read)} texts and {len(answers)} targets. Give one target for each text, line by line."
        )
    lines = []
    for number, (text, fault) in enumerate(read, 1):
        target, wrong = ("", None) if answers is None else answers[number - 1]
        if target and wrong and fault is None:
            fault = f"of its target: {wrong}"
        lines.append(Line(number, text, target or None, fault))
    is_file = isinstance(texts, str | PathLike)
    source = "standard input" if texts == STANDARD_INPUT else Path(texts).name if is_file else "given texts"
    return Corpus(source, tuple(lines))


def held_out_corpus(model: LoadedModel, n: int, seed: int) -> Corpus:
    """A corpus of the texts by which a task's models are judged; where the task holds texts out, training never saw them.

    Raises:
        OptionError: the model has no task, or there are fewer than one of each kind and length, or too many.
    """
    if (task := model.task) is None:
        raise OptionError(f"{model.name} has no task whose texts could be held out of training; give texts")
    task.check_samples(n, "held_out")
    lines = tuple(Line(number, text) for number, (_, text) in enumerate(task.judged(n, seed), 1))
    return Corpus(f"{task.judged_by}, seed {seed}", lines)


def _read(given: Lines) -> list[tuple[str, str | None]]:
    """For each line its text, or the beginning of one that is not read, with the reason."""
    if not isinstance(given, str | PathLike):
        if wrong := [text for text in given if not isinstance(text, str)]:
            raise InputError(f"{short_repr(wrong[0])} is no text.")
        # Half a character is no text, which is said as of any other line.
        encoded = [text.encode(errors="surrogatepass") for text in given]
        return [_decoded(text, len(text)) for text in encoded]
    if given == STANDARD_INPUT and sys.stdin is None:
        raise InputError("Texts are - and standard input is closed. Name a file, or pipe them in.")
    lines: list[tuple[str, str | None]] = []
    try:
        with (
            nullcontext(sys.stdin.buffer)
            if given == STANDARD_INPUT
            else untrusted_files.open_file(given, _LARGEST_FILE) as file
        ):
            # Longer than the longest line with its mark and its break, so that one that is cut is seen to be too long.
            while len(lines) <= MOST_LINES and (line := file.readline(LONGEST_LINE + 5)):
                text = _without_break(line).removeprefix(b"" if lines else _BOM)
                n_bytes = len(text)
                while n_bytes > LONGEST_LINE and not line.endswith(b"\n") and (line := file.readline(_CHUNK)):
                    n_bytes += len(_without_break(line))
                lines.append(_decoded(text, n_bytes))
    except FileNotFoundError:
        raise InputError(f"There is no file {str(given)[-200:]!r}.") from None
    except FileError as error:
        raise InputError(f"{str(given)[-200:]!r} is not read: {error}.") from error
    return lines


def _without_break(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line


def _decoded(text: bytes, n_bytes: int) -> tuple[str, str | None]:
    fault = None if n_bytes else "it is empty"
    if n_bytes > LONGEST_LINE:
        fault = f"it has {n_bytes:,} bytes; at most {LONGEST_LINE:,} are read"
    try:
        if fault is None:
            return text.decode(), None
    except UnicodeDecodeError:
        fault = "it is not UTF-8 text"
    return text[:_SHOWN].decode(errors="replace"), fault
