"""Hooks through which a tap sees and changes what surrounds the attention of a Hugging Face model."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from transformer_viz.errors import ModelError
from transformer_viz.model.tap import Site, TapName
from transformer_viz.readers.huggingface import attention
from transformer_viz.readers.huggingface.attention import Pass, Place
from transformer_viz.readers.huggingface.layers import AttentionModules, first_input, first_output
from transformer_viz.terms import Kind

NAMES: tuple[TapName, ...] = ("entered", "residual_before", "residual_after", "added", "state")
"""The intermediates that need hooks; these are in the model only during a pass whose tap reads one of them."""


@contextmanager
def hook_layers(now: Pass | None, modules: Mapping[Place, AttentionModules]) -> Generator[None]:
    """Registers hooks for the time of the `with` block, if the tap of this pass names an intermediate that needs them."""
    if now is None or not any(name in now.tap.names for name in NAMES):
        yield
        return
    hooks = _Hooks(now, {place: modules[place] for place in now.places})
    handles = hooks.register()
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Hooks:
    """The hooks of one pass. Other threads may use the same modules; their passes are ignored."""

    def __init__(self, now: Pass, modules: Mapping[Place, AttentionModules]) -> None:
        self.now, self.modules = now, modules
        self.layers = sorted({layer for _, layer in now.places})
        self.stack: Kind = "encoder" if now.places[0][0] == "encoder" else "decoder"
        self.n_layers = 0
        self.norm_input: Tensor | None = None
        self.before: Tensor | None = None
        self.is_open = False
        """True while the output projection, or the norm after it, of the last attention is still to run."""

    def register(self) -> list[Any]:
        def mine(hook: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *given: hook(*given) if attention.is_now(self.now) else None

        handles = []
        for name, before, after in (
            ("attention", self.enter, None),
            ("out", None, self.leave),
            ("norm", self.norm, self.normed),
            ("layer", self.begin, self.end),
        ):
            # Each module once, though several attentions may share it.
            for module in dict.fromkeys(getattr(modules, name) for modules in self.modules.values()):
                if module is not None and before is not None:
                    handles.append(module.register_forward_pre_hook(mine(before), with_kwargs=True))
                if module is not None and after is not None:
                    handles.append(module.register_forward_hook(mine(after)))
        return handles

    def begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Before a layer: the input of the first one is the state −1."""
        site = Site(self.stack, -1, self.now.first_query)
        return None if self.n_layers else self._change_input("state", args, kwargs, site)

    def end(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """After a layer: its output is its state."""
        state = first_output(output)
        if state is None or self.n_layers == len(self.layers):
            return None
        site = Site(self.stack, self.layers[self.n_layers], self.now.first_query)
        self.n_layers += 1
        seen = self._look("state", state, site)
        return None if seen is state else (seen, *output[1:]) if isinstance(output, tuple) else seen

    def norm(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before a norm: keeps its input, which in pre-norm is the residual stream before the attention that follows."""
        self.norm_input = _hidden(args, kwargs)

    def enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Before an attention module."""
        site = self._site(self.now.n_seen)
        placement = self.modules[site.kind, site.layer].attention_block.placement
        self.before = None if placement is None else self.norm_input if placement == "pre" else _hidden(args, kwargs)
        self._show("residual_before", self.before, site)
        self.is_open = True
        return self._change_input("entered", args, kwargs, site)

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Any:
        """After an output projection. In pre-norm the residual stream after it is the sum."""
        site = self._site(self.now.n_seen - 1)
        around = self.modules[site.kind, site.layer]
        if around.out is not module or not self.is_open:
            return None
        added = self._look("added", output, site)
        if around.attention_block.placement == "pre" and self.before is not None:
            self._show("residual_after", self.before + added, site)
        self.is_open = around.attention_block.placement in ("post", "residual-post")
        return None if added is output else added

    def normed(self, module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        """After a norm: behind an attention, its output is the residual stream, or what is added to it."""
        if not self.is_open or not self.now.n_seen:
            return
        site = self._site(self.now.n_seen - 1)
        around, placement = self.modules[site.kind, site.layer], self.modules[site.kind, site.layer].attention_block.placement
        if around.norm is not module or placement == "pre" or self.before is None:
            return
        self.is_open = False
        self._show("residual_after", output if placement == "post" else self.before + output, site)

    def _site(self, number: int) -> Site:
        kind, layer = self.now.places[number]
        return Site(kind, layer, self.now.first_query)

    def _look(self, name: TapName, value: Tensor, site: Site) -> Tensor:
        return self.now.tap(site, name, value) if name in self.now.tap.names else value

    def _show(self, name: TapName, value: Tensor | None, site: Site) -> None:
        """Shows the tap what is no input or output of a module, so that it cannot be replaced."""
        if value is not None and self._look(name, value, site) is not value:
            raise ModelError(f"In a Hugging Face model {name} can be read, not changed; change state, entered or added instead")

    def _change_input(self, name: TapName, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site) -> Any:
        x = _hidden(args, kwargs)
        if x is None or (seen := self._look(name, x, site)) is x:
            return None
        return (args, {**kwargs, "hidden_states": seen}) if "hidden_states" in kwargs else ((seen, *args[1:]), kwargs)


def _hidden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    first = first_input(args, kwargs)
    return first if first is not None and first.is_floating_point() else None
