"""What `torch.nn.MultiheadAttention` does inside any module, `torch.nn.Transformer` among them.

The layers of torch ask for no weights (`need_weights=False`), and in eval mode an encoder layer may skip its
attention module altogether (the fast path). So the fast path is switched off for the run, and a hook on each
attention module asks the same module once more, with weights; what the model computes stays what it was.
"""

import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError
from transformer_viz.model import masks
from transformer_viz.terms import Kind
from transformer_viz.tracing.adapters.attention_calls import AttentionCall, numpy
from transformer_viz.tracing.adapters.running_modules import RunningModules

ORDER = 9
"""Where no other adapter knows the model."""
_FORWARD = nn.MultiheadAttention.forward
_SIGNATURE = inspect.signature(_FORWARD)


def knows(model: nn.Module) -> bool:
    """Any module may have some."""
    return True


@contextmanager
def record_attention(
    model: nn.Module, running: RunningModules, has_source: bool, has_target: bool
) -> Generator[Callable[[], list[AttentionCall]]]:
    """Records every attention module of `model`, and leaves nothing behind; afterwards what it gave returns the calls."""
    calls, handles, mine = list[AttentionCall](), [], threading.get_ident()

    def record(module: nn.MultiheadAttention, args: tuple[Any, ...], kwargs: dict[str, Any], output: tuple[Any, ...]) -> None:
        if threading.get_ident() == mine:
            bound = _SIGNATURE.bind(module, *args, **kwargs)
            bound.apply_defaults()
            calls.append(_recorded(module, bound.arguments, output[0], running))

    was_enabled = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        for name, module in model.named_modules():
            if not isinstance(module, nn.MultiheadAttention):
                continue
            if type(module).forward is not _FORWARD:
                raise OptionError(
                    f"{name} is a {type(module).__name__} with a forward of its own, whose weights are not known; "
                    "give its arrays to Trace.from_arrays"
                )
            if module.bias_k is not None or module.add_zero_attn:
                raise OptionError(
                    f"{name} adds a key that is no token (add_bias_kv or add_zero_attn); there is no label for it"
                )
            handles.append(module.register_forward_hook(record, with_kwargs=True))
        yield lambda: _with_kinds(calls, has_source, has_target)
    finally:
        for handle in handles:
            handle.remove()
        torch.backends.mha.set_fastpath_enabled(was_enabled)


def _recorded(
    module: nn.MultiheadAttention, arguments: dict[str, Any], output: Tensor, running: RunningModules
) -> AttentionCall:
    """Asks the module again, now with weights for each head; which self-attention it is can be told when all are known."""
    query, key, mask, padding = (arguments[name] for name in ("query", "key", "attn_mask", "key_padding_mask"))
    if arguments["is_causal"] and padding is None and not arguments["need_weights"]:
        # Then torch drops the mask that it was given, and takes the causal one for granted.
        n_queries, n_keys = (x.shape[1] if x.dim() == 3 and module.batch_first else x.shape[0] for x in (query, key))
        mask = torch.ones(n_queries, n_keys, dtype=torch.bool, device=query.device).triu(1)
    how: dict[str, Any] = {"attn_mask": mask, "need_weights": True, "average_attn_weights": False}
    _, weights = _FORWARD(module, query, key, arguments["value"], padding, **how)
    assert weights is not None
    if weights.dim() == 4 and len(weights) != 1:
        raise OptionError(
            f"the model's attention works on {len(weights)} sentences where one was given; "
            "does the model take (length, batch)? Give the ids as (length, 1)."
        )
    weights = weights[0] if weights.dim() == 4 else weights
    # (query, key), or (head, query, key) where the mask had heads.
    masked = torch.zeros(weights.shape[-2:], dtype=torch.bool, device=weights.device)
    for given in (mask, None if padding is None else padding.reshape(1, -1)):
        if given is not None:
            masked = masked | (given if given.dtype == torch.bool else masks.hidden_by(given))
    if bool(output.isfinite().all()):
        # Everything is masked in such a row: the fused kernel gives zeros where an explicit softmax gives NaN.
        weights = weights.masked_fill(masked.expand_as(weights).all(-1, keepdim=True), 0)
    is_cross = query is not key and (query.shape != key.shape or not torch.equal(query, key))
    return AttentionCall(
        "cross" if is_cross else "encoder", numpy(weights), numpy(masked), module=running.innermost, place=running.place
    )


def _with_kinds(calls: list[AttentionCall], has_source: bool, has_target: bool) -> list[AttentionCall]:
    """All calls with their kinds, told from how the modules are used.

    Queries and keys from different sequences make cross-attention. Self-attention beside cross-attention, in the same
    layer, is the decoder's. In a model without cross-attention causal masks make a decoder, if no source is given too.
    """

    def layers(call: AttentionCall) -> set[Any]:
        """What holds the module: the one around it, and the entry of a list that it is in."""
        return {call.module.rpartition(".")[0], *([call.place] if call.place else [])}

    with_cross = {layer for call in calls if call.kind == "cross" for layer in layers(call)}
    is_causal = not has_target and all(masks.hides_future(torch.from_numpy(call.masked)) for call in calls)
    alone: Kind = "decoder" if not with_cross and (is_causal or not has_source) else "encoder"
    kinds: list[Kind] = [
        "cross" if call.kind == "cross" else "decoder" if layers(call) & with_cross else alone for call in calls
    ]
    return [replace(call, kind=kind) for call, kind in zip(calls, kinds, strict=True)]
