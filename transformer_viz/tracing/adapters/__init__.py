"""Attention of a model that is not ours: any module with `torch.nn.MultiheadAttention`, or a Hugging Face model.

One forward pass over a source and a target (teacher forcing), watched: every layer's and head's weights, and the
masks that attention was really given. The model is left as it was, also when the pass fails.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.schema import whole_number
from transformer_viz.terms import Kind
from transformer_viz.trace.given_arrays import explained
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.adapters import faults, huggingface, steps, unseen
from transformer_viz.tracing.adapters.functions import Functions
from transformer_viz.tracing.adapters.labels import Labels, Vocabulary, flat, ids_of, padding, read_tokens
from transformer_viz.tracing.adapters.running import Running, followed
from transformer_viz.tracing.adapters.seen import Given, Layers, Seen, by_kind

Call = Callable[..., Any]
# Modes, the fast path and attention settings are put back to what they were; two runs at once would put back each other's.
_ONE_AT_A_TIME = threading.RLock()


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
        model: a module with `torch.nn.MultiheadAttention` in it, such as `torch.nn.Transformer`; or a Hugging Face model
            (BART, Marian, T5, GPT-2, BERT and others that use their attention interface).
        source_ids: what the encoder reads: (length,), (1, length), or (length, 1) for a model that takes the length first.
        target_ids: what the decoder reads, its start symbol first. None for an encoder alone; for a decoder alone
            give these and no source.
        source_tokens: a label for each source id.
        target_tokens: a label for each target id.
        output_ids: what should be written from each target position. By default the next target id, and after the
            last one the id that the model finds most probable.
        vocabulary: tokens by id (list or dict), or a tokenizer; labels what has none, otherwise the id itself does.
        pad_id: which id is padding; by default that of a Hugging Face model's configuration. A Hugging Face model is
            given the matching masks, any other module makes its own.
        call: how the model is run, if not as `model(source_ids, target_ids)`: a function of the ids that are not None.
        logits: whether what the model returns are logits. By default only where that is certain: Hugging Face's
            `.logits`, or as many columns as `vocabulary` has tokens. Without them the steps have no probabilities.
        candidates: how many of the most probable tokens each step keeps.
        allow_missing: what may be missing from the Trace, because the model computes that attention in a way that cannot be
            recorded: kinds (`"encoder"`), or names of modules, each with all that is in it. `made_by["not_seen"]` names it.

    Layers have the numbers that they have in the model's `nn.ModuleList`. Where others stand between them that have no
    attention, as in Qwen3-Next and Jamba, `Attention.layers` says the numbers.

    The run is in eval mode without gradients. While it lasts, torch's fast path is off in this process, and another
    thread that runs the same Hugging Face model gets the eager attention.

    Raises:
        OptionError: an impossible keyword, a model that fails, one whose attention cannot be seen or is not all seen,
            or one whose rows of weights do not sum to 1.
        ModelError: a Hugging Face model of which a module's eager attention is nowhere written out.
        TraceError: attention that does not fit the tokens.
    """
    if not isinstance(model, nn.Module):
        raise OptionError(f"model is {type(model).__name__}, not a torch module; load it first.{huggingface.install_hint()}")
    n_candidates = whole_number("candidates", candidates, 1, 100_000)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    allowed = unseen.names_of(allow_missing, model)
    source, target = (ids_of(f"{name}_ids", ids, device) for name, ids in (("source", source_ids), ("target", target_ids)))
    if source is None and target is None:
        raise OptionError("there are no ids; give source_ids, target_ids or both")
    read, written = _Side.of("source", source, source_tokens), _Side.of("target", target, target_tokens)
    inner = huggingface.pretrained(model)
    if pad_id is None and inner is not None:
        pad_id = getattr(inner.config, "pad_token_id", None)
    started = time.perf_counter()
    run = _run(model, inner, source, target, pad_id, call)
    made_by = _made_by(model, inner, device, time.perf_counter() - started)
    if not_seen := unseen.accepted(model, run.missing, allowed):
        made_by["not_seen"] = not_seen
    faults.check(model, run.calls, run.softmax_columns)
    layers = by_kind(run.calls)
    if (set(layers) == {"decoder"} and target is None) or (set(layers) == {"encoder"} and source is None):
        read, written = written, read
    labels = Labels(vocabulary, [*read.pairs(), *written.pairs()])
    trace = _trace(layers, read, written, labels, pad_id, made_by)
    rows = steps.logits_of(run.returned, trace.n_steps, vocabulary, logits)
    return _with_output(trace, rows, written.ids, output_ids, labels, n_candidates)


@dataclass(frozen=True)
class _Side:
    """The ids of the source or of the target, and the labels that were given for them; None where there are none."""

    ids: Tensor | None
    tokens: Sequence[str] | None

    @classmethod
    def of(cls, name: str, ids: Tensor | None, tokens: Iterable[str] | None) -> "_Side":
        return cls(ids, read_tokens(f"{name}_tokens", tokens, ids))

    def pairs(self) -> Iterable[tuple[int, str]]:
        """Each id with the label that was given for it."""
        return zip(flat(self.ids), self.tokens or (), strict=False)

    def labelled(self, labels: Labels) -> Sequence[str]:
        """The labels that were given, otherwise those of the ids."""
        return [labels.of(number) for number in flat(self.ids)] if self.tokens is None else self.tokens


def _trace(
    layers: dict[Kind, Layers], read: _Side, written: _Side, labels: Labels, pad_id: int | None, made_by: dict[str, Any]
) -> Trace:
    """The attention with its labels, without what was written from it."""
    trace = Trace.from_arrays(
        **{kind: found.weights for kind, found in layers.items()},
        source_tokens=read.labelled(labels),
        target_tokens=written.labelled(labels),
        masks={kind: found.masked for kind, found in layers.items()},
        made_by=made_by,
    )
    reasons = _reasons(layers, read.ids, written.ids, pad_id)
    attentions = {
        kind: replace(attention, reasons=reasons[kind], layers=layers[kind].numbers or ())
        for kind, attention in trace.attentions.items()
    }
    return replace(trace, attentions=attentions)


@dataclass(frozen=True)
class _Run:
    """What one pass returned, and what was seen of it; `softmax_columns` as in `Functions`."""

    returned: Any
    calls: list[Seen]
    missing: list[unseen.Unseen]
    softmax_columns: dict[str, int]


def _run(
    model: nn.Module, inner: Any | None, source: Tensor | None, target: Tensor | None, pad_id: int | None, call: Call | None
) -> _Run:
    """One pass, watched."""

    def forward() -> Any:
        with followed(model, running), functions:
            if call is None and inner is model:
                return huggingface.call_of(inner, source, target, pad_id)
            return (call or model)(*(ids for ids in (source, target) if ids is not None))

    running = Running(model)
    functions = Functions(running)
    given = Given(has_source=source is not None, has_target=target is not None)
    with _ONE_AT_A_TIME, _quiet(model):
        with _adapter(model).watched(model, running, given) as seen:
            returned = _answer(model, forward)
        calls = seen()
    missing = unseen.found(model, inner, running, functions, calls)
    if not calls:
        raise OptionError(
            f"no attention was seen in {type(model).__name__}; {unseen.WATCHED}. "
            f"{f'It has {unseen.words(missing)}. ' if missing else ''}Other attention is given as arrays to Trace.from_arrays."
        )
    return _Run(returned, calls, missing, functions.softmax_columns)


def _adapter(model: nn.Module) -> ModuleType:
    """The first module here, by `ORDER`, that knows how this model attends."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    adapters = sorted((module for module in modules if hasattr(module, "watched")), key=lambda module: module.ORDER)
    return next(module for module in adapters if module.knows(model))


def _answer(model: nn.Module, forward: Callable[[], Any]) -> Any:
    try:
        return forward()
    except TransformerVizError:
        raise
    except Exception as error:
        raise OptionError(
            f"{type(model).__name__} failed: {type(error).__name__}: {str(error)[:300]}. "
            "Does it take (source_ids, target_ids)? Otherwise say with call= how it is run."
        ) from error


@contextmanager
def _quiet(model: nn.Module) -> Generator[None]:
    """Eval mode and no gradients; every module's mode as it was afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def _reasons(layers: dict[Kind, Layers], source: Tensor | None, target: Tensor | None, pad_id: int | None) -> dict[Kind, Any]:
    """Why each cell is masked, as far as the ids tell."""
    found = {}
    for kind in layers:
        numbers = torch.tensor(flat(target if kind == "decoder" else source))
        is_padding = padding(numbers, pad_id, everywhere=kind != "decoder" or "cross" not in layers)
        found[kind] = explained(kind, layers[kind].masked, is_padding.numpy())
    return found


def _with_output(
    trace: Trace, logits: Tensor | None, target: Tensor | None, output_ids: Any, labels: Labels, n_candidates: int
) -> Trace:
    """What was written: given, or the next id of the target and, where there are logits, the model's own last one."""
    written = flat(ids_of("output_ids", output_ids, torch.device("cpu")))
    if written and len(written) != trace.n_steps:
        raise OptionError(f"output_ids has {len(written)} ids for {trace.n_steps} target ids; one is needed for each")
    if not written and logits is not None:
        written = [*flat(target)[1:], int(logits[-1].argmax())]
    tokens = tuple(labels.of(number) for number in written)
    known = () if logits is None else steps.steps_of(logits, written, labels, n_candidates)
    return replace(trace, output_tokens=tokens, text=" ".join(tokens), steps=known)


def _made_by(model: nn.Module, inner: Any | None, device: torch.device, seconds: float) -> dict[str, Any]:
    packages = ("torch", "numpy", *(() if inner is None else ("transformers",)))
    return {
        "checkpoint": type(model).__name__ if inner is None else huggingface.name_of(inner) or type(model).__name__,
        "variant": type(model).__name__,
        "strategy": "teacher forcing",
        "device": str(device),
        "versions": {name: version(name) for name in packages},
        "seconds": round(seconds, 6),
    }
