"""A function is a command: its parameters, with what is `Annotated`, make the options.

| a parameter | on the command line |
| --- | --- |
| `samples: Annotated[int, "how many texts", Range(1, 1000)] = 40` | `--samples N`, with the default in its help |
| without a default | needed; an argument in its place, or `Option("-o")` |
| `bool = False`, `bool \\| None = None` | `--force`; `--refill` and `--no-refill` |
| `list[str]` | may be repeated |
| a callable among the notes | reads the text; an error of ours is what people are told |
| a dataclass | its fields are options, and the function gets an object of it |
| `Settings(of)` among the notes | the fields of another class are options, and the function gets a dictionary of those given |
"""

import argparse
import ast
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import partial
from inspect import Signature, getsource, signature
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from transformer_viz.errors import TransformerVizError
from transformer_viz.schema import Choice, Range, read_number

NEEDED = Signature.empty
"""The default of a parameter without one."""


@dataclass(frozen=True)
class Option:
    """The unusual traits of an option.

    Attributes:
        flag: one more name, such as `-o`; what has one is no argument without `--`, also where it is needed.
        either: options of one name here exclude each other.
        is_argument: it has no `--` although it has a default.
    """

    flag: str | None = None
    either: str | None = None
    is_argument: bool = False


@dataclass(frozen=True)
class Settings:
    """Options for the fields of a dataclass or a TypedDict.

    Attributes:
        of: the class.
        title: of the group in the help; without one it is none.
        leave_out: fields that are no options.
        prefix: beginning of fields that stands in no option.
    """

    of: type
    title: str = ""
    leave_out: frozenset[str] = frozenset()
    prefix: str = ""


class Parameter(NamedTuple):
    """A parameter of a command or of a group of options."""

    name: str
    kind: Any
    notes: tuple[Any, ...]
    default: Any
    flag: str

    @property
    def group(self) -> Any:
        """The dataclass or the `Settings` whose fields it stands for, or None."""
        return self.note(Settings) or (self.kind if is_dataclass(self.kind) else None)

    def note(self, of: type) -> Any:
        """The last note of a type, or None."""
        return next((note for note in self.notes if isinstance(note, of)), None)


def type_and_notes(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """`int` and its notes of `Annotated[int | None, …]`, the last note first; None as a value is left out."""
    if get_origin(hint) is Annotated:
        kind, notes = type_and_notes(hint.__origin__)
        return kind, (*reversed(hint.__metadata__), *notes)
    if get_origin(hint) in (Union, UnionType):
        return type_and_notes(next(member for member in get_args(hint) if member is not type(None)))
    return hint, ()


def flag_of(name: str, prefix: str = "") -> str:
    """`beam_size` is `--beam-size`; with the prefix `n_`, `n_heads` is `--heads`."""
    return f"--{name.removeprefix(prefix).replace('_', '-')}"


def parameters_of(declaration: Any) -> Iterator[Parameter]:
    """The parameters of a function, or the fields of a group of options."""
    if isinstance(declaration, Settings):
        words = _strings_below(declaration.of)
        for name, hint in get_type_hints(declaration.of, include_extras=True).items():
            if name not in declaration.leave_out:
                kind, notes = type_and_notes(hint)
                yield Parameter(name, kind, (*notes, words.get(name, "")), None, flag_of(name, declaration.prefix))
    else:
        hints = get_type_hints(declaration, include_extras=True)
        for declared in signature(declaration).parameters.values():
            yield Parameter(declared.name, *type_and_notes(hints[declared.name]), declared.default, flag_of(declared.name))


def arguments_of(declaration: Any, parsed: argparse.Namespace) -> dict[str, Any]:
    """The parsed values, by the names of the parameters of a function or a group of options."""
    arguments = {}
    for parameter in parameters_of(declaration):
        group, value = parameter.group, getattr(parsed, parameter.name, None)
        if isinstance(group, Settings):
            value = {name: given for name, given in arguments_of(group, parsed).items() if given is not None}
        elif group is not None:
            value = group(**arguments_of(group, parsed))
        arguments[parameter.name] = parameter.default if value is None else value
    return arguments


def add_options(parser: argparse.ArgumentParser, declaration: Any) -> None:
    """Adds an option for each parameter of a function."""
    exclusive: dict[str, Any] = defaultdict(parser.add_mutually_exclusive_group)

    def add(declaration: Any, place: Any) -> None:
        for parameter in parameters_of(declaration):
            if (group := parameter.group) is not None:
                add(group, parser.add_argument_group(group.title) if getattr(group, "title", "") else place)
                continue
            option = parameter.note(Option) or Option()
            names, keywords = _argument(parameter, option)
            (exclusive[option.either] if option.either else place).add_argument(*names, **keywords)

    add(declaration, parser)


def _argument(parameter: Parameter, option: Option) -> tuple[list[str], dict[str, Any]]:
    """The names and keywords of one option for argparse."""
    kind, notes = parameter.kind, parameter.notes
    is_needed, words = parameter.default is NEEDED, parameter.note(str) or ""
    is_argument = option.is_argument or (is_needed and option.flag is None)
    keywords: dict[str, Any] = {"default": None}
    reader = next(filter(callable, notes), None)
    if get_origin(kind) is list and reader is None:
        # One value at a time.
        kind, own = type_and_notes(get_args(kind)[0])
        notes, reader = (*notes, *own), next(filter(callable, own), None)
        keywords |= {"nargs": "*"} if is_argument else {"action": "append"}
    elif is_argument and not is_needed:
        keywords["nargs"] = "?"
    choices = [get_args(kind)] if get_origin(kind) is Literal else [note.values for note in notes if isinstance(note, Choice)]
    if kind is bool:
        keywords["action"] = argparse.BooleanOptionalAction if parameter.default is None else "store_true"
    elif choices:
        keywords["choices"] = choices[0]
    else:
        is_number, limits = kind in (int, float), next((note for note in notes if isinstance(note, Range)), None)
        if reader is None and is_number and limits:
            reader = partial(read_number, kind, limits)
        keywords |= {"type": _argument_type(reader or kind), "metavar": "N" if is_number else parameter.name.upper()}
    if parameter.default not in (NEEDED, None, False, ""):
        words += f" ({parameter.default})"
    keywords["help"] = words if words == argparse.SUPPRESS else words.replace("%", "%%")
    if is_argument:
        return [parameter.name], keywords
    names = list(dict.fromkeys((option.flag or parameter.flag, parameter.flag)))
    return names, {**keywords, "dest": parameter.name, "required": is_needed}


def _argument_type(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type of argparse whose error is what a reader says."""

    def typed(text: str) -> Any:
        try:
            return read(text)
        except TransformerVizError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number") from error

    return typed


def _strings_below(of: type) -> dict[str, str]:
    """The string below each field of a class, as editors show it."""
    [definition] = ast.parse(textwrap.dedent(getsource(of))).body
    below = {}
    for field, text in pairwise(ast.iter_child_nodes(definition)):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
            words = " ".join(ast.literal_eval(text.value).split()).rstrip(".")
            below[field.target.id] = words[:1].lower() + words[1:]
    return below
