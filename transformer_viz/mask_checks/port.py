"""A port: somebody's module or function that reads ids, called in one way whatever it is called like."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError
from transformer_viz.mask_checks.float64_mode import Float64Mode
from transformer_viz.text_display import shorten

TARGETS = ("decoder_input_ids", "target_ids", "target", "tgt", "trg", "tgt_ids", "decoder_ids")
_MASKS, _TARGET_MASKS = ("attention_mask",), ("decoder_attention_mask",)
_CACHES = ("past_key_values", "cache")
_OUTPUTS = ("logits", "last_hidden_state")


def target_name(parameters: Mapping[str, Parameter]) -> str | None:
    """The name by which a function takes the target beside a source: a usual one, or its second argument that is needed;
    None where it reads one text."""
    if named := next((name for name in TARGETS if name in parameters), None):
        return named
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [name for name, one in parameters.items() if one.kind in positional and one.default is Parameter.empty]
    others = {*_MASKS, *_TARGET_MASKS, *_CACHES, "position_ids", "mask", "padding", "key_padding_mask", "use_cache"}
    return needed[1] if len(needed) > 1 and needed[1] not in others else None


def parameters_of(model: Callable[..., Any]) -> Mapping[str, Parameter]:
    """The parameters of a module's forward, or of a function; none where Python does not know them."""
    try:
        return signature(model.forward if isinstance(model, nn.Module) else model).parameters
    except (TypeError, ValueError):
        return {}


def reads_one_text(model: Callable[..., Any]) -> bool:
    """Tells whether a callable reads one text, and no source beside a target; not where nothing is known of its parameters."""
    parameters, positional = parameters_of(model), (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    kinds = [one.kind for one in parameters.values()]
    return (
        any(kind in positional for kind in kinds) and Parameter.VAR_POSITIONAL not in kinds and target_name(parameters) is None
    )


def of_target(model: Callable[..., Any], pad_id: int | None) -> Callable[[Tensor, Tensor], Any]:
    """A model of one text as one that is given it as its target, with the mask of real tokens that it takes by its name."""
    takes_mask = pad_id is not None and any(name in parameters_of(model) for name in _MASKS)

    def answer(source: Tensor, target: Tensor) -> Any:
        returned = model(target, **({_MASKS[0]: target.ne(-1 if pad_id is None else pad_id).long()} if takes_mask else {}))
        return next((value for name in _OUTPUTS if isinstance(value := getattr(returned, name, None), Tensor)), returned)

    return answer


@dataclass
class Port:
    """A model that is tested, on the CPU or where its weights are.

    Attributes:
        model: a module or a function.
        two: whether it reads a source and a target.
        masks: the name of its mask of real tokens, 1 = real; None where it knows padding by its id.
        cache: the name of its cache; None where it has none.
    """

    model: Callable[..., Any]
    two: bool = field(init=False)
    target: str | None = field(init=False)
    masks: str | None = field(init=False)
    cache: str | None = field(init=False)
    is_exact: bool = True
    _names: Mapping[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        """Reads what it takes from its signature."""
        self._names = parameters_of(self.model)
        self.target = target_name(self._names)
        config = getattr(self.model, "config", None)
        if config is not None and hasattr(config, "is_encoder_decoder") and not config.is_encoder_decoder:
            self.target = None
        self.two = self.target is not None
        self.masks = next((name for name in _MASKS if name in self._names), None)
        self.cache = None if self.two else next((name for name in _CACHES if name in self._names), None)

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        own = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        return next((parameter.device for parameter in own), torch.device("cpu"))

    def __call__(
        self, ids: Tensor, real: Tensor | None = None, target: Tensor | None = None, target_real: Tensor | None = None
    ) -> Tensor:
        """Its output, float64 (batch, length, …) on the CPU."""
        return self._output(self._called(ids, real, target, target_real))

    def _called(self, ids: Tensor, real: Tensor | None, target: Tensor | None, target_real: Tensor | None, **more: Any) -> Any:
        # Copies: a model may write into what it is given.
        given: list[Tensor] = [ids.clone().to(self.device)]
        options: dict[str, Any] = dict(more)
        if target is not None:
            # By its place where the name is not one that is usual.
            if self.target in TARGETS and self.target not in list(self._names)[:2]:
                options[self.target] = target.clone().to(self.device)
            else:
                given.append(target.clone().to(self.device))
        if self.masks is not None:
            real = torch.ones_like(ids, dtype=torch.bool) if real is None else real
            options[self.masks] = real.long().to(self.device)
            if not self.two and "position_ids" in self._names:
                positions = (real.long().cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                options["position_ids"] = positions.to(self.device)
        if target is not None and (name := next((n for n in _TARGET_MASKS if n in self._names), None)):
            target_real = torch.ones_like(target, dtype=torch.bool) if target_real is None else target_real
            options[name] = target_real.long().to(self.device)
        if "use_cache" in self._names and "use_cache" not in options:
            options["use_cache"] = False
        return self._run(given, options)

    def _run(self, given: Sequence[Tensor], options: Mapping[str, Any]) -> Any:
        with torch.no_grad(), _evaluated(self.model):
            if self.is_exact:
                try:
                    with Float64Mode():
                        return self.model(*given, **options)
                except Exception:
                    self.is_exact = False  # it cannot be computed in float64: as it is
            try:
                return self.model(*given, **options)
            except Exception as error:
                shapes = ", ".join(str(tuple(one.shape)) for one in given)
                raise OptionError(
                    f"the model failed on ids {shapes} with {', '.join(options) or 'nothing else'}: {type(error).__name__}: "
                    f"{shorten(str(error), 200)}"
                ) from error

    def _output(self, returned: Any) -> Tensor:
        for name in _OUTPUTS:
            if isinstance(value := getattr(returned, name, None), Tensor):
                returned = value
        if isinstance(returned, tuple | list) and returned:
            returned = returned[0]
        if not isinstance(returned, Tensor) or returned.dim() < 3:
            kind = f"a tensor {tuple(returned.shape)}" if isinstance(returned, Tensor) else type(returned).__name__
            raise OptionError(
                f"the model returned {kind}; logits (batch, length, vocabulary) are needed, or an output with .logits"
            )
        return returned.detach().cpu().double().flatten(2)

    def written(self, ids: Tensor, first: int) -> Tensor:
        """Its output with a cache: the first tokens at once, and the others one after the other."""
        assert self.cache is not None
        cache, outputs = None, []
        for start, end in [(0, first), *((n, n + 1) for n in range(first, ids.shape[1]))]:
            options: dict[str, Any] = {self.cache: cache}
            if "use_cache" in self._names:
                options["use_cache"] = True
            returned = self._called(ids[:, start:end], torch.ones(len(ids), end, dtype=torch.bool), None, None, **options)
            cache = getattr(returned, "past_key_values", None)
            if cache is None and isinstance(returned, tuple | list) and len(returned) > 1:
                cache = returned[1]
            if cache is None:
                raise OptionError(
                    f"the model takes {self.cache} and returned none: neither .past_key_values nor a second value"
                )
            outputs.append(self._output(returned))
        return torch.cat(outputs, 1)


@contextmanager
def _evaluated(model: Any) -> Any:
    """In eval mode, within."""
    modules = [one for one in model.modules() if one.training] if isinstance(model, nn.Module) else []
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module in modules:
            module.training = True
