"""Shared parts of commands: common options, reading TEXT, printing JSON and safe text."""

import json as json_format
import math
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from transformer_viz import edits
from transformer_viz.atomic_files import check_target
from transformer_viz.commands._options import Option
from transformer_viz.errors import InputError, OptionError, TraceTooLargeHere
from transformer_viz.language import languages
from transformer_viz.schema import Choice, Range
from transformer_viz.terms import DEVICES, MISTAKES, MODES
from transformer_viz.text_display import display_text

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel
    from transformer_viz.tasks import Task
    from transformer_viz.trace.trace import Trace

SEED = Range(0, 2**63 - 2)
_LONGEST_INPUT = 1_000_000

Text = Annotated[str, "the text; - reads standard input; a text that begins with - goes after --"]
Pair = Annotated[str | None, "with an encoder such as BERT: a second text, read with TEXT as a pair"]
Checkpoint = Annotated[str, "a checkpoint by its name, or a folder such as ./mine"]
Device = Annotated[str, "auto takes cuda if there is one, else mps, else cpu", Choice(DEVICES)]
MaxLength = Annotated[int | None, "write at most N tokens, <end> included (the model's limit)", Range(1, 512)]
Mistake = Annotated[str | None, "run with this fault of a mask", Choice(MISTAKES)]
Mode = Annotated[str, "how a token is removed: replaced by the unknown token, hidden, or deleted", Choice(MODES)]
CauseKind = (
    Annotated[
        Literal["cross", "decoder"],
        "remove source tokens (cross) or tokens that the decoder read (cross, where there is an encoder)",
    ]
    | None
)
Language = Annotated[str | None, "the language of its words (en)", Choice(languages())]
Json = Annotated[bool, "print one JSON object instead of text"]
Force = Annotated[bool, "replace the file if it exists"]
NoLimits = Annotated[bool, "take a trace of any size, whatever time and memory that needs; without it the app's limits hold"]


def _read_edits(text: str) -> str:
    edits.read([text])
    return text


Edits = Annotated[str, "change masks, heads or rows, as in cross:3-5,decoder.2.1:zero", _read_edits]


def existing_file(text: str) -> Path:
    """Reads the name of a file that is there; reading the file tells what it is."""
    if not os.path.exists(text):  # noqa: PTH110 - unlike Path.exists it takes a name that is too long
        raise OptionError(f"there is no file {text[-200:]}")
    return Path(text)


@dataclass(frozen=True)
class ModelChoice:
    """The model, and the device that it runs on."""

    checkpoint: Annotated[Checkpoint, Option(either="model")] = "reverse"
    model: Annotated[
        str | None,
        "another model instead: a name from the command `models`, or a folder such as ./mine",
        Option(either="model"),
    ] = None
    module: Annotated[
        str | None,
        "a model that a function of your own file makes with tv.wrap, as in my_model.py:make; the file runs",
        Option(either="model"),
    ] = None
    device: Device = "auto"

    def check(self, texts: Iterable[str] = ()) -> "Task | None":
        """Refuses, before torch is imported, what the model's folder tells: it is missing or damaged, or cannot read a text.

        Returns:
            The task of a checkpoint.

        Raises:
            CheckpointError, ModelError: there is none, or it is damaged.
            InputError: a text that the checkpoint's task cannot read.
        """
        if (named := self.module or self.model) is not None:
            from transformer_viz.readers import check_loadable
            from transformer_viz.readers.modules.files import ModuleFile

            if self.module is not None:
                ModuleFile.of(self.module)
            check_loadable(named)
            return None
        from transformer_viz.checkpoints import task_of

        task = task_of(self.checkpoint)
        for text in texts:
            task.read(text)
        return task

    def load(self) -> "LoadedModel":
        """The model; this imports torch."""
        named = self.module or self.model
        if named is None:
            from transformer_viz.checkpoints import load_checkpoint

            return load_checkpoint(self.checkpoint, self.device)
        from transformer_viz.readers import load_model

        return load_model(named, self.device)


@dataclass(frozen=True)
class TextsOptions:
    """Texts of one's own, or drawn ones."""

    text: Annotated[list[str] | None, "a text; may be repeated (texts drawn from the task)"] = None
    samples: Annotated[int, "without --text: how many texts to draw", Range(1, 1000)] = 40
    seed: Annotated[int, "draw other texts, and resample differently", SEED] = 0
    max_length: MaxLength = None

    def traces(self, model: "LoadedModel") -> "list[Trace]":
        """Runs the model on each text, one after the other."""
        from transformer_viz.evaluation.evaluate import sample_texts
        from transformer_viz.tracing.decode import decode

        if self.text is None and model.task is None:
            raise OptionError(f"{model.name} has no task that texts could be drawn from; give --text")
        texts = self.text or sample_texts(model, self.samples, self.seed)
        return [decode(model, text, max_length=self.max_length) for text in texts]


@dataclass(frozen=True)
class TraceFile:
    """The file to which a run is written."""

    output: Annotated[Path, "where to write", Option("-o")]
    force: Force = False

    def check(self) -> None:
        """Finds out before the model is loaded whether the file may be written."""
        if self.output.suffix != ".npz":
            raise OptionError(f"{self.output} does not end in .npz, as a trace file does.")
        check_target(self.output, force=self.force)

    def save(self, trace: "Trace") -> None:
        """Writes the file, and says what the run wrote."""
        from transformer_viz.trace.store import save_trace

        save_trace(trace, self.output)
        print(f"{terminal_text(str(self.output))}: {terminal_token(trace.text)}")


def load_trace(path: Path, *, no_limits: bool) -> "Trace":
    """A trace file, as far as the page would open it.

    Raises:
        TraceError: it is no trace.
        TraceTooLargeHere: it is too large, and the message names the flag that lifts the limits.
    """
    from transformer_viz.trace import limits, store

    if no_limits:
        return store.load_trace(path, max_bytes=sys.maxsize, max_unpacked=sys.maxsize)
    with lifted_by_flag():
        trace = store.load_trace(path, max_bytes=limits.LARGEST_FILE, max_unpacked=limits.MOST_UNPACKED)
        limits.check(trace, str(path)[-200:])
    return trace


@contextmanager
def lifted_by_flag() -> Generator[None]:
    """Says in the message of a limit how to lift it."""
    try:
        yield
    except TraceTooLargeHere as error:
        raise TraceTooLargeHere(f"{error} --no-limits lifts the limits.") from error


def read_text(given: str) -> str:
    """TEXT itself, or standard input without its last line break."""
    if given != "-":
        return given
    if sys.stdin is None:
        raise InputError("TEXT is - and standard input is closed. Give the text itself, or pipe it in.")
    # As bytes: the text layer would guess an encoding and turn every kind of line break into one.
    data = sys.stdin.buffer.read(_LONGEST_INPUT + 1)
    if len(data) > _LONGEST_INPUT:
        raise InputError(f"Standard input has more than {_LONGEST_INPUT} bytes; give one source text.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("Standard input is not UTF-8 text. Convert it, for example with iconv.") from error
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def print_result(result: Any, json: bool, **about: Any) -> None:
    """Prints what a result says of itself, or its fields and `about` as one JSON object."""
    if json:
        print_json({**about, **asdict(result)})
    else:
        print_lines(str(result))


def print_json(data: dict[str, Any]) -> None:
    """One object; ASCII only, so that it survives every terminal and pipe. What is no number is null."""

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: finite(value) for name, value in part.items()}
        if isinstance(part, list | tuple):
            return [finite(value) for value in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    print(json_format.dumps(finite(data), allow_nan=False))


def print_lines(text: str) -> None:
    """Several lines for a terminal, on which nothing in them acts."""
    for line in text.split("\n"):
        print(terminal_text(line))


def terminal_text(text: str) -> str:
    """Text for a terminal: what would act on it is spelled out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def terminal_token(text: str) -> str:
    """A token or a text of a run for a terminal: a space, too, is something to see."""
    return terminal_text(display_text(text))
