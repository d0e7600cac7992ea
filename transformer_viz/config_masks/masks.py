"""`masks`: the masks of a Hugging Face model from its configuration alone.

The model is built without its weights and run by its own code, so that its masks are those that transformers makes for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer_viz.config_masks.configuration import model_errors, read_configuration, weightless_model
from transformer_viz.config_masks.inputs import model_inputs, padded, read_rows
from transformer_viz.config_masks.patterns import CAUSAL, FULL, pattern_of, reasons_of
from transformer_viz.config_masks.result import ConfigMasks, LayerMask, Padding
from transformer_viz.config_masks.weightless import Lost, SeenSoftmax, softmaxes
from transformer_viz.errors import ModelError, OptionError, join_names
from transformer_viz.numbers_in_words import count_words
from transformer_viz.readers.huggingface.loading import quiet_transformers
from transformer_viz.terms import KINDS, Kind

_NUMBER = re.compile(r"\.(\d+)\b")
_WINDOWS = ("sliding_window", "attention_chunk_size", "local_attention", "attention_window", "window_size")
"""The names in configurations for how far a layer sees."""
_ATTENTION_AXES = 4
_NO_ATTENTION = "it has no attention with a mask of tokens, so there is nothing to draw"


def masks(
    config: Any,
    texts: str | Sequence[str] | None = None,
    *,
    lengths: int | Sequence[int] | None = None,
    targets: str | Sequence[str] | None = None,
    target_lengths: int | Sequence[int] | None = None,
    padding: Padding | None = None,
    pad_to: int | None = None,
    token_types: Sequence[int] | None = None,
) -> ConfigMasks:
    """Computes the masks that a Hugging Face model of a configuration applies in each of its layers, without its weights.

    Args:
        config: a folder with a `config.json`, a configuration of transformers, or what a `config.json` holds, as a text or as
            plain data.
        texts: to be read by the folder's tokenizer, start and end included; a batch, in which the shorter ones are padded.
        lengths: without texts: so many tokens each; by default 8 and 5.
        targets: with texts, for a decoder with an encoder: what it reads of each; by default as many tokens as the text.
        target_lengths: the same by their lengths; by default those of the sources.
        padding: the side on which shorter texts are padded; by default `left` for a decoder alone and `right` for others.
        pad_to: pad all of them to this length.
        token_types: for a model of pictures: of each token what its processor gives as `token_type_ids` or
            `mm_token_type_ids`, for a text without padding.

    Returns:
        The mask of each layer: `of("decoder.1").masked`, bool (text, query, key), True = masked; `groups` of layers with one
        mask; and by `print` the mask of each group and text.

    Raises:
        ModelError: there is no such configuration, or its masks cannot be read without the weights.
        OptionError: an impossible option.
        InputError: a text that cannot be read.

    Example:
        >>> import transformer_viz as tv
        >>> sizes = {"num_hidden_layers": 6, "sliding_window": 4, "hidden_size": 64, "vocab_size": 100}
        >>> config = {"model_type": "gemma3_text", **sizes}
        >>> found = tv.masks(config, lengths=[8, 5])
        >>> [group.title for group in found.groups]
        ['decoder, layers 1 to 5: causal, a window of 4', 'decoder, layer 6: causal']
        >>> found.of("decoder.1").masked.shape  # (text, query, key)
        (2, 8, 8)
    """
    name, read, folder = read_configuration(config)
    with quiet_transformers(), model_errors(name):
        model = weightless_model(read, name)
        sides = read_rows(model, folder, texts, lengths, targets, target_lengths)
        both = bool(read.is_encoder_decoder)
        kinds = _kinds_of_two(model) if both else _kind_of_one(model)
        side: Padding = padding or ("left" if set(kinds) == {"decoder"} else "right")
        if side not in ("left", "right"):
            raise OptionError(f"padding={side!r} is not possible; choose left or right")
        ids, labels = zip(*(padded(rows, of, side, pad_to) for rows, of in sides), strict=True)
        paddings = [is_padding for _, is_padding in ids]
        inputs = model_inputs(model, [tensor for tensor, _ in ids], paddings, token_types, side)
        calls = _calls(model, inputs)
        layers = list(_layers(kinds, calls, paddings))
        layers = _with_unreached_windows(layers, kinds, read, name, inputs, paddings)
    return ConfigMasks(
        name=name,
        family=str(read.model_type),
        model_class=type(model).__name__,
        padding=side,
        tokens=labels[0],
        targets=labels[1] if both else (),
        layers=tuple(sorted(layers, key=lambda one: (KINDS.index(one.kind), one.layer))),
        notes=tuple(_notes(read, layers)),
    )


def _calls(model: nn.Module, inputs: Mapping[str, Tensor]) -> list[SeenSoftmax]:
    """The calls of attention in one pass."""
    options = {"use_cache": False} if "use_cache" in signature(model.forward).parameters else {}
    sizes = {tensor.shape[1] for name, tensor in inputs.items() if name.endswith("input_ids")}
    batch = inputs["input_ids"].shape[0]
    calls = []
    for call in softmaxes(model, **inputs, **options):
        shape = call.shape
        if len(shape) == _ATTENTION_AXES - 1 and shape[0] != batch and shape[0] % batch == 0 and {*shape[-2:]} <= sizes:
            # Sentences and heads in one axis, as older families have them.
            masked = call.masked
            if isinstance(masked, Tensor):
                masked = masked.expand(shape).reshape(batch, -1, *shape[-2:])
            calls.append(SeenSoftmax(call.modules, call.turn, (batch, shape[0] // batch, *shape[-2:]), masked))
        elif len(shape) == _ATTENTION_AXES:
            calls.append(call)
        elif len(shape) > _ATTENTION_AXES:
            raise ModelError("its attention works on parts of the text (a softmax over five axes), which no mask shows")
    return calls


def _kind_of_one(model: nn.Module) -> list[Kind]:
    """The kind of each call of a model with one stack: whether it hides the future, a pass over three tokens shows."""
    n = 3
    ids = torch.zeros(1, n, dtype=torch.long)
    calls = _calls(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    if not calls:
        raise ModelError(_NO_ATTENTION)
    is_decoder = False
    for call in calls:
        if isinstance(call.masked, Tensor) and call.shape[-1] >= n:
            first = call.masked.expand(call.shape)[..., 0, :n]
            is_decoder |= bool(first[..., 1:].all())
        is_decoder |= isinstance(call.masked, Lost)
    return ["decoder" if is_decoder else "encoder"] * len(calls)


def _kinds_of_two(model: Any) -> list[Kind]:
    """The kind of each call of an encoder-decoder, told by a pass over sides of different lengths."""
    n_source, n_target = 5, 3
    inputs = {}
    for name, n in (("", n_source), ("decoder_", n_target)):
        inputs |= {f"{name}input_ids": torch.zeros(1, n, dtype=torch.long), f"{name}attention_mask": torch.ones(1, n).long()}
    encoder = model.get_encoder()
    within = {name for name, module in model.named_modules() if module is encoder}
    kinds: list[Kind] = []
    for call in _calls(model, inputs):
        if within & set(call.modules):
            kinds.append("encoder")
        elif call.shape[-2:] == (n_target, n_source):
            kinds.append("cross")
        elif call.shape[-2:] == (n_target, n_target):
            kinds.append("decoder")
        else:
            raise ModelError("one attention of its goes over the source and what is written together")
    if not kinds:
        raise ModelError(_NO_ATTENTION)
    return kinds


def _places(kinds: Sequence[Kind], calls: Sequence[SeenSoftmax]) -> list[tuple[Kind, int]]:
    """Kind and layer of each call of attention. Layers that share a module, or have no number in its name, count as they come;
    two softmaxes in one run of a module are of one layer."""
    if len(kinds) != len(calls):
        raise ModelError("it calls its attention in another order for texts of other lengths")
    places = list[tuple[Kind, int]]()
    taken: dict[Kind, tuple[int, int]] = {}
    for kind, call in zip(kinds, calls, strict=True):
        last, turn = taken.get(kind, (-1, -1))
        match = _NUMBER.search(call.modules[-1])
        layer = last if turn == call.turn else max(last + 1, int(match[1])) if match else last + 1
        taken[kind] = layer, call.turn
        places.append((kind, layer))
    return places


def _layers(kinds: Sequence[Kind], calls: Sequence[SeenSoftmax], paddings: Sequence[Tensor]) -> Iterator[LayerMask]:
    source, target = paddings[0], paddings[-1]
    before: LayerMask | None = None
    for (kind, layer), call in zip(_places(kinds, calls), calls, strict=True):
        place = f"its {kind} attention in layer {layer + 1}"
        queries, keys = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}[kind]
        n_queries, n_keys = queries.shape[1], keys.shape[1]
        if isinstance(call.masked, Lost):
            raise ModelError(f"the mask of {place} is not known: {call.masked.why}")
        # A learned sink is one key more, which is no token.
        if call.shape[-2] != n_queries or call.shape[-1] not in (n_keys, n_keys + 1):
            had = f"{call.shape[-2]} queries and {call.shape[-1]} keys for {n_queries} and {n_keys} tokens"
            raise ModelError(f"{place} has {had}, so that no mask of tokens shows it")
        masked = torch.zeros(call.shape, dtype=torch.bool) if call.masked is None else call.masked.expand(call.shape)
        masked = masked[..., :n_keys]
        if not bool((masked == masked[:, :1]).all()):
            raise ModelError(f"{place} has a mask of its own in each head")
        cells, padded = masked[:, 0].numpy(), (queries.numpy(), keys.numpy())
        pattern = pattern_of(kind, cells, *padded)
        now = LayerMask(kind, layer, pattern, reasons_of(kind, pattern, cells, padded[1]))
        if before is not None and (before.kind, before.layer) == (kind, layer):
            if not np.array_equal(before.masked, now.masked):
                raise ModelError(f"{place} takes more than one softmax, each with another mask")
            continue
        before = now
        yield now


def _with_unreached_windows(
    layers: list[LayerMask],
    kinds: Sequence[Kind],
    config: Any,
    name: str,
    inputs: Mapping[str, Tensor],
    paddings: Sequence[Tensor],
) -> list[LayerMask]:
    """The layers with what a window or chunk would do to longer texts: those whose mask another size of it changes."""
    longest = max(tensor.shape[1] for tensor in paddings)
    small, windows = deepcopy(config), list[int]()
    for part in {id(one): one for one in (small, small.get_text_config(), *_parts(small))}.values():
        for setting in _WINDOWS:
            size = None
            with suppress(Exception):  # some have another in each layer
                size = getattr(part, setting, None)
            if type(size) is int and size > longest:
                setattr(part, setting, 2)
                windows.append(size)
    if not windows or longest < 4:
        return layers
    try:
        model = weightless_model(small, name)
        others = list(_layers(kinds, _calls(model, inputs), paddings))
    except Exception:
        return layers  # it takes no other size: nothing is learnt
    sizes = f"{min(windows):,}" if len({*windows}) == 1 else join_names(sorted(f"{size:,}" for size in {*windows}))
    named = []
    for one, other in zip(layers, others, strict=True):
        is_near = one.pattern in (CAUSAL, FULL) and not np.array_equal(one.masked, other.masked)
        unreached = f"chunks of {sizes} are" if "chunk" in other.pattern else f"a window of {sizes} is"
        pattern = f"{one.pattern}, {unreached} not reached"
        named.append(LayerMask(one.kind, one.layer, pattern, one.reasons) if is_near else one)
    return named


def _parts(config: Any) -> list[Any]:
    return [part for name in config.sub_configs if (part := getattr(config, name, None)) is not None]


def _notes(config: Any, layers: Sequence[LayerMask]) -> Iterator[str]:
    n_layers = getattr(config.get_text_config(), "num_hidden_layers", None)
    n_seen = len({one.layer for one in layers if one.kind != "encoder"} or {one.layer for one in layers})
    if isinstance(n_layers, int) and n_layers > n_seen and not config.is_encoder_decoder:
        yield f"{count_words(n_layers - n_seen, 'layer')} of {n_layers} have no attention with a mask, and are left out."
