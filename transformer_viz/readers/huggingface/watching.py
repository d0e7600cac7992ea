"""What a pass through a Hugging Face model computes, module by module, with its calls of attention among them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from transformer_viz.readers.huggingface.attention import Call, seen_by


class Event(NamedTuple):
    """A module that was called: its name in the model, the tensor that it was given first, and what it gave."""

    name: str
    module: nn.Module
    given: Tensor
    """What it gave, where it was given no tensor."""
    gave: Tensor


Seen = list[Event | Call]
"""In the order in which they end: a call of attention comes before the module that it is in."""


@contextmanager
def watched(model: nn.Module) -> Generator[Seen]:
    """Whatever is computed within, but modules that give no tensor."""
    seen: Seen = []

    def watch(name: str, module: nn.Module) -> Any:
        def after(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            given, gave = given_to(args, kwargs), given_by(output)
            if gave is not None:
                seen.append(Event(name, module, gave if given is None else given, gave))

        return module.register_forward_hook(after, with_kwargs=True)

    handles = [watch(name, module) for name, module in model.named_modules()]
    try:
        with seen_by(seen.append):
            yield seen
    finally:
        for handle in handles:
            handle.remove()


def given_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """The hidden states that a module is called with, or whatever tensor else comes first."""
    found = kwargs.get("hidden_states", args[0] if args else None)
    return found if isinstance(found, Tensor) else None


def given_by(output: Any) -> Tensor | None:
    """The tensor that a module gives, or the first of several."""
    found = output[0] if isinstance(output, tuple) and output else output
    return found if isinstance(found, Tensor) else None
