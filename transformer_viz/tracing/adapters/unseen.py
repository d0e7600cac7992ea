"""Attention that a model has and that was not recorded: found, refused or accepted, and named."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from transformer_viz.errors import OptionError, listed
from transformer_viz.terms import KINDS, Kind
from transformer_viz.tracing.adapters import huggingface
from transformer_viz.tracing.adapters.functions import Functions
from transformer_viz.tracing.adapters.running import Running
from transformer_viz.tracing.adapters.seen import Seen

WATCHED = "torch.nn.MultiheadAttention and Hugging Face's attention interface are watched"
_MOST_NAMES = 3


@dataclass(frozen=True)
class Unseen:
    """A module of which no attention was recorded.

    Attributes:
        module: its name; the class of the model for the model itself.
        type_name: its class.
        kind: which attention, where that can be told.
    """

    module: str
    type_name: str
    kind: Kind | None

    @property
    def name(self) -> str:
        """What accepts it and its like: its kind, else the list of layers that it is in, else itself."""
        parts = self.module.split(".")
        number = next((i for i, part in enumerate(parts) if part.isdecimal()), len(parts))
        return self.kind or ".".join(parts[:number]) or self.module

    def is_accepted(self, allowed: Iterable[str]) -> bool:
        """Whether one of `allowed` is its kind, its name, or that of a part around it."""
        return any(name in (self.kind, self.module) or self.module.startswith(f"{name}.") for name in allowed)


def found(model: nn.Module, inner: Any | None, running: Running, functions: Functions, calls: Sequence[Seen]) -> list[Unseen]:
    """Every module that attended and was not recorded; and the stacks of a Hugging Face model that ran and of which a
    kind of attention was not seen in any way."""
    modules, recorded = dict(model.named_modules()), {call.module for call in calls}
    encoder = set() if inner is None else huggingface.encoder_modules(inner)
    attended = [
        Unseen(name or type(model).__name__, type(modules[name]).__name__, "encoder" if id(modules[name]) in encoder else None)
        for name in functions.attending
        if name not in recorded
    ]
    return [*attended, *(() if inner is None else _silent(modules, inner, running, [call.kind for call in calls], attended))]


def _silent(
    modules: dict[str, nn.Module], inner: Any, running: Running, kinds: Sequence[Kind], attended: Sequence[Unseen]
) -> Iterator[Unseen]:
    if not inner.config.is_encoder_decoder:
        return
    stacks: dict[int, tuple[Kind, ...]] = {id(inner.get_encoder()): ("encoder",), id(inner.get_decoder()): ("decoder", "cross")}
    for name, module in modules.items():
        if name in running.ran and not any(unseen.module.startswith(f"{name}.") for unseen in attended):
            for kind in stacks.get(id(module), ()):
                if kind not in kinds:
                    yield Unseen(name, type(module).__name__, kind)


def accepted(model: nn.Module, unseen: Sequence[Unseen], allowed: Sequence[str]) -> list[str]:
    """The names of what was not seen, all of it accepted.

    Raises:
        OptionError: something is not accepted; the message names it and says how it is.
    """
    if refused := [module for module in unseen if not module.is_accepted(allowed)]:
        names = tuple(dict.fromkeys([*allowed, *(module.name for module in refused)]))
        raise OptionError(
            f"not all attention of {type(model).__name__} was seen; missing is {words(refused)}; {WATCHED}. "
            f"For a Trace without it: allow_missing={names!r}"
        )
    return [module.module for module in unseen]


def words(unseen: Sequence[Unseen]) -> str:
    """A few of them by name, each with its class and kind, and how many more there are."""
    named = [f"{module.kind or 'the'} attention of {module.module} ({module.type_name})" for module in unseen[:_MOST_NAMES]]
    more = len(unseen) - len(named)
    return ", ".join(named) + (f", and of {more} more" if more else "")


def names_of(given: Iterable[str], model: nn.Module) -> tuple[str, ...]:
    """`allow_missing` as it was given.

    Raises:
        OptionError: one text, or a name of nothing in the model.
    """
    if isinstance(given, str):
        raise OptionError(f"allow_missing is one text; a list of names is needed, for example ({given[:40]!r},)")
    names = tuple(map(str, given))
    known = {*KINDS, type(model).__name__, *(name for name, _ in model.named_modules() if name)}
    if wrong := [name for name in names if name not in known]:
        raise OptionError(
            f"allow_missing names {wrong[0][:40]!r}, which is no module of {type(model).__name__} and no kind; "
            f"give kinds ({listed(KINDS)}) or names from model.named_modules()"
        )
    return names
