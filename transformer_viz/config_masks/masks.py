"""`masks`: the masks of a Hugging Face model from its configuration alone.

The model is built without its weights and run by its own code, so that its masks are those that transformers makes for it.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer_viz import untrusted_files
from transformer_viz.config_masks.patterns import CAUSAL, FULL, pattern_of, reasons_of
from transformer_viz.config_masks.result import PAD, ConfigMasks, LayerMask, Padding
from transformer_viz.config_masks.weightless import Lost, SeenSoftmax, build, softmaxes
from transformer_viz.errors import InputError, ModelError, OptionError, TransformerVizError, join_names, short_repr
from transformer_viz.model import devices
from transformer_viz.numbers_in_words import count_words
from transformer_viz.readers.huggingface import bounds
from transformer_viz.readers.huggingface.folder import name_of
from transformer_viz.readers.huggingface.loading import quiet_transformers
from transformer_viz.readers.huggingface.tokenizer import HuggingFaceTokenizer
from transformer_viz.schema import whole_number
from transformer_viz.terms import KINDS, Kind
from transformer_viz.text_display import shorten
from transformer_viz.tracing.tokenize_batch import padded_batch

MOST_TEXTS, LONGEST, DEFAULT_LENGTHS = 8, 512, (8, 5)
_LARGEST_CONFIG, _MOST_EXPERTS = 2**20, 1024
_NUMBER = re.compile(r"\.(\d+)\b")
_WINDOWS = ("sliding_window", "attention_chunk_size", "local_attention", "attention_window", "window_size")
"""What configurations call how far a layer sees."""
_TYPES = ("mm_token_type_ids", "token_type_ids")
"""What models call the kinds of tokens that a processor tells them: of text, of a picture."""
_ATTENTION_AXES = 4
_NO_ATTENTION = "it has no attention with a mask of tokens, so there is nothing to draw"
_INSTALL = "Such models need: pip install 'transformers>=5.23,<6' sentencepiece"


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
    """The masks that a Hugging Face model of a configuration applies in each of its layers, without its weights.

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

    Raises:
        ModelError: there is no such configuration, or its masks cannot be read without the weights.
        OptionError: an impossible option.
        InputError: a text that cannot be read.
    """
    name, read, folder = _configuration(config)
    with quiet_transformers(), _errors(name):
        model = _weightless_model(read, name)
        sides = _rows(model, folder, texts, lengths, targets, target_lengths)
        both = bool(read.is_encoder_decoder)
        kinds = _kinds_of_two(model) if both else _kind_of_one(model)
        side: Padding = padding or ("left" if set(kinds) == {"decoder"} else "right")
        if side not in ("left", "right"):
            raise OptionError(f"padding={side!r} is not possible; choose left or right")
        ids, labels = zip(*(_batch(rows, of, side, pad_to) for rows, of in sides), strict=True)
        paddings = [is_padding for _, is_padding in ids]
        inputs = _inputs(model, [tensor for tensor, _ in ids], paddings, token_types, side)
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


# ---- the configuration and its model


def _configuration(config: Any) -> tuple[str, Any, Path | None]:
    """The name of a configuration, what transformers makes of it, and its folder."""
    try:
        from transformers import CONFIG_MAPPING, PreTrainedConfig
    except ImportError as error:
        raise ModelError(f"transformers is not installed. {_INSTALL}") from error
    if isinstance(config, PreTrainedConfig):
        return str(config.model_type), deepcopy(config), None
    folder, name = None, "the configuration"
    if isinstance(config, str) and config.lstrip().startswith("{"):
        try:
            read = untrusted_files.parse_json(config)
        except TransformerVizError as error:
            raise OptionError(f"the configuration cannot be read: {error}. Give the whole content of a config.json.") from error
    elif isinstance(config, str | PathLike):
        folder = Path(config)
        folder = folder.parent if folder.name == "config.json" else folder
        name = name_of(folder) or str(folder)
        try:
            read = untrusted_files.read_json(folder / "config.json", _LARGEST_CONFIG)
        except (TransformerVizError, OSError) as error:
            words = "there is no config.json that can be read. Give the folder of a Hugging Face model."
            raise ModelError(f"{name}: {words}") from error
    else:
        read = config
    if not isinstance(read, Mapping):
        raise OptionError(
            f"a folder with a config.json, its content or a configuration of transformers is needed, not {type(read).__name__}"
        )
    family = read.get("model_type")
    if family is None:
        raise ModelError(
            f"{name}: it has no model_type, which names the family. It stands in a Hugging Face model's config.json."
        )
    if not isinstance(family, str) or family not in CONFIG_MAPPING:
        words = f"model_type is {shorten(str(family), 60)!r}, which this version of transformers does not know"
        raise ModelError(f"{name}: {words}. Give a family of docs/families.md, or install a later transformers.")
    _check(read, name)
    # Older files name no layers, where a family has come to have two kinds of them (as in loading).
    made = "ministral" if family == "mistral" and "layer_types" in read else family
    with _errors(name):
        return name, CONFIG_MAPPING[made].from_dict(dict(bounds.without_implementations(dict(read)))), folder


def _check(read: Mapping[str, Any], name: str) -> None:
    """Refuses what would run other code, or make more modules than any model has."""
    bounds.check_config(read, None, name)
    for key, value in bounds.settings(read):
        if isinstance(value, int) and "expert" in key and value > _MOST_EXPERTS:
            raise ModelError(f"{name}: it sets {short_repr(key)} to {value:,}; at most {_MOST_EXPERTS:,} are possible.")


def _weightless_model(config: Any, name: str) -> nn.Module:
    """The model that writes or fills in, with its authors' own attention, in eval mode on the device "meta"."""
    kind = _class_of(config, name)
    return build(lambda: kind.from_config(deepcopy(config), **_EAGER))


_EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}


def _class_of(config: Any, name: str) -> Any:
    import transformers as hf

    choices = (
        (hf.AutoModelForSeq2SeqLM, hf.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, config.is_encoder_decoder),
        (hf.AutoModelForMaskedLM, hf.MODEL_FOR_MASKED_LM_MAPPING, not getattr(config, "is_decoder", False)),
        (hf.AutoModelForCausalLM, hf.MODEL_FOR_CAUSAL_LM_MAPPING, True),
        (hf.AutoModelForImageTextToText, hf.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, True),
        (hf.AutoModel, hf.MODEL_MAPPING, True),
    )
    for kind, mapping, is_it in choices:
        if is_it and type(config) in mapping:
            return kind
    raise ModelError(f"{name}: the family {config.model_type!r} has no model that reads text.")


@contextmanager
def _errors(name: str) -> Generator[None]:
    """Whatever transformers raises, in one line."""
    try:
        yield
    except TransformerVizError as error:
        if isinstance(error, ModelError) and not str(error).startswith(name):
            raise ModelError(f"{name}: {error}") from error
        raise
    except Exception as error:
        if devices.is_out_of_memory(error):
            raise
        words = f"{type(error).__name__}: {shorten(' '.join(str(error).split()), 200)}"
        advice = "Set right what its settings ask for that is not possible, or give the config.json of a published model."
        raise ModelError(f"{name}: its masks cannot be read from the configuration alone ({words}). {advice}") from error


# ---- what is read


def _rows(
    model: nn.Module,
    folder: Path | None,
    texts: str | Sequence[str] | None,
    lengths: int | Sequence[int] | None,
    targets: str | Sequence[str] | None,
    target_lengths: int | Sequence[int] | None,
) -> list[tuple[list[list[int]], Any]]:
    """The ids of each side, and what labels them; None for numbers."""
    config: Any = model.config
    both = config.is_encoder_decoder
    if texts is not None and lengths is not None:
        raise OptionError("texts and lengths cannot be given together; give one of them")
    if not both and (targets is not None or target_lengths is not None):
        raise OptionError(f"targets are of a decoder with an encoder; a {type(model).__name__} has none")
    if targets is not None and texts is None:
        raise OptionError("targets are texts, which need texts to be read beside; give target_lengths beside lengths")
    if texts is None:
        counts = _counts("lengths", DEFAULT_LENGTHS if lengths is None else lengths)
        sides = [(_numbered(counts, config), None)]
    else:
        tokenizer = _tokenizer(folder)
        read = [texts] if isinstance(texts, str) else list(texts)
        _check_number("texts", len(read))
        sides = [([tokenizer.encode_source(text)[:LONGEST] for text in read], tokenizer)]
    if not both:
        return sides
    n, tokenizer = len(sides[0][0]), sides[0][1]
    if targets is not None and tokenizer is not None:
        written = [targets] if isinstance(targets, str) else list(targets)
        rows = [_started(tokenizer.encode_target(text), config)[:LONGEST] for text in written]
        other: tuple[list[list[int]], Any] = (rows, tokenizer)
    else:
        given = [len(row) for row in sides[0][0]] if target_lengths is None else _counts("target_lengths", target_lengths)
        other = (_numbered(given, config), None)
    if len(other[0]) != n:
        raise OptionError(f"{n} sources and {len(other[0])} targets are given; give one target for each source")
    return [*sides, other]


def _counts(name: str, lengths: int | Sequence[int]) -> list[int]:
    counts = [lengths] if isinstance(lengths, int) else list(lengths)
    _check_number(name, len(counts))
    return [whole_number(name, count, 1, LONGEST) for count in counts]


def _check_number(name: str, n: int) -> None:
    if not 1 <= n <= MOST_TEXTS:
        raise OptionError(f"{name} has {n} entries; 1 to {MOST_TEXTS} are possible")


def _numbered(counts: Sequence[int], config: Any) -> list[list[int]]:
    """Ids that stand for any token: no pad, no start and no picture. Which ones no mask depends on."""
    special = {
        value for key, value in config.to_dict().items() if key.endswith(("token_id", "token_index")) and type(value) is int
    }
    size = int(getattr(config.get_text_config(), "vocab_size", None) or 100)
    real = next((number for number in range(min(3, size - 1), size) if number not in special), 0)
    return [[real] * count for count in counts]


def _started(ids: list[int], config: Any) -> list[int]:
    start = getattr(config, "decoder_start_token_id", None)
    return ids if start is None else [start, *ids]


def _tokenizer(folder: Path | None) -> HuggingFaceTokenizer:
    if folder is None:
        raise OptionError("texts need the folder of a model, where its tokenizer is; give lengths for a configuration alone")
    from transformers import AutoTokenizer

    try:
        return HuggingFaceTokenizer.of(AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False))
    except Exception as error:
        raise InputError(
            f"{name_of(folder)} has no tokenizer that can be read ({shorten(str(error), 120)}). Give lengths instead of texts."
        ) from error


def _batch(rows: list[list[int]], tokenizer: Any, side: Padding, pad_to: int | None) -> tuple[tuple[Tensor, Tensor], Any]:
    longest = max(map(len, rows))
    width = longest if pad_to is None else whole_number("pad_to", pad_to, longest, LONGEST)
    ids, is_padding = padded_batch(rows, rows[0][0], width, on_left=side == "left")
    labels = []
    for row in rows:
        own = [str(number) for number in range(1, len(row) + 1)] if tokenizer is None else [tokenizer.label(i) for i in row]
        pads = [PAD] * (width - len(row))
        labels.append(tuple([*pads, *own] if side == "left" else [*own, *pads]))
    return (ids, is_padding.bool()), tuple(labels)


def _inputs(
    model: nn.Module, ids: Sequence[Tensor], paddings: Sequence[Tensor], token_types: Sequence[int] | None, side: Padding
) -> dict[str, Tensor]:
    """What the model is given: ids, the attention mask, and the kinds of tokens."""
    from inspect import signature

    config: Any = model.config
    pad = next((n for n in (getattr(config, "pad_token_id", None),) if isinstance(n, int)), None)
    filled = [
        tensor if pad is None else tensor.masked_fill(padding, pad) for tensor, padding in zip(ids, paddings, strict=True)
    ]
    inputs = {"input_ids": filled[0], "attention_mask": (~paddings[0]).long()}
    if len(filled) > 1:
        inputs |= {"decoder_input_ids": filled[1], "decoder_attention_mask": (~paddings[1]).long()}
    known = signature(model.forward).parameters
    if token_types is not None:
        name = next((name for name in _TYPES if name in known), None)
        if name is None or not _reads_pictures(config):
            raise OptionError(f"token_types are of a model that reads pictures; a {type(model).__name__} has none")
        n = int((~paddings[0]).sum(1).max())
        if len(token_types) != n or not all(isinstance(kind, int) and 0 <= kind <= 2 for kind in token_types):
            raise OptionError(f"token_types has {len(token_types)} entries; {n} are needed, each 0, 1 or 2, one for each token")
        types = torch.zeros_like(filled[0])
        for row, padding in enumerate(paddings[0]):
            real = ~padding
            types[row, real] = torch.tensor(token_types[: int(real.sum())], dtype=types.dtype)
        inputs[name] = types
    return {name: tensor for name, tensor in inputs.items() if name in known}


def _reads_pictures(config: Any) -> bool:
    return any(getattr(config, f"{what}_token_{end}", None) is not None for what in ("image",) for end in ("id", "index"))


# ---- what the model does


def _calls(model: nn.Module, inputs: Mapping[str, Tensor]) -> list[SeenSoftmax]:
    """The calls of attention in one pass."""
    options = {"use_cache": False} if "use_cache" in _parameters(model) else {}
    sizes = {tensor.shape[1] for name, tensor in inputs.items() if name.endswith("input_ids")}
    batch = inputs["input_ids"].shape[0]
    found = []
    for call in softmaxes(model, **inputs, **options):
        shape = call.shape
        if len(shape) == _ATTENTION_AXES - 1 and shape[0] != batch and shape[0] % batch == 0 and {*shape[-2:]} <= sizes:
            # Sentences and heads in one axis, as older families have them.
            masked = call.masked
            if isinstance(masked, Tensor):
                masked = masked.expand(shape).reshape(batch, -1, *shape[-2:])
            found.append(SeenSoftmax(call.modules, call.turn, (batch, shape[0] // batch, *shape[-2:]), masked))
        elif len(shape) == _ATTENTION_AXES:
            found.append(call)
        elif len(shape) > _ATTENTION_AXES:
            raise ModelError("its attention works on parts of the text (a softmax over five axes), which no mask shows")
    return found


def _parameters(model: nn.Module) -> Mapping[str, Any]:
    from inspect import signature

    return signature(model.forward).parameters


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
    small, found = deepcopy(config), list[int]()
    for part in {id(one): one for one in (small, small.get_text_config(), *_parts(small))}.values():
        for setting in _WINDOWS:
            size = None
            with suppress(Exception):  # some have another in each layer
                size = getattr(part, setting, None)
            if type(size) is int and size > longest:
                setattr(part, setting, 2)
                found.append(size)
    if not found or longest < 4:
        return layers
    try:
        model = _weightless_model(small, name)
        others = list(_layers(kinds, _calls(model, inputs), paddings))
    except Exception:
        return layers  # it takes no other size: nothing is learnt
    sizes = f"{min(found):,}" if len({*found}) == 1 else join_names(sorted(f"{size:,}" for size in {*found}))
    named = []
    for one, other in zip(layers, others, strict=True):
        what = "chunks" if "chunk" in other.pattern else "window"
        is_near = one.pattern in (CAUSAL, FULL) and not np.array_equal(one.masked, other.masked)
        pattern = (
            f"{one.pattern}, a window of {sizes} is not reached"
            if what == "window"
            else f"{one.pattern}, chunks of {sizes} are not reached"
        )
        named.append(LayerMask(one.kind, one.layer, pattern, one.reasons) if is_near else one)
    return named


def _parts(config: Any) -> list[Any]:
    return [part for name in config.sub_configs if (part := getattr(config, name, None)) is not None]


def _notes(config: Any, layers: Sequence[LayerMask]) -> Iterator[str]:
    n_layers = getattr(config.get_text_config(), "num_hidden_layers", None)
    n_seen = len({one.layer for one in layers if one.kind != "encoder"} or {one.layer for one in layers})
    if isinstance(n_layers, int) and n_layers > n_seen and not config.is_encoder_decoder:
        yield f"{count_words(n_layers - n_seen, 'layer')} of {n_layers} have no attention with a mask, and are left out."
