"""Decoding with everything recorded: text in, Trace out."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Unpack, overload

import torch
from torch import Tensor

from transformer_viz import edits as plain_edits
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.decoding.beam import Beam, BeamResult, beam_search
from transformer_viz.decoding.greedy import greedy
from transformer_viz.decoding.sampling import sample
from transformer_viz.decoding.stepwise import Decoded
from transformer_viz.decoding.teacher_forcing import teacher_forced
from transformer_viz.edits import Edit
from transformer_viz.errors import InputError, OptionError, listed
from transformer_viz.model import devices, masks, mistakes
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import TapName, compose
from transformer_viz.terms import KINDS
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.beam_traces import traces_of
from transformer_viz.tracing.edit_tap import changing_tap, kind_sizes, looks_ahead
from transformer_viz.tracing.framing import LONGEST, Rows, Target, framed_sources, framed_targets
from transformer_viz.tracing.options import whole
from transformer_viz.tracing.recording_options import RecordingKeywords, keep
from transformer_viz.tracing.strategies import Strategy, StrategyOptions, strategy_of
from transformer_viz.tracing.trace_builder import Provenance, Sentence, TraceBuilder, made_by
from transformer_viz.tracing.trace_size import Plan, TraceSize, check, checked_limit, predicted
from transformer_viz.vocabulary import PAD_ID, START

TEACHER_FORCING = "teacher forcing"
RECORDED: tuple[TapName, ...] = ("weights", "scores")


class Options(StrategyOptions, RecordingKeywords, total=False):
    """The keywords of `decode`."""

    strategy: str
    max_length: int | None
    candidates: int
    pad_to: int | None
    pad_target_to: int | None
    edits: Iterable[Edit | str]
    mistake: str | None
    record: Sequence[str]
    max_trace_bytes: int | None


@overload
def decode(checkpoint: Checkpoint, text: str, *, target: Target | None = None, **options: Unpack[Options]) -> Trace: ...
@overload
def decode(
    checkpoint: Checkpoint,
    text: list[str] | tuple[str, ...],
    *,
    target: Sequence[Target] | None = None,
    **options: Unpack[Options],
) -> list[Trace]: ...
def decode(
    checkpoint: Checkpoint,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[Options],
) -> Trace | list[Trace]:
    """Decodes one text, or several as one padded batch, and records every attention and mask.

    Args:
        checkpoint: from `load_checkpoint`.
        text: one source text, or a list of them (then a list of Traces comes back).
        strategy: `greedy`, `beam` or `sample`.
        max_length: the most tokens to write, `<end>` included; at most 512. Default: the task's limit + 1.
        candidates: how many of the most probable tokens each step keeps.
        pad_to: pad every source to this many tokens (special tokens counted) and keep the padded columns.
        pad_target_to: with `target`, pad every target to this many tokens and keep the padded rows.
        target: a target for each source text, as text or as a tuple of tokens without `<end>`. It is read in one
            pass (teacher forcing), nothing is decoded.
        edits: changes to masks, heads and rows of weights, in every sentence; objects or text (see `edits`).
        mistake: a deliberate mask mistake (see `model.mistakes`).
        record: `weights`, and `scores` where the scores before the mask are wanted too.
        kinds: which kinds of attention the Trace keeps, of `encoder`, `decoder` and `cross`; all by default.
        layers: which layers it keeps, by their numbers from 0; all by default. Every kind that is kept must have them.
        precision: `float32`, or `float16`, which halves the weights' bytes and rounds each to about three digits.
        max_trace_bytes: the most bytes that all Traces of this call may take together; 10⁹ by default. What would
            take more is refused before anything is run (see `trace_size`).
        prefix: tokens that the output begins with, whatever the model would write.
        ban: tokens that are never written; probabilities are still those of the model.
        beam_size: of `beam` (5); `length_penalty` α (0.6) divides a sum of log-probabilities by lengthᵅ; `n_best`
            finished hypotheses are wanted (as many as the beam is wide); `stop` is `bound`, `first` or `never`
            (see `decoding.beam`). The Trace holds the search, and `trace.hypothesis(i)` each hypothesis.
        temperature: of `sample` (1), with `top_k`, `top_p` and `seed` (see `decoding.sampling`).

    Where an edit or a mistake lets a row see a later token, every step computes all rows again, and the maps
    are those of the last pass.

    Raises:
        InputError: a text that the task cannot read.
        OptionError: an impossible keyword.
        TraceTooLarge: an OptionError that says with which keywords the Trace would be small enough.
        DeviceError: the device ran out of memory.
    """
    texts, targets = _lists(text, target)
    traces = _decode(checkpoint, texts, targets=targets, **options)
    return traces[0] if isinstance(text, str) else traces


def trace_size(
    checkpoint: Checkpoint,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[Options],
) -> TraceSize:
    """How large the Trace of `decode` with the same arguments would be, without running anything.

    `max_trace_bytes` is not looked at. Raises what `decode` raises for a text or keyword that is not possible.
    """
    return predicted(plan_of(checkpoint, text, target=target, **options))


def plan_of(
    checkpoint: Checkpoint,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[Options],
) -> Plan:
    """What decides the size of `decode` with the same arguments."""
    texts, targets = _lists(text, target)
    return _prepared(checkpoint, texts, targets=targets, **options).plan


def _lists(
    text: str | list[str] | tuple[str, ...], target: Target | Sequence[Target] | None
) -> tuple[list[str], Sequence[Target] | None]:
    """One text is a list of one; None is no target at all."""
    if isinstance(text, str):
        return [text], None if target is None else [target if isinstance(target, str) else tuple(map(str, target))]
    if isinstance(target, str):
        raise InputError("There are several sources and one target text; give a list with one target for each source.")
    return list(text), target


@dataclass(frozen=True)
class _Prepared:
    """A run, checked and not yet run."""

    sentences: list[Sentence]
    sources: Rows
    forced: Rows | None
    chosen: Strategy
    change: "_Change"
    names: tuple[TapName, ...]
    limit: int
    n_candidates: int
    plan: Plan
    max_trace_bytes: int


def _prepared(
    checkpoint: Checkpoint,
    texts: list[str],
    *,
    strategy: str = "greedy",
    max_length: int | None = None,
    candidates: int = 10,
    pad_to: int | None = None,
    pad_target_to: int | None = None,
    targets: Sequence[Target] | None = None,
    edits: Iterable[Edit | str] = (),
    mistake: str | None = None,
    record: Sequence[str] = ("weights",),
    kinds: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    precision: str = "float32",
    max_trace_bytes: int | None = None,
    **choosing: Unpack[StrategyOptions],
) -> _Prepared:
    if not texts:
        raise InputError("There is no text to decode; give at least one.")
    if unknown := [name for name in record if name not in RECORDED]:
        raise OptionError(f"record={unknown[0]!r} is not possible; choose from {listed(RECORDED)}")
    n_candidates = whole("candidates", candidates, 1, 100_000)
    model_limit = checkpoint.model.config.max_positions
    default_limit = min(checkpoint.task.max_target_length + 1, model_limit)
    limit = whole("max_length", max_length, 1, min(LONGEST, model_limit), default=default_limit)
    chosen = strategy_of(checkpoint, strategy, limit, **choosing)
    sources = framed_sources(checkpoint, texts, pad_to)
    forced = None if targets is None else framed_targets(checkpoint, targets, len(texts), pad_target_to)
    if forced is None and pad_target_to is not None:
        raise OptionError("pad_target_to pads a given target; give target too")
    change = _Change(plain_edits.read(edits), None if mistake is None else mistakes.named(mistake))
    most_steps = limit if forced is None else forced.width
    plain_edits.check(change.edits, kind_sizes(checkpoint.model.config), sources.width, most_steps)

    _check_together(chosen, forced, change, record)
    sentences = [_sentence(i, text, sources, forced, pad_to, pad_target_to) for i, text in enumerate(texts)]
    with_scores = "scores" in record
    plan = Plan(
        config=checkpoint.model.config,
        keep=keep(checkpoint.model.config, kinds=kinds, layers=layers, precision=precision),
        n_sources=[len(sentence.source_tokens) for sentence in sentences],
        n_steps=[limit if forced is None else len(forced.rows[i]) + s.n_padded_steps for i, s in enumerate(sentences)],
        source_width=sources.width,
        target_width=most_steps,
        n_candidates=n_candidates,
        with_scores=with_scores,
        by_head=frozenset(KINDS if change.mistake else [edit.place.kind for edit in change.edits]),
        beam=chosen.beam,
        forced=forced is not None,
        recomputed=looks_ahead(change.edits, change.mistake),
        longest_token=checkpoint.task.target_vocabulary.longest,
    )
    names: tuple[TapName, ...] = ("mask", "weights", *(("scores",) if with_scores else ()))
    most = checked_limit(max_trace_bytes)
    return _Prepared(sentences, sources, forced, chosen, change, names, limit, n_candidates, plan, most)


# The making of the Traces too: outside, each of its operations would pass by autograd (3 % of the time of a short text),
# and some would ask for a second thread, for which they wait 5 ms where a browser is at work on the same machine.
@torch.inference_mode()
def _decode(
    checkpoint: Checkpoint, texts: list[str], *, targets: Sequence[Target] | None, **options: Unpack[Options]
) -> list[Trace]:
    with devices.few_threads(checkpoint.device, checkpoint.n_parameters):
        return _traces(checkpoint, texts, targets=targets, **options)


def _traces(
    checkpoint: Checkpoint, texts: list[str], *, targets: Sequence[Target] | None, **options: Unpack[Options]
) -> list[Trace]:
    ready = _prepared(checkpoint, texts, targets=targets, **options)
    check([ready.plan], ready.max_trace_bytes)
    chosen, change, kept = ready.chosen, ready.change, ready.plan.keep
    started = time.perf_counter()
    recorder = Recorder(ready.names, kept.kinds, kept.layers, half=kept.is_half)
    with devices.memory_errors(checkpoint.device):
        if chosen.beam is not None:
            searches = _search(checkpoint, ready.sources, chosen, chosen.beam, recorder, ready.limit)
        else:
            decoded = _run(checkpoint, ready.sources, ready.forced, change, chosen, recorder, ready.limit)
            collected = TraceBuilder(recorder, decoded, ready.n_candidates)
    seconds = time.perf_counter() - started
    strategy = chosen.name if ready.forced is None else TEACHER_FORCING
    choosing = {name: value for name, value in options.items() if name in StrategyOptions.__annotations__}
    by = made_by(checkpoint, strategy, ready.plan.target_width, seconds, {**choosing, **kept.options()})
    mistake = None if change.mistake is None else change.mistake.name
    made = Provenance(by, mistake, tuple(map(str, change.edits)), kept.partial(ready.plan.config))
    if chosen.beam is not None:
        return traces_of(searches, recorder, checkpoint, ready.sentences, made, chosen.beam, ready.n_candidates)
    return [collected.trace(i, checkpoint, sentence, made) for i, sentence in enumerate(ready.sentences)]


@dataclass(frozen=True)
class _Change:
    edits: tuple[Edit, ...]
    mistake: Mistake | None


def _sentence(i: int, text: str, sources: Rows, forced: Rows | None, pad_to: int | None, pad_target_to: int | None) -> Sentence:
    tokens = sources.padded(i) if pad_to is not None else sources.rows[i]
    n_padded = forced.width - len(forced.rows[i]) if forced is not None and pad_target_to is not None else 0
    return Sentence(text, tokens, n_padded)


def _check_together(chosen: Strategy, forced: Rows | None, change: _Change, record: Sequence[str]) -> None:
    """Keywords that are possible alone and not with each other."""
    if chosen.beam is not None and (change.edits or change.mistake or "scores" in record):
        raise OptionError("edits, mistake and recorded scores need strategy 'greedy' or 'sample'; a beam search has none")
    if forced is not None and (chosen.name != "greedy" or chosen.prefix or chosen.ban):
        raise OptionError("a target leaves nothing to choose; leave strategy, prefix and ban out")


def _search(
    checkpoint: Checkpoint, sources: Rows, chosen: Strategy, how: Beam, recorder: Recorder, limit: int
) -> list[BeamResult]:
    source, source_padding = _source(checkpoint, sources)
    options = {"max_length": limit, "prefix": chosen.prefix, "ban": chosen.ban}
    return beam_search(checkpoint.model, source, source_padding, how, tap=recorder, **options)


def _source(checkpoint: Checkpoint, sources: Rows) -> tuple[Tensor, Tensor | None]:
    """Ids and padding of a batch, the latter None where there is none."""
    source = _ids(checkpoint, [checkpoint.task.source_vocabulary.encode(sources.padded(i)) for i in range(len(sources.rows))])
    return source, None if sources.is_even else masks.padding(source, PAD_ID)


def _run(
    checkpoint: Checkpoint,
    sources: Rows,
    forced: Rows | None,
    change: _Change,
    chosen: Strategy,
    recorder: Recorder,
    limit: int,
) -> Decoded:
    model, task = checkpoint.model, checkpoint.task
    changing = changing_tap(change.edits, change.mistake, model.config)
    tap = recorder if changing is None else compose(changing, recorder)
    source, source_padding = _source(checkpoint, sources)
    if forced is None:
        cached = not looks_ahead(change.edits, change.mistake)
        options = {"max_length": limit, "prefix": chosen.prefix, "ban": chosen.ban, "tap": tap, "cached": cached}
        if chosen.sampling is not None:
            return sample(model, source, source_padding, chosen.sampling, **options)
        return greedy(model, source, source_padding, **options)
    target_out = _ids(checkpoint, [task.target_vocabulary.encode(forced.padded(i)) for i in range(len(forced.rows))])
    lengths = torch.tensor([len(row) for row in forced.rows], device=checkpoint.device)
    places = torch.arange(forced.width, device=checkpoint.device)
    start = _ids(checkpoint, [task.target_vocabulary.encode([START])] * len(forced.rows))
    is_padding = places >= lengths[:, None]
    # The `<end>` that is written last is never read.
    target_in = torch.cat([start, target_out[:, :-1]], 1).masked_fill(is_padding, PAD_ID)
    target_padding = None if forced.is_even else is_padding
    return teacher_forced(model, source, source_padding, target_in, target_out, target_padding, tap=tap)


def _ids(checkpoint: Checkpoint, rows: list[list[int]]) -> Tensor:
    return torch.tensor(rows, device=checkpoint.device)
