"""Attention of a model that is not ours: any module, or a Hugging Face model.

One forward pass over a source and a target (teacher forcing) is recorded: the weights of every layer and head as they were
applied, and the masks. A Hugging Face model tells of its attention by transformers' own interface; all other attention is seen
at the level of torch's operators. The model is left as it was, also when the pass fails.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError, join_names
from transformer_viz.readers.modules.kinds import Found, Unseen, find_attention
from transformer_viz.readers.modules.passes import Call, Pass, Passes
from transformer_viz.schema import whole_number
from transformer_viz.terms import KINDS
from transformer_viz.trace.arrays import explained
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing import token_ranks
from transformer_viz.tracing.adapters import huggingface
from transformer_viz.tracing.adapters.attention_calls import AttentionCall, Recorded, check_calls, layers_by_kind
from transformer_viz.tracing.adapters.labels import Vocabulary, check_labels, flat, ids_of, labels_of, padding

_MOST_NAMES = 3


def trace_module(
    model: nn.Module,
    source_ids: Any = None,
    target_ids: Any = None,
    *,
    source_tokens: Iterable[str] | None = None,
    target_tokens: Iterable[str] | None = None,
    output_ids: Any = None,
    vocabulary: Vocabulary | None = None,
    pad_id: int | None = None,
    call: Call | None = None,
    logits: bool | None = None,
    candidates: int = 10,
    allow_missing: Iterable[str] = (),
) -> Trace:
    """Runs a model once over given ids and records every attention and mask.

    Args:
        model: any module with attention in it, however that is written; or a Hugging Face model (BART, Marian, T5, GPT-2, BERT
            and others that use their attention interface).
        source_ids: what the encoder reads: (length,), (1, length), or (length, 1) for a model that takes the length first,
            which is also tried by itself.
        target_ids: what the decoder reads, its start symbol first. None for an encoder alone; for a decoder alone
            give these and no source.
        source_tokens: a label for each source id.
        target_tokens: a label for each target id.
        output_ids: what should be written from each target position. By default the next target id, and after the
            last one the id that the model finds most probable.
        vocabulary: tokens by id (list or dict), or a tokenizer; it labels ids that have no label. Without it the id does.
        pad_id: which id is padding; by default that of a Hugging Face model's configuration. A Hugging Face model is
            given the matching masks, any other module makes its own.
        call: a function of the ids that are not None that runs the model, if not `model(source_ids, target_ids)`.
        logits: whether the model returns logits. By default only where that is certain: Hugging Face's `.logits`, or as
            many columns as `vocabulary` has tokens. Without logits the steps have no probabilities.
        candidates: how many of the most probable tokens each step keeps.
        allow_missing: attention that may be missing from the Trace, because the model computes it in a way that cannot be
            recorded: kinds (`"encoder"`), or names of modules, with everything inside them. `made_by["not_seen"]` lists it.

    A module that is not of Hugging Face is run two or three times more, with a target and a source that are one token shorter:
    which rows and columns change says which attention is the encoder's, the decoder's, or cross-attention.

    Layers are numbered as in the model's `nn.ModuleList`. Where layers without attention lie between them, as in Qwen3-Next
    and Jamba, `Attention.layers` has the numbers.

    The run is in eval mode without gradients. While it lasts, torch's fast path is off in this process, and another
    thread that runs the same Hugging Face model gets the eager attention.

    Returns:
        A Trace of the pass.

    Raises:
        OptionError: an impossible keyword, a model that fails, one whose attention cannot be recorded completely, or one
            whose rows of weights do not sum to 1.
        ModelError: a module of a Hugging Face model has no eager attention, where attention is recorded.
        TraceError: attention that does not fit the tokens.

    Example:
        >>> import torch
        >>> import transformer_viz as tv
        >>> class Reads(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embedding, self.output = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 9)
        ...         self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        ...     def forward(self, ids):
        ...         x = self.embedding(ids)
        ...         return self.output(x + self.attention(x, x, x)[0])
        ...
        >>> trace = tv.trace_module(Reads().eval(), [1, 2, 3])
        >>> trace.kinds, trace.attentions[trace.kinds[0]].weights.shape
        (('encoder',), (1, 2, 3, 3))
        >>> class Pair(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embedding = torch.nn.Embedding(9, 8)
        ...         self.transformer = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        ...     def forward(self, source, target):
        ...         causal = self.transformer.generate_square_subsequent_mask(target.shape[1])
        ...         return self.transformer(self.embedding(source), self.embedding(target), tgt_mask=causal)
        ...
        >>> trace = tv.trace_module(Pair().eval(), [3, 4, 5], [1, 3], source_tokens=["a", "b", "c"], target_tokens=["<s>", "a"])
        >>> trace.cross.weights.shape  # (layer, head, query, key)
        (1, 2, 2, 3)
    """
    if not isinstance(model, nn.Module):
        raise OptionError(f"model is {type(model).__name__}, not a torch module; load it first.{huggingface.install_hint()}")
    n_candidates = whole_number("candidates", candidates, 1, 100_000)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    allowed = check_allowed(allow_missing, model)
    source, target = (ids_of(f"{name}_ids", ids, device) for name, ids in (("source", source_ids), ("target", target_ids)))
    if source is None and target is None:
        raise OptionError("there are no ids; give source_ids, target_ids or both")
    source_labels, target_labels = (
        check_labels("source_tokens", source_tokens, source),
        check_labels("target_tokens", target_tokens, target),
    )
    known = [*zip(flat(source), source_labels or (), strict=False), *zip(flat(target), target_labels or (), strict=False)]
    label = labels_of(vocabulary, dict(known))
    inner = huggingface.pretrained(model)
    if pad_id is None and inner is not None:
        pad_id = getattr(inner.config, "pad_token_id", None)

    started = time.perf_counter()
    if inner is not None:
        recorded = huggingface.record(model, source, target, pad_id, call)
        if not recorded.calls and not type(inner).__module__.startswith("transformers."):
            recorded = _by_operators_alone(model, source, target, pad_id, call) or recorded
    else:
        may_turn = all(_is_one_axis(ids) for ids in (source_ids, target_ids) if ids is not None)
        recorded = _record(model, source, target, pad_id, call, may_turn=may_turn)
    calls, missing = recorded.calls, recorded.unseen
    packages = ("torch", "numpy", *(() if inner is None else ("transformers",)))
    made_by: dict[str, Any] = {
        "checkpoint": type(model).__name__ if inner is None else huggingface.name_of(inner) or type(model).__name__,
        "variant": type(model).__name__,
        "strategy": "teacher forcing",
        "device": str(device),
        "versions": {name: version(name) for name in packages},
        "seconds": round(time.perf_counter() - started, 6),
    }
    if not calls:
        raise OptionError(
            f"no attention was seen in {type(model).__name__}. "
            f"{f'It has {unrecorded_words(model, missing)}. ' if missing else ''}Other attention is given as arrays to "
            "Trace.from_arrays."
        )
    if not_seen := accept_unrecorded(model, missing, allowed):
        made_by["not_seen"] = not_seen
    check_calls(model, calls, recorded.softmax_columns)
    made_by["modules"] = {kind: [one.module for one in calls if one.kind == kind] for kind in {one.kind for one in calls}}

    layers = layers_by_kind(calls)
    read, written = (source, source_labels), (target, target_labels)
    if (set(layers) == {"decoder"} and target is None) or (set(layers) == {"encoder"} and source is None):
        read, written = written, read
    tokens = [[label(number) for number in flat(ids)] if labels is None else labels for ids, labels in (read, written)]
    trace = Trace.from_arrays(
        **{kind: of_kind.weights for kind, of_kind in layers.items()},
        source_tokens=tokens[0],
        target_tokens=tokens[1],
        masks={kind: of_kind.masked for kind, of_kind in layers.items()},
        made_by=made_by,
    )
    attentions = dict(trace.attentions)
    for kind, of_kind in layers.items():
        keys = torch.tensor(flat(written[0] if kind == "decoder" else read[0]))
        is_padding = padding(keys, pad_id, everywhere=kind != "decoder" or "cross" not in layers)
        reasons = explained(kind, of_kind.masked, is_padding.numpy())
        attentions[kind] = replace(attentions[kind], reasons=reasons, layers=of_kind.numbers)
    rows = _logits(recorded.returned, trace.n_steps, vocabulary, logits)
    outputs = _outputs(output_ids, flat(written[0]), rows, trace.n_steps)
    steps = () if rows is None else token_ranks.steps_of(rows, outputs, n_candidates, label)
    output_tokens = tuple(map(label, outputs))
    return replace(trace, attentions=attentions, output_tokens=output_tokens, text=" ".join(output_tokens), steps=steps)


def _outputs(output_ids: Any, target: list[int], rows: Tensor | None, n_steps: int) -> list[int]:
    """The output ids: those that were given, or else each next target id, then the most probable one where there are logits."""
    outputs = flat(ids_of("output_ids", output_ids, torch.device("cpu")))
    if outputs and len(outputs) != n_steps:
        raise OptionError(f"output_ids has {len(outputs)} ids for {n_steps} target ids; one is needed for each")
    if rows is None:
        return outputs
    outputs = outputs or [*target[1:], int(rows[-1].argmax())]
    if not bool(rows.isfinite().any(-1).all()) or bool(rows.isnan().any()):
        raise OptionError("the model's logits hold NaN; attention with a row in which everything is masked can be the cause")
    if impossible := [number for number in outputs if not 0 <= number < rows.shape[-1]]:
        raise OptionError(f"output id {impossible[0]} is not in the model's vocabulary of {rows.shape[-1]}")
    return outputs


def _is_one_axis(ids: Any) -> bool:
    """Tells whether ids were given as (length,), so that a batch axis may stand on either side."""
    return torch.as_tensor(ids).dim() == 1


def _record(
    model: nn.Module, source: Tensor | None, target: Tensor | None, pad_id: int | None, call: Call | None, *, may_turn: bool
) -> Recorded:
    """Records a module by torch's operators; one that takes the length first is given it so, where `may_turn` says so."""
    passes = Passes(model, call or model, has_run=call is not None)

    def recorded(turned: bool) -> tuple[Pass, Found]:
        ids = [tensor if tensor is None or not turned else tensor.T for tensor in (source, target)]
        first = passes.run(*(tensor for tensor in ids if tensor is not None), is_searching=True)
        return first, find_attention(passes, first, *ids, pad_id)

    first, result, error = None, None, None
    try:
        first, result = recorded(turned=False)
    except OptionError as why:
        error = why
    if may_turn and (result is None or not result.attentions):
        try:
            turned = recorded(turned=True)
        except OptionError:
            pass
        else:
            if turned[1].attentions:
                (first, result), error = turned, None
    if error is not None:
        raise error from error.__cause__
    assert first is not None and result is not None
    softmaxes = first.seen.softmaxes
    groups = groupby(result.attentions, key=lambda one: one.group)
    return Recorded(
        first.returned,
        [AttentionCall.of([*group], softmaxes) for _, group in groups],
        result.unseen,
        {softmax.module: softmax.shape[-1] for softmax in softmaxes},
    )


def _by_operators_alone(
    model: nn.Module, source: Tensor | None, target: Tensor | None, pad_id: int | None, call: Call | None
) -> Recorded | None:
    """Records a Hugging Face model that calls no attention of theirs, since its class was written by somebody else; None where
    nothing is seen so either.

    Of the families of transformers itself some compute a part of their attention in another way: LED's encoder pads its text to
    whole windows, which would be taken for no attention between tokens."""
    if call is None and huggingface.pretrained(model) is model:
        call = lambda ids, target=None: huggingface.call_model(model, ids, target, pad_id)  # noqa: E731
    try:
        recorded = _record(model, source, target, pad_id, call, may_turn=False)
    except OptionError:
        return None
    return recorded if recorded.calls else None


def _logits(returned: Any, n_steps: int, vocabulary: Vocabulary | None, is_logits: bool | None) -> Tensor | None:
    """The logits in what the model returned, float64 (step, vocabulary) on the CPU; None where it may be something else.

    Hidden states have the same axes as logits. Unless the caller says that these are logits, only `.logits` counts, or a
    tensor with as many columns as the vocabulary has tokens.
    """
    if is_logits is False or n_steps == 0:
        return None
    named = getattr(returned, "logits", None)
    first = returned[0] if isinstance(returned, tuple | list) and returned else returned
    tensor = named if isinstance(named, Tensor) else first
    rows = tensor if isinstance(tensor, Tensor) and tensor.is_floating_point() else None
    if rows is not None and rows.dim() == 3 and 1 in rows.shape[:2]:
        rows = torch.squeeze(rows, 0 if rows.shape[0] == 1 else 1)
    if rows is not None and rows.dim() == 2 and rows.shape[0] == n_steps:
        size = len(vocabulary) if isinstance(vocabulary, list | tuple | dict) else None
        return rows.detach().cpu().double() if is_logits or tensor is named or rows.shape[1] == size else None
    if is_logits:
        shape = f"a tensor {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else "no tensor"
        raise OptionError(f"logits=True, but the model returns {shape}; (1, {n_steps}, vocabulary) is needed")
    return None


def accept_unrecorded(model: nn.Module, unseen: Sequence[Unseen], allowed: Sequence[str]) -> list[str]:
    """The names of the attention that was not recorded, each accepted by its kind, its name, or that of a module around it.

    Raises:
        OptionError: something is not accepted; the message names it and says how it is.
    """
    unseen = [replace(one, module=one.module or type(model).__name__) for one in unseen]
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
            f"not all attention of {type(model).__name__} was seen; missing is {unrecorded_words(model, refused)}. "
            f"For a Trace without it: allow_missing={tuple(names)!r}"
        )
    return [module.module for module in unseen]


def unrecorded_words(model: nn.Module, unseen: Sequence[Unseen]) -> str:
    """A few of them by name, each with its class, its kind and the reason, and how many more there are."""
    modules = dict(model.named_modules())
    named = []
    for one in unseen[:_MOST_NAMES]:
        own_type = type(modules.get(one.module, model)).__name__
        named.append(f"{one.kind or 'the'} attention of {one.module or own_type} ({own_type}): {one.why}")
    more = len(unseen) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


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
