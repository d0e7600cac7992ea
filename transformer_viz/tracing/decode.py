"""Decoding with everything recorded: text in, Trace out."""

import time
from collections.abc import Sequence
from typing import Unpack, overload

import torch
from torch import Tensor

from transformer_viz.decoding.beam import Beam, BeamResult, SearchOptions, beam_search
from transformer_viz.decoding.greedy import greedy
from transformer_viz.decoding.sampling import sampler
from transformer_viz.decoding.stepwise import Decoded, StepOptions, stepwise
from transformer_viz.decoding.teacher_forcing import teacher_forced
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Tap, TapName, compose
from transformer_viz.trace.recorder import Recorder
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.beam_traces import RankedNodes, traces_of
from transformer_viz.tracing.decode_request import DecodeKeywords, DecodeRequest, with_decode_keywords
from transformer_viz.tracing.edit_tap import changing_tap
from transformer_viz.tracing.framing import Rows, Target, padded_batch
from transformer_viz.tracing.ranked import RankedRows
from transformer_viz.tracing.trace_builder import Provenance, TraceBuilder, made_by
from transformer_viz.tracing.trace_size import BLOCK, TraceSize, check, predicted


@overload
def decode(checkpoint: LoadedModel, text: str, *, target: Target | None = None, **options: Unpack[DecodeKeywords]) -> Trace: ...
@overload
def decode(
    checkpoint: LoadedModel,
    text: list[str] | tuple[str, ...],
    *,
    target: Sequence[Target] | None = None,
    **options: Unpack[DecodeKeywords],
) -> list[Trace]: ...
@with_decode_keywords
def decode(
    checkpoint: LoadedModel,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[DecodeKeywords],
) -> Trace | list[Trace]:
    """Decodes one text, or several as one padded batch, and records every attention and mask.

    Args:
        checkpoint: from `load_checkpoint` or `load_model`.
        text: one source text, or a list of them (then a list of Traces comes back).
        strategy: `greedy`, `beam` or `sample`.
        max_length: the most tokens to write, `<end>` included; at most 512, a prompt included. Default: the task's limit + 1,
            or what the model's own generation config says.
        candidates: how many of the most probable tokens each step keeps.
        pad_to: pad every source to this many tokens (special tokens counted) and keep the padding in the Trace: behind what an
            encoder reads, and before a prompt.
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
        prefix: tokens, or their ids, that the output begins with, whatever the model would write.
        ban: tokens that are never written; probabilities are still those of the model.
        beam_size: of `beam`: how many continuations each step keeps; None is 5. The Trace holds the search, and
            `trace.hypothesis(i)` each hypothesis.
        length_penalty: of `beam`: a sum of log-probabilities is divided by length to this power; None is 0.6.
        n_best: of `beam`: how many finished hypotheses are wanted; None is as many as the beam is wide.
        stop: of `beam`: `bound`, `first` or `never` (see `decoding.beam`); None is `bound`.
        refill: of `beam`: keep the width full where hypotheses end, as `generate` of transformers does; None is False.
        temperature: of `sample`: logits are divided by it; None is 1, and 0 is greedy.
        top_k: of `sample`: only the k most probable tokens are drawn; None is all.
        top_p: of `sample`: only the most probable tokens that together reach this probability are drawn; None is 1, all.
        seed: of `sample`: another seed draws other tokens; None is 0.
        on_token: is called after each token with what has been written so far (`Written`, which has `n_steps`, `ids`, `texts`).
            Where it returns False nothing more is written, and the Trace is that of a `max_length` of so many tokens.

    A keyword of another strategy than the chosen one is refused, since it would do nothing.

    Where an edit or a mistake lets a row see a later token, every step computes all rows again, and the maps
    are those of the last pass.

    Raises:
        InputError: a text that the task cannot read.
        OptionError: an impossible keyword.
        TraceTooLarge: an OptionError that says with which keywords the Trace would be small enough.
        DeviceError: the device ran out of memory.
    """
    traces = _traces(DecodeRequest.of(checkpoint, text, target, **options))
    return traces[0] if isinstance(text, str) else traces


@with_decode_keywords
def trace_size(
    checkpoint: LoadedModel,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[DecodeKeywords],
) -> TraceSize:
    """How large the Trace of `decode` with the same arguments would be, without running anything.

    `max_trace_bytes` and `on_token` are not looked at. Raises what `decode` raises for a text or keyword that is not possible.
    """
    return predicted(DecodeRequest.of(checkpoint, text, target, **options).plan())


def _traces(request: DecodeRequest) -> list[Trace]:
    checkpoint, plan, beam = request.checkpoint, request.plan(), request.strategy.beam
    check([plan], request.max_trace_bytes)
    names: tuple[TapName, ...] = ("mask", "weights", *(("scores",) if request.with_scores else ()))
    recorder = Recorder(names, request.keep.kinds, request.keep.layers, half=request.keep.is_half)
    # The making of the Traces too: outside, each of its operations would pass by autograd (3 % of the time of a short text),
    # and some would ask for a second thread, for which they wait 5 ms where a browser is at work on the same machine.
    with devices.running(checkpoint):
        started = time.perf_counter()
        if beam is not None:
            searches, ranked = _search(request, beam, recorder)
        else:
            collected = _collected(request, recorder)
        made = _provenance(request, time.perf_counter() - started)
        if beam is not None:
            return traces_of(searches, ranked, recorder, checkpoint, request.sentences, made, beam)
        return [collected.trace(i, checkpoint, sentence, made) for i, sentence in enumerate(request.sentences)]


def _provenance(request: DecodeRequest, seconds: float) -> Provenance:
    choosing = {**request.strategy.given, **request.keep.options(request.checkpoint.model.sizes)}
    by = made_by(request.checkpoint, request.strategy_name, request.target_width, seconds, choosing)
    mistake = None if request.mistake is None else request.mistake.name
    return Provenance(by, mistake, tuple(map(str, request.edits)), request.keep.numbers(request.checkpoint.model.sizes))


def _search(request: DecodeRequest, how: Beam, recorder: Recorder) -> tuple[list[BeamResult], list[RankedNodes]]:
    source, source_padding = _source(request)
    # Of each search so many steps are kept until they are looked at.
    most_steps = BLOCK // (how.size * request.checkpoint.model.sizes.vocabulary)
    ranked = [RankedNodes(request.n_candidates) for _ in request.sentences]

    def after_step(searches: Sequence[BeamResult]) -> bool:
        for each, found in zip(ranked, searches, strict=True):
            if len(found.logits) > most_steps:
                each.look(found)
        return request.watch is None or request.watch.search(searches)

    options: SearchOptions = {
        "max_length": request.max_length,
        "prefix": request.strategy.prefix,
        "ban": request.strategy.ban,
        "tap": recorder,
        "after_step": after_step,
    }
    return beam_search(request.checkpoint.model, source, source_padding, how, **options), ranked


def _collected(request: DecodeRequest, recorder: Recorder) -> TraceBuilder:
    """Written token after token, or read in one pass where there is a target; of an encoder alone, only read."""
    checkpoint, tokenizer = request.checkpoint, request.checkpoint.tokenizer
    most_rows = BLOCK // max(1, len(request.sentences) * checkpoint.model.sizes.vocabulary)
    ranked = RankedRows(request.n_candidates, tokenizer.label, most_rows, with_ids=not tokenizer.has_unique_labels)
    changing = changing_tap(request.edits, request.mistake, checkpoint.model.sizes, request.closed)
    tap = compose(changing, recorder)
    if not checkpoint.model.kind.writes:
        return TraceBuilder(recorder, read_sources(request, tap), ranked)
    return TraceBuilder(recorder, _decoded(request, tap, ranked), ranked)


def _decoded(request: DecodeRequest, tap: Tap | None, ranked: RankedRows) -> Decoded:
    model, chosen = request.checkpoint.model, request.strategy
    if request.forced is not None:
        decoded = read_targets(request, request.forced, tap)
        ranked.whole(decoded.logits, decoded.ids)
        return decoded
    source, source_padding = _source(request)
    options: StepOptions = {
        "max_length": request.max_length,
        "prefix": chosen.prefix,
        "tap": tap,
        "cached": not request.is_recomputed,
        "log": ranked,
        "after_step": None if request.watch is None else request.watch.step,
    }
    if chosen.sampling is not None:
        choose = sampler(chosen.sampling, source, chosen.ban, is_checked=model.rules is not None)
        return stepwise(model, source, source_padding, choose, **options)
    return greedy(model, source, source_padding, ban=chosen.ban, **options)


def read_targets(request: DecodeRequest, forced: Rows, tap: Tap | None) -> Decoded:
    """One pass over sources and the targets that are given with them."""
    return teacher_forced(request.checkpoint.model, *_source(request), *_target(request, forced), tap=tap)


def read_sources(request: DecodeRequest, tap: Tap | None) -> Decoded:
    """What an encoder reads: nothing is written. `logits` are of what may stand in the place of each token, of one alone."""
    source, source_padding = _source(request)
    logits = request.checkpoint.model.encode(source, source_padding, tap=tap)
    nothing = source.new_empty(len(source), 0)
    no_length = torch.zeros(len(source), dtype=torch.long)
    return Decoded(nothing, no_length, no_length.bool(), torch.empty(len(source), 0, 0) if logits is None else logits)


def _source(request: DecodeRequest) -> tuple[Tensor, Tensor | None]:
    """Ids and padding of a batch, the latter None where there is none. Prompts are padded on their left."""
    sources, device = request.sources, request.checkpoint.device
    if sources.is_even:
        return torch.tensor(sources.rows, device=device), None
    return padded_batch(
        sources.rows, sources.pad_id, sources.width, on_left=request.checkpoint.model.kind.has_prompt, device=device
    )


def _target(request: DecodeRequest, forced: Rows) -> tuple[Tensor, Tensor, Tensor | None]:
    """Ids that are read, ids that are written, and where a row is padding; None where none is."""
    reader, device = request.checkpoint.model, request.checkpoint.device
    start = [] if reader.start_id is None else [reader.start_id]
    prompts = [each.prompt or start for each in request.sentences]
    whole = [[*prompt, *row] for prompt, row in zip(prompts, forced.rows, strict=True)]
    # The end that is written last is never read. What is read of a prompt is written too, but for its first token.
    read, written = [row[:-1] for row in whole], [row[1:] for row in whole]
    width = forced.width + max(map(len, prompts)) - 1
    n_before = [sentence.n_padded_before for sentence in request.sentences]
    if not any(n_before) and set(map(len, read)) == {width}:
        return torch.tensor(read, device=device), torch.tensor(written, device=device), None
    ids_in, is_padding = padded_batch(read, forced.pad_id, width, device=device)
    ids_out, _ = padded_batch(written, forced.pad_id, width, device=device)
    for row, n in zip(is_padding, n_before, strict=True):
        row[:n] = True
    return ids_in, ids_out, is_padding
