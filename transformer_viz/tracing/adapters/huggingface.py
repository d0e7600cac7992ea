"""Records the attention inside a Hugging Face model, for every family that calls it through their `AttentionInterface`.

Their default kernel computes no weights, and returns none without an error. For the run ours stands in its place, as it does
for good in a model that is loaded (`readers/huggingface/attention.py`): every call is told to the run that it belongs to. What
does not pass through their interface is seen by torch's operators, and named.
"""

import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path, PureWindowsPath
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError
from transformer_viz.model import masks
from transformer_viz.readers.huggingface import attention
from transformer_viz.readers.huggingface.attention import Call
from transformer_viz.readers.huggingface.loading import quiet_transformers
from transformer_viz.readers.modules.kinds import Unseen
from transformer_viz.readers.modules.operators import OperatorTap, is_parameter
from transformer_viz.readers.modules.passes import prepared
from transformer_viz.readers.modules.running import RunningModules
from transformer_viz.terms import Kind
from transformer_viz.tracing.adapters.attention_calls import AttentionCall, Recorded, numpy
from transformer_viz.tracing.adapters.labels import padding

INSTALL = "pip install 'transformers>=5.23,<6'"
_SECOND_SEQUENCE = ("key_value_states", "encoder_hidden_states")
"""The parameters through which the attention modules of transformers take the source in cross-attention."""
_TOLERANCE = 1e-2
"""The tolerance between an output and the weighted values, as a share of its largest number, since half precision rounds."""


def install_hint() -> str:
    """The line that installs transformers, where it is not installed."""
    try:
        is_there = find_spec("transformers") is not None
    except (ImportError, ValueError):
        is_there = False
    return "" if is_there else f" A Hugging Face model needs transformers: {INSTALL}"


def pretrained(model: nn.Module) -> Any | None:
    """The Hugging Face model in `model`, or None. Nothing is imported that is not there already.

    Raises:
        OptionError: it is one, of a version of transformers without the interface.
    """
    if "transformers" not in sys.modules:
        return None
    try:
        from transformers import PreTrainedModel

        attention.interfaces()
    except ImportError as error:
        if not type(model).__module__.startswith("transformers."):
            return None
        raise OptionError(f"a Hugging Face model needs another version of transformers ({error}): {INSTALL}") from error
    return next((module for module in model.modules() if isinstance(module, PreTrainedModel)), None)


def call_model(model: Any, source: Tensor | None, target: Tensor | None, pad_id: int | None) -> Any:
    """Runs a model as its documentation says, with the padding of both sides masked."""

    def real(name: str, ids: Any, *, everywhere: bool = True) -> dict[str, Tensor]:
        is_pad = padding(ids, pad_id, everywhere=everywhere)
        return {name: (~is_pad).long()} if is_pad.any() else {}

    if not model.config.is_encoder_decoder:
        ids = source if target is None else target
        return model(input_ids=ids, **real("attention_mask", ids))
    if source is None or target is None:
        raise OptionError(f"{type(model).__name__} has an encoder and a decoder; give source_ids and target_ids")
    options = real("attention_mask", source) | real("decoder_attention_mask", target, everywhere=False)
    return model(input_ids=source, decoder_input_ids=target, **options)


def name_of(model: Any) -> str:
    """Its name on the hub, or that of the folder that it was loaded from: never a path of this machine."""
    given = str(getattr(model.config, "name_or_path", None) or "")
    if not given or (re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", given) and not Path(given).exists()):
        return given
    # Also cuts at "/"; the path may be one of another machine.
    name = PureWindowsPath(given).name
    return Path(given).resolve().name if name in ("", "..") else name


def encoder_modules(inner: Any) -> set[int]:
    """The ids of all modules of the encoder, in a model that has a decoder too."""
    return {id(module) for module in inner.get_encoder().modules()} if inner.config.is_encoder_decoder else set()


def record(
    model: nn.Module, source: Tensor | None, target: Tensor | None, pad_id: int | None, call: Callable[..., Any] | None
) -> Recorded:
    """Records every attention call of the Hugging Face model in `model`, and leaves nothing behind."""
    inner: Any = pretrained(model)
    names = {id(module): name for name, module in inner.named_modules()}
    encoder, has_both = encoder_modules(inner), inner.config.is_encoder_decoder
    running = RunningModules(model)
    tap = OperatorTap(running)
    recorded, softmax_numbers = Recorded(None, [], (), {}), set[int]()

    def record_call(call: Call) -> None:
        module, weights = call.module, call.weights
        if len(weights) != 1:
            raise OptionError(f"the model's attention works on {len(weights)} sentences where one was given")
        if (softmax := tap.softmax_of(weights)) is not None:
            softmax_numbers.add(softmax.number)
            recorded.softmax_columns[running.innermost] = softmax.shape[-1]
        masked = call.masked.expand(weights.shape)[0]
        is_causal = getattr(module, "is_causal", None)
        # Cross-attention is given a second sequence. Where there is no such parameter, it is what is not causal in the decoder
        # of a model with both.
        if second := running.given(_SECOND_SEQUENCE):
            is_cross = second[0] is not None
        else:
            is_cross = (has_both and is_causal is False) or "cross" in names.get(id(module), "").lower()
        kind: Kind = "encoder"
        if id(module) not in encoder:
            is_decoder = has_both or (masks.hides_future(masked) if is_causal is None else bool(is_causal))
            kind = "cross" if is_cross else "decoder" if is_decoder else "encoder"
        where = {"module": running.innermost, "place": running.place}
        is_applied = call.is_applied(_TOLERANCE)
        recorded.calls.append(AttentionCall(kind, numpy(weights[0]), numpy(masked), **where, is_applied=is_applied))

    attention.register()
    with (
        prepared(model),
        torch.no_grad(),
        _our_attention_in(model),
        attention.observe_attention(record_call),
        running.followed(),
        tap,
    ):
        if call is None and inner is model:
            returned = call_model(inner, source, target, pad_id)
        else:
            returned = (call or model)(*(ids for ids in (source, target) if ids is not None))
    others = {
        softmax.module: softmax.fault or "it does not call transformers' attention interface"
        for softmax in tap.seen.softmaxes
        if softmax.number not in softmax_numbers
        and softmax.value is not None
        and softmax.n_free > 1
        and not is_parameter(softmax.value)
    }
    others |= tap.seen.unseen
    found = {call.module for call in recorded.calls}
    modules = dict(model.named_modules())
    unseen = [
        Unseen(name, why, "encoder" if id(modules[name]) in encoder else None)
        for name, why in others.items()
        if name not in found
    ]
    return replace(
        recorded, returned=returned, unseen=(*unseen, *_silent_stacks(model, inner, running, recorded.calls, unseen))
    )


def _silent_stacks(
    model: nn.Module, inner: Any, running: RunningModules, calls: Sequence[AttentionCall], unseen: Sequence[Unseen]
) -> list[Unseen]:
    """The encoder or decoder that ran although no attention of some kind was recorded in it."""
    if not inner.config.is_encoder_decoder:
        return []
    stacks: dict[int, tuple[Kind, ...]] = {id(inner.get_encoder()): ("encoder",), id(inner.get_decoder()): ("decoder", "cross")}
    return [
        Unseen(name, "none of it was seen", kind)
        for name, module in model.named_modules()
        if name in running.ran and not any(other.module.startswith(f"{name}.") for other in unseen)
        for kind in stacks.get(id(module), ())
        if kind not in {call.kind for call in calls}
    ]


@contextmanager
def _our_attention_in(model: nn.Module) -> Generator[None]:
    """Puts our attention everywhere in `model`; afterwards the previous one, which their setter alone may not restore.

    Every configuration is set, since the parts of a composed model keep copies of their own.
    """
    from transformers import PreTrainedConfig, PreTrainedModel

    def configs(config: Any) -> Iterator[Any]:
        if isinstance(config, PreTrainedConfig):
            yield config
            for name in config.sub_configs:
                yield from configs(getattr(config, name, None))

    owned = (config for module in model.modules() for config in configs(getattr(module, "config", None)))
    before = [(config, dict(vars(config))) for config in owned]
    try:
        # Each model by itself: one whose class was written at a prompt cannot be set, with a warning, and what is in it can.
        with quiet_transformers():
            for module in model.modules():
                if isinstance(module, PreTrainedModel):
                    module.set_attn_implementation(attention.NAME)
        changed = {name: value for config, old in before for name, value in vars(config).items() if old.get(name) is not value}
        for config, _ in before:
            vars(config).update(changed)
        yield
    finally:
        for config, settings in before:
            vars(config).update(settings)
