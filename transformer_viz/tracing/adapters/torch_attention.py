"""What `torch.nn.MultiheadAttention` does inside any module, `torch.nn.Transformer` among them.

The layers of torch ask for no weights (`need_weights=False`), and in eval mode an encoder layer may skip its
attention module altogether (the fast path). So the fast path is switched off for the run, and a hook on each
attention module asks the same module once more, with weights; what the model computes stays what it was.
"""

import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError
from transformer_viz.model import masks
from transformer_viz.terms import Kind
from transformer_viz.tracing.adapters.running import Place, Running
from transformer_viz.tracing.adapters.seen import Given, Seen, numpy

ORDER = 9
"""Where no other adapter knows the model."""
_FORWARD = nn.MultiheadAttention.forward
_SIGNATURE = inspect.signature(_FORWARD)


@dataclass(frozen=True)
class _Call:
    """One call; which kind it is can be told when all are known."""

    module: str
    place: Place
    is_cross: bool
    weights: Tensor
    masked: Tensor

    @property
    def layers(self) -> set[str | Place]:
        """What holds the module: the one around it, and the entry of a list that it is in."""
        return {self.module.rpartition(".")[0], *([self.place] if self.place else [])}


class Watch:
    """The calls of one run, from `watched`."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._calls: list[_Call] = []

    def seen(self, given: Given) -> list[Seen]:
        """All calls with their kinds, told from how the modules are used.

        Queries and keys from different sequences make cross-attention. Self-attention beside cross-attention, in the same
        layer, is the decoder's. In a model without cross-attention causal masks make a decoder, if no source is given too.
        """
        layers_with_cross = {layer for call in self._calls if call.is_cross for layer in call.layers}
        is_causal = not given.has_target and all(masks.hides_future(call.masked) for call in self._calls)
        alone: Kind = "decoder" if not layers_with_cross and (is_causal or not given.has_source) else "encoder"

        def kind(call: _Call) -> Kind:
            return "cross" if call.is_cross else "decoder" if call.layers & layers_with_cross else alone

        return [
            Seen(kind(call), numpy(call.weights), numpy(call.masked), module=call.module, place=call.place)
            for call in self._calls
        ]

    def note(self, module: nn.MultiheadAttention, asked: dict, output: Tensor) -> None:
        """Asks the module again, now with weights for each head."""
        query, key, mask, padding = (asked[name] for name in ("query", "key", "attn_mask", "key_padding_mask"))
        if asked["is_causal"] and padding is None and not asked["need_weights"]:
            # Then torch drops the mask that it was given, and takes the causal one for granted.
            mask = torch.ones(_length(module, query), _length(module, key), dtype=torch.bool, device=query.device).triu(1)
        value = asked["value"]
        _, found = _FORWARD(module, query, key, value, padding, attn_mask=mask, need_weights=True, average_attn_weights=False)
        assert found is not None
        weights = _of_one_sentence(found)
        masked = _masked(mask, padding, weights)
        if bool(output.isfinite().all()):
            # Everything is masked in such a row: the fused kernel gives zeros where an explicit softmax gives NaN.
            weights = weights.masked_fill(masked.expand_as(weights).all(-1, keepdim=True), 0)
        running = self._running
        self._calls.append(_Call(running.innermost, running.place, not _is_self(query, key), weights, masked))


def knows(model: nn.Module) -> bool:
    """Any module may have some."""
    return True


@contextmanager
def watched(model: nn.Module, running: Running, given: Given) -> Generator[Callable[[], list[Seen]]]:
    """Watches every attention module of `model`, and leaves nothing behind; afterwards what it gave says what was seen."""
    watch, handles = Watch(running), []
    was_enabled = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        for name, module in model.named_modules():
            if isinstance(module, nn.MultiheadAttention):
                _check(name, module)
                handles.append(module.register_forward_hook(_hook(watch), with_kwargs=True))
        yield lambda: watch.seen(given)
    finally:
        for handle in handles:
            handle.remove()
        torch.backends.mha.set_fastpath_enabled(was_enabled)


def _hook(watch: Watch):
    mine = threading.get_ident()

    def hook(module: nn.MultiheadAttention, args: tuple, kwargs: dict, output: tuple) -> None:
        if threading.get_ident() != mine:
            return
        bound = _SIGNATURE.bind(module, *args, **kwargs)
        bound.apply_defaults()
        watch.note(module, bound.arguments, output[0])

    return hook


def _check(name: str, module: nn.MultiheadAttention) -> None:
    if type(module).forward is not _FORWARD:
        raise OptionError(
            f"{name} is a {type(module).__name__} with a forward of its own, whose weights are not known; "
            "give its arrays to Trace.from_arrays"
        )
    if module.bias_k is not None or module.add_zero_attn:
        raise OptionError(f"{name} adds a key that is no token (add_bias_kv or add_zero_attn); there is no label for it")


def _length(module: nn.MultiheadAttention, sequence: Tensor) -> int:
    return sequence.shape[1] if sequence.dim() == 3 and module.batch_first else sequence.shape[0]


def _of_one_sentence(weights: Tensor) -> Tensor:
    """(head, query, key)."""
    if weights.dim() == 4 and len(weights) != 1:
        raise OptionError(
            f"the model's attention works on {len(weights)} sentences where one was given; "
            "does the model take (length, batch)? Give the ids as (length, 1)."
        )
    return weights[0] if weights.dim() == 4 else weights


def _masked(mask: Tensor | None, padding: Tensor | None, weights: Tensor) -> Tensor:
    """True = masked: (query, key), or (head, query, key) where the mask had heads."""
    masked = torch.zeros(weights.shape[-2:], dtype=torch.bool, device=weights.device)
    for given in (mask, None if padding is None else padding.reshape(1, -1)):
        if given is not None:
            masked = masked | (given if given.dtype == torch.bool else masks.hidden_by(given))
    return masked


def _is_self(query: Tensor, key: Tensor) -> bool:
    return query is key or (query.shape == key.shape and torch.equal(query, key))
