"""Attention that a model has and that was not recorded: found, refused or accepted, and named."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from transformer_viz.errors import OptionError, join_names
from transformer_viz.terms import KINDS, Kind
from transformer_viz.tracing.adapters import huggingface
from transformer_viz.tracing.adapters.attention_calls import AttentionCall
from transformer_viz.tracing.adapters.running_modules import RunningModules

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


def find_unrecorded(
    model: nn.Module, inner: Any | None, running: RunningModules, calls: Sequence[AttentionCall]
) -> list[Unseen]:
    """Every module that attended without being recorded, and every stack of a Hugging Face model that ran and whose attention
    of some kind was not recorded at all."""
    modules, recorded = dict(model.named_modules()), {call.module for call in calls}
    encoder = set() if inner is None else huggingface.encoder_modules(inner)
    unseen = [
        Unseen(name or type(model).__name__, type(modules[name]).__name__, "encoder" if id(modules[name]) in encoder else None)
        for name in running.attending
        if name not in recorded
    ]
    if inner is None or not inner.config.is_encoder_decoder:
        return unseen
    stacks: dict[int, tuple[Kind, ...]] = {id(inner.get_encoder()): ("encoder",), id(inner.get_decoder()): ("decoder", "cross")}
    silent = [
        Unseen(name, type(module).__name__, kind)
        for name, module in modules.items()
        if name in running.ran and not any(other.module.startswith(f"{name}.") for other in unseen)
        for kind in stacks.get(id(module), ())
        if kind not in {call.kind for call in calls}
    ]
    return unseen + silent


def accept_unrecorded(model: nn.Module, unseen: Sequence[Unseen], allowed: Sequence[str]) -> list[str]:
    """The names of the attention that was not recorded, each accepted by its kind, its name, or that of a module around it.

    Raises:
        OptionError: something is not accepted; the message names it and says how it is.
    """
    refused = [
        module
        for module in unseen
        if not any(name in (module.kind, module.module) or module.module.startswith(f"{name}.") for name in allowed)
    ]
    if refused:
        names = dict.fromkeys(allowed)
        for module in refused:
            # Its like are accepted with it: of its kind, else in the same list of layers.
            parts = module.module.split(".")
            number = next((i for i, part in enumerate(parts) if part.isdecimal()), len(parts))
            names[module.kind or ".".join(parts[:number]) or module.module] = None
        raise OptionError(
            f"not all attention of {type(model).__name__} was seen; missing is {unrecorded_words(refused)}; {WATCHED}. "
            f"For a Trace without it: allow_missing={tuple(names)!r}"
        )
    return [module.module for module in unseen]


def unrecorded_words(unseen: Sequence[Unseen]) -> str:
    """A few of them by name, each with its class and kind, and how many more there are."""
    named = [f"{module.kind or 'the'} attention of {module.module} ({module.type_name})" for module in unseen[:_MOST_NAMES]]
    more = len(unseen) - len(named)
    return ", ".join(named) + (f", and of {more} more" if more else "")


def check_allowed(given: Iterable[str], model: nn.Module) -> tuple[str, ...]:
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
            f"give kinds ({join_names(KINDS)}) or names from model.named_modules()"
        )
    return names
