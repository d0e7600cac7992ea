"""What several commands need: common options, reading TEXT, printing JSON and safe text."""

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_viz import edits
from transformer_viz.errors import InputError, OptionError, TraceTooLargeHere, listed
from transformer_viz.numbers_in_words import interval_words, number_words
from transformer_viz.switches import Switches
from transformer_viz.terms import DEVICES, KINDS, MISTAKES, MODES, STOPS, STRATEGIES, visible_text

if TYPE_CHECKING:
    from transformer_viz.analysis.verdict import Mean
    from transformer_viz.loaded_model import LoadedModel, Tokenizer
    from transformer_viz.tasks import Task
    from transformer_viz.trace.trace import Trace

LARGEST_SEED = 2**63 - 2
_LONGEST_INPUT = 1_000_000


def add_model(parser: argparse.ArgumentParser) -> None:
    """`--checkpoint` or `--model`, and `--device`; `loaded` reads them back."""
    either = parser.add_mutually_exclusive_group()
    _add_checkpoint(either)
    either.add_argument(
        "--model",
        metavar="NAME",
        help="another model instead: a name that `models` lists, or a folder with a path separator",
    )
    add_device(parser)


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """`--checkpoint` and `--device`, for what needs a task."""
    _add_checkpoint(parser)
    add_device(parser)


def _add_checkpoint(parser: argparse._ActionsContainer) -> None:
    words = "a checkpoint's name, or a folder with a path separator (reverse)"
    parser.add_argument("--checkpoint", default="reverse", metavar="NAME", help=words)


def look_up(arguments: argparse.Namespace, texts: Iterable[str] = ()) -> "Task | None":
    """Refuses, before torch is imported, what the model's folder tells: it is not there or damaged, or cannot read a text.

    Returns:
        The task of a checkpoint.

    Raises:
        CheckpointError, ModelError: there is none, or it is damaged.
        InputError: a text that the checkpoint's task cannot read.
    """
    if getattr(arguments, "model", None) is not None:
        from transformer_viz.readers import check

        check(arguments.model)
        return None
    from transformer_viz.checkpoints import task_of

    task = task_of(arguments.checkpoint)
    for text in texts:
        task.read(text)
    return task


def loaded(arguments: argparse.Namespace) -> "LoadedModel":
    """The model that `add_model` asked for."""
    if arguments.model is None:
        from transformer_viz.checkpoints import load_checkpoint

        return load_checkpoint(arguments.checkpoint, arguments.device)
    from transformer_viz.readers import load_model

    return load_model(arguments.model, arguments.device)


def loaded_to_decode(arguments: argparse.Namespace) -> "LoadedModel":
    """Likewise, with the switches of `add_decoding` that only a model that is not ours has."""
    model = loaded(arguments)
    if not any(getattr(arguments, name) for name in _OF_MODELS):
        return model
    asked = Switches(
        chat=arguments.chat or None,
        generation=False if arguments.no_generation else None,
        source_language=arguments.source_language,
        target_language=arguments.target_language,
        shortlist=False if arguments.no_shortlist else None,
    )
    return model.switched(asked)


def add_device(parser: argparse.ArgumentParser) -> None:
    """`--device`."""
    words = f"{', '.join(DEVICES[:-1])} or {DEVICES[-1]}; auto takes the first of cuda, mps, cpu (auto)"
    parser.add_argument("--device", choices=DEVICES, default="auto", metavar="NAME", help=words)


def add_text(parser: argparse.ArgumentParser) -> None:
    """The source text."""
    parser.add_argument(
        "text", metavar="TEXT", help="the source text; - reads it from standard input; after -- it may begin with -"
    )


_OF_MODELS = ("chat", "no_generation", "no_shortlist", "source_language", "target_language")
"""Switches that only a model that is not ours has."""
_OF_BEAM = ("beam_size", "length_penalty", "n_best", "stop", "refill")
_OF_SAMPLE = ("temperature", "top_k", "top_p", "seed")
"""Options of one strategy alone."""


def add_decoding(parser: argparse.ArgumentParser, *, with_trace: bool = True) -> None:
    """How to decode, and by default what is kept of it; `decoding` reads it back."""
    words = "greedy, beam or sample (greedy)"
    parser.add_argument("--strategy", choices=STRATEGIES, default="greedy", metavar="NAME", help=words)
    add_max_length(parser, "the task's or the model's")
    words = "how many candidates each step keeps (10)"
    parser.add_argument("--candidates", type=whole(1, 100_000), default=10, metavar="N", help=words)
    _add_beam(parser)
    _add_sampling(parser)
    parser.add_argument("--prefix", metavar="TEXT", help="what the output begins with, whatever the model would write")
    parser.add_argument(
        "--ban",
        metavar="TOKEN",
        action="append",
        help="a token that is never written, of a --model also as #ID; may be repeated",
    )
    _add_switches_of_models(parser)
    add_changes(parser, "changes to masks and heads, for example cross:3-5")
    if with_trace:
        words = "what the trace keeps: encoder, decoder, cross (all)"
        parser.add_argument("--precision", choices=("float32", "float16"), help="of the weights in the trace (float32)")
        parser.add_argument("--kinds", type=_kinds, metavar="KIND,…", help=words)
        parser.add_argument("--layers", type=layer_numbers, metavar="N,…", help="the layers that the trace keeps, from 1 (all)")
    most = whole(1, LARGEST_SEED)
    parser.add_argument(
        "--max-trace-bytes", type=most, metavar="N", help="refuse a trace that could be larger (256 MB, as the page)"
    )


def _add_beam(parser: argparse.ArgumentParser) -> None:
    size = whole(1, 64)
    parser.add_argument("--beam-size", type=size, metavar="N", help="beam: how many continuations are kept at each step (5)")
    words = "beam: sums of log-probabilities are divided by length to this power (0.6)"
    parser.add_argument("--length-penalty", type=decimal(-10, or_equal=True, most=10), metavar="X", help=words)
    words = "beam: how many finished hypotheses are wanted (as many as the beam is wide)"
    parser.add_argument("--n-best", type=size, metavar="N", help=words)
    parser.add_argument("--stop", choices=STOPS, metavar="WHEN", help="beam: bound, first or never (bound)")
    words = "beam: kept full where hypotheses end, as in transformers"
    parser.add_argument("--refill", action="store_true", default=None, help=words)


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    words = "sample: logits are divided by it (1)"
    parser.add_argument("--temperature", type=decimal(0, or_equal=True, most=1000), metavar="X", help=words)
    words = "sample: only the N most probable tokens (all)"
    parser.add_argument("--top-k", type=whole(1, 1_000_000), metavar="N", help=words)
    words = "sample: only the most probable tokens that reach this probability together (1)"
    parser.add_argument("--top-p", type=decimal(0, or_equal=False, most=1), metavar="X", help=words)
    parser.add_argument("--seed", type=whole(0, LARGEST_SEED), metavar="N", help="sample: another seed draws other tokens (0)")


def add_max_length(parser: argparse.ArgumentParser, default: str = "the model's") -> None:
    """`--max-length`; `default` says what holds without it."""
    words = f"the most tokens to write, <end> included ({default})"
    parser.add_argument("--max-length", type=whole(1, 512), metavar="N", help=words)


def add_changes(parser: argparse.ArgumentParser, words: str) -> None:
    """`--edits` and `--mistake`; `words` say what edits are for."""
    parser.add_argument("--edits", type=_edits, default="", metavar="TEXT", help=words)
    parser.add_argument("--mistake", choices=MISTAKES, metavar="NAME", help=f"a deliberate mask mistake: {listed(MISTAKES)}")


def _edits(text: str) -> str:
    edits.read([text])
    return text


def add_mode(parser: argparse.ArgumentParser, before: str = "") -> None:
    """`--mode`: how a token is taken away."""
    words = f"{before}how a token is taken away: {', '.join(MODES[:-1])} or {MODES[-1]} (word)"
    parser.add_argument("--mode", choices=MODES, default="word", metavar="HOW", help=words)


def add_cause_kind(parser: argparse.ArgumentParser) -> None:
    """`--kind` of the attention in which something is a cause."""
    words = "whose keys: cross or decoder (cross, where there is an encoder)"
    parser.add_argument("--kind", choices=("cross", "decoder"), metavar="KIND", help=words)


def _add_switches_of_models(parser: argparse.ArgumentParser) -> None:
    """What only a model that is not ours has; `loaded_to_decode` obeys it."""
    parser.add_argument(
        "--chat", action="store_true", help="of a --model: TEXT as a user's message in the model's chat template"
    )
    parser.add_argument(
        "--no-generation",
        action="store_true",
        help="of a --model: without the rules of its generation config",
    )
    parser.add_argument("--no-shortlist", action="store_true", help="of a --model of Firefox: it may write any token")
    for what, does in (("source", "reads"), ("target", "writes")):
        words = f"of a --model that translates between many: the code of the language that it {does}"
        parser.add_argument(f"--{what}-language", metavar="CODE", help=words)


def decoding(arguments: argparse.Namespace, model: "LoadedModel") -> dict[str, Any]:
    """The keywords of `decode` that `add_decoding` asked for; what was not given is left out."""
    from transformer_viz.trace.limits import MAX_TRACE_BYTES

    keywords = {name: getattr(arguments, name) for name in ("strategy", "max_length", "candidates", "mistake")}
    keywords["max_trace_bytes"] = MAX_TRACE_BYTES
    others = ("precision", "kinds", "layers", "max_trace_bytes")
    for name in (*_OF_BEAM, *_OF_SAMPLE, *others):
        if getattr(arguments, name, None) is not None:
            keywords[name] = getattr(arguments, name)
    if arguments.prefix:
        keywords["prefix"] = (model.task.read_target if model.task else model.tokenizer.target)(arguments.prefix)
    if arguments.ban:
        keywords["ban"] = [_token(given, model.tokenizer) for given in arguments.ban]
    if keywords.get("layers"):
        _check_layers(arguments.layers, arguments.kinds, model)
    return {**keywords, "edits": [arguments.edits]}


def _token(given: str, tokenizer: "Tokenizer") -> str | int:
    """`#17` is the id 17 where labels do not tell ids."""
    is_id = not tokenizer.has_unique_labels and re.fullmatch(r"#\d{1,9}", given, re.ASCII)
    return int(given[1:]) if is_id else given


def _check_layers(layers: list[int], kinds: list[str] | None, model: "LoadedModel") -> None:
    """The engine's own message counts from 0."""
    there = model.model.sizes.layers
    for kind in kinds or there:
        # A kind that the model does not have is refused by name.
        numbers = there.get(kind, layers)
        if lacking := [number for number in layers if number not in numbers]:
            is_row = tuple(numbers) == tuple(range(len(numbers)))
            which = f"1 to {len(numbers)}" if is_row else listed(number + 1 for number in numbers)
            raise OptionError(
                f"--layers {max(lacking) + 1} is not possible; {kind} attention has layers {which}. "
                "--kinds chooses the kinds that have the layer."
            )


def _kinds(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in KINDS]:
        raise argparse.ArgumentTypeError(f"{unknown[0][:40]!r} is not known; choose from {listed(KINDS)}")
    return names


def layer_numbers(text: str) -> list[int]:
    """Numbers from 1, as people count them."""
    return [whole(1, 1000)(number.strip()) - 1 for number in text.split(",")]


def add_seed(parser: argparse.ArgumentParser, words: str) -> None:
    """`--seed`, 0 by default; `words` say what another one does."""
    parser.add_argument("--seed", type=whole(0, LARGEST_SEED), default=0, metavar="N", help=f"{words} (0)")


def add_texts(parser: argparse.ArgumentParser) -> None:
    """`--text`, or `--samples` and `--seed`; `runs_of_texts` reads them back."""
    parser.add_argument("--text", action="append", metavar="TEXT", help="a text; by default drawn from the task")
    parser.add_argument(
        "--samples", type=whole(1, 1000), default=40, metavar="N", help="without --text: how many texts are drawn (40)"
    )
    add_seed(parser, "another seed draws other texts, and resamples in another way")
    add_max_length(parser)


def runs_of_texts(arguments: argparse.Namespace, model: "LoadedModel") -> "list[Trace]":
    """What the model writes for the texts of `add_texts`, one after the other."""
    from transformer_viz.attribution.verdict import texts_of
    from transformer_viz.tracing.decode import decode

    if arguments.text is None and model.task is None:
        raise OptionError(f"{model.name} has no task that texts could be drawn from; give --text")
    texts = arguments.text or texts_of(model, arguments.samples, arguments.seed)
    return [decode(model, text, max_length=arguments.max_length) for text in texts]


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """`--no-limits`; `load_trace` obeys it."""
    parser.add_argument(
        "--no-limits",
        action="store_true",
        help="read and draw a trace of any size, with the time and memory that it takes; without it the page's limits hold",
    )


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


def add_trace_file(parser: argparse.ArgumentParser) -> None:
    """`-o FILE.npz` and `--force`, of a trace that is written; `check_trace_file` and `save_trace` obey them."""
    parser.add_argument("-o", "--output", required=True, metavar="FILE.npz", type=Path, help="where to write")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def check_trace_file(arguments: argparse.Namespace) -> None:
    """Finds out before the model is loaded whether the file may be written."""
    path: Path = arguments.output
    if path.suffix != ".npz":
        raise OptionError(f"{path} does not end in .npz, as a trace file does.")
    if path.is_dir():
        raise OptionError(f"{path} is a folder. Choose another name.")
    if path.exists() and not arguments.force:
        raise OptionError(f"{path} exists already. Choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise OptionError(f"There is no folder {path.parent}. Make it first.")


def save_trace(trace: "Trace", arguments: argparse.Namespace) -> None:
    """Writes the file, and says what the run wrote."""
    path: Path = arguments.output
    try:
        trace.save(path)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}.") from error
    print(f"{visible(str(path))}: {visible_run(trace.text)}")


@contextmanager
def lifted_by_flag() -> Generator[None]:
    """Says in the message of a limit how to lift it."""
    try:
        yield
    except TraceTooLargeHere as error:
        raise TraceTooLargeHere(f"{error} --no-limits lifts the limits.") from error


def whole(least: int, most: int) -> Callable[[str], int]:
    """An argparse type: a whole number within limits."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not possible; it is a whole number from {least} to {most}")
        return number

    return read


def decimal(least: float, *, or_equal: bool, most: float = math.inf) -> Callable[[str], float]:
    """An argparse type: a finite number above `least`, or equal to it where that is allowed, and at most `most`."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or not least <= number <= most or (number == least and not or_equal):
            until = f", at most {most:g}" if math.isfinite(most) else ""
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not possible; it is a number {'from' if or_equal else 'above'} {least:g}{until}"
            )
        return number

    return read


def existing_file(text: str) -> Path:
    """An argparse type: something of this name is there; reading it tells what."""
    if not os.path.exists(text):  # noqa: PTH110 - unlike Path.exists it takes a name that is too long
        raise argparse.ArgumentTypeError(f"there is no file {text[-200:]}")
    return Path(text)


def text_to_decode(arguments: argparse.Namespace) -> str:
    """TEXT, after all that can be refused of it, of the model and of the options of `add_decoding` without torch."""
    for strategy, names in (("beam", _OF_BEAM), ("sample", _OF_SAMPLE)):
        if strategy != arguments.strategy and (given := _given(arguments, names)):
            raise OptionError(f"{given} means nothing to --strategy {arguments.strategy}; it is of {strategy}. Leave it out.")
    if arguments.model is None and (given := _given(arguments, _OF_MODELS)):
        raise OptionError(f"{given} is of a --model; {arguments.checkpoint} is a checkpoint. Leave it out, or give --model.")
    text = read_text(arguments.text)
    if (task := look_up(arguments, [text])) is not None:
        from transformer_viz.task_tokenizer import TaskTokenizer

        if arguments.prefix:
            task.read_target(arguments.prefix)
        TaskTokenizer(task).named("ban: token", arguments.ban or ())
    return text


def _given(arguments: argparse.Namespace, names: Sequence[str]) -> str | None:
    """The first of these options that is given, as people type it."""
    given = (name for name in names if getattr(arguments, name) is not None and getattr(arguments, name) is not False)
    return next((f"--{name.replace('_', '-')}" for name in given), None)


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


def print_json(data: dict[str, Any]) -> None:
    """One object; ASCII only, so that it survives every terminal and pipe."""
    print(json.dumps(data, allow_nan=False))


def finite(part: Any) -> Any:
    """The same as JSON has it: what is no number is null."""
    if isinstance(part, dict):
        return {name: finite(each) for name, each in part.items()}
    if isinstance(part, list | tuple):
        return [finite(each) for each in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def cell(value: float | None, places: int = 3) -> str:
    """A number in a table of the terminal: its minus is the one that people type; `-` for none."""
    return "-" if value is None or math.isnan(value) else number_words(value, places).replace("−", "-")


def mean_words(mean: "Mean") -> str:
    """A mean and its interval, in a table."""
    return cell(mean.value) + (f" ({interval_words(mean.ends, cell)})" if mean.ends else "")


def visible(text: str) -> str:
    """Text for a terminal: what would act on it is spelled out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def visible_run(text: str) -> str:
    """A token or a text of a run for a terminal: a space, too, is something to see."""
    return visible(visible_text(text))
