"""Decoding with everything recorded: text in, Trace out."""

import time
from collections.abc import Sequence
from typing import Unpack, overload

from torch import Tensor

from transformer_viz.decoding.beam import Beam, BeamResult, beam_search
from transformer_viz.decoding.memory import WORKING, n_at_once
from transformer_viz.decoding.run import run
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import TapName, compose
from transformer_viz.trace.recorder import Recorder, StepRecorder
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.beam_traces import BeamTraces, RankedNodes
from transformer_viz.tracing.decode_request import DecodeKeywords, DecodeRequest, with_decode_keywords
from transformer_viz.tracing.edit_tap import changing_tap, looks_ahead
from transformer_viz.tracing.progress import Written
from transformer_viz.tracing.token_ranks import TokenRanks
from transformer_viz.tracing.tokenize_batch import Target
from transformer_viz.tracing.trace_builder import TraceBuilder, made_by
from transformer_viz.tracing.trace_size import TraceSize, check, predicted


@overload
def decode(model: LoadedModel, text: str, *, target: Target | None = None, **options: Unpack[DecodeKeywords]) -> Trace: ...
@overload
def decode(
    model: LoadedModel,
    text: list[str] | tuple[str, ...],
    *,
    target: Sequence[Target] | None = None,
    **options: Unpack[DecodeKeywords],
) -> list[Trace]: ...
@with_decode_keywords
def decode(
    model: LoadedModel,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[DecodeKeywords],
) -> Trace | list[Trace]:
    """Decodes one text, or several as one padded batch, and records every attention and mask.

    Args:
        model: from `load_checkpoint` or `load_model`.
        text: one source text, or a list of them (then a list of Traces comes back).
        strategy: `greedy`, `beam` or `sample`.
        max_length: the most tokens to write, `<end>` included; at most 512, a prompt included. Default: the task's limit + 1,
            or what the model's own generation config says.
        candidates: how many of the most probable tokens each step keeps.
        pad_to: pad every source to this many tokens (special tokens counted) and keep the padding in the Trace: behind what an
            encoder reads, and before a prompt.
        pad_target_to: with `target`, pad every target to this many tokens and keep the padded rows.
        target: what the decoder reads instead of writing, as text or as a tuple of tokens without `<end>`; for a list of texts
            a list of them. It is read in one pass (teacher forcing), nothing is decoded.
        edits: changes to masks, heads and rows of weights, in every sentence. Their text counts from 1: `cross.2.4:zero` is
            a head without output, `cross:off` no mask, `cross:3-5` a flipped cell, `cross.2.4:3=5` a row's whole weight on one
            key; `help(transformer_viz.edits)` has all of them.
        tap: a callable that sees, and may change, every intermediate of every attention by its name. `tv.RecordTap` keeps
            some, `tv.ReplaceTap` replaces one; `help(tv.Tap)` lists the names with their shapes. It comes after edits and
            mistake, and the Trace has what it returns. What reads a run again, such as `attribute`, does so without it.
        mistake: a deliberate mask mistake, by its name in `tv.list_mistakes()`.
        record: `weights`, and `scores` where the scores before the mask are wanted too.
        kinds: which kinds of attention the Trace keeps, of `encoder`, `decoder` and `cross`; all by default.
        layers: which layers it keeps, by their numbers from 0; all by default. Every kind that is kept must have them.
        precision: `float32`, or `float16`, which halves the weights' bytes and rounds each to about three digits.
        max_trace_bytes: the most bytes that all Traces of this call may take together; 10⁹ by default. A larger run is
            refused before it begins (see `trace_size`).
        prefix: tokens, or their ids, that the output begins with, whatever the model would write.
        ban: tokens that are never written; probabilities are still those of the model.
        beam_size: of `beam`: how many continuations each step keeps; None is 5. The Trace holds the search, and
            `trace.hypothesis(i)` each hypothesis.
        length_penalty: of `beam`: a sum of log-probabilities is divided by length to this power; None is 0.6.
        n_best: of `beam`: how many finished hypotheses are wanted; None is as many as the beam is wide.
        stop: of `beam`: when the search ends: `bound`, when nothing can still be among the `n_best`; `first`, when so many
            are finished; `never`, at the limit. None is `bound`.
        refill: of `beam`: keep the width full where hypotheses end, as `generate` of transformers does; None is False.
        temperature: of `sample`: logits are divided by it; None is 1, and 0 is greedy.
        top_k: of `sample`: only the k most probable tokens are drawn; None is all.
        top_p: of `sample`: only the most probable tokens that together reach this probability are drawn; None is 1, all.
        seed: of `sample`: another seed draws other tokens; None is 0.
        on_token: is called after each token with what has been written so far (`Written`, which has `n_steps`, `ids`, `texts`).
            When it returns False, decoding ends as if `max_length` were reached.

    A keyword of another strategy than the chosen one is refused, since it would do nothing.

    Where an edit or a mistake lets a row see a later token, every step computes all rows again, and the maps
    are those of the last pass.

    Returns:
        A Trace, or a list of them for a list of texts.

    Raises:
        InputError: a text that the task cannot read.
        OptionError: an impossible keyword.
        TraceTooLarge: an OptionError that says with which keywords the Trace would be small enough.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> trace = tv.decode(model, "hello")
        >>> trace.text
        'olleh'
        >>> trace.cross.weights.shape  # (layer, head, query, key)
        (2, 4, 6, 7)
        >>> tv.decode(model, "hello", strategy="beam", beam_size=3).text
        'olleh'
        >>> tv.decode(model, "hello", edits=["cross.1.1:zero"]).text == "olleh"  # without the first head
        False
        >>> runs = tv.decode(model, ["hello", "ab"], target=["olleh", "ba"])  # teacher forcing
        >>> runs[1].cross.weights.shape
        (2, 4, 3, 4)

    References:
        Vaswani et al. (2017), "Attention Is All You Need": https://arxiv.org/abs/1706.03762
        The length penalty: Wu et al. (2016), "Google's Neural Machine Translation System":
            https://arxiv.org/abs/1609.08144
    """
    traces = _traces(DecodeRequest.of(model, text, target, **options))
    return traces[0] if isinstance(text, str) else traces


@with_decode_keywords
def trace_size(
    model: LoadedModel,
    text: str | list[str] | tuple[str, ...],
    *,
    target: Target | Sequence[Target] | None = None,
    **options: Unpack[DecodeKeywords],
) -> TraceSize:
    """Predicts the size in bytes of what `decode` would return for the same arguments, without running the model.

    Args:
        model: as in `decode`.
        text: as in `decode`.
        target: as in `decode`.
        options: as in `decode`; `max_trace_bytes` and `on_token` are ignored. An impossible one raises the error of `decode`.

    Returns:
        Bytes: of the arrays, of the records, and what the run takes besides.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> size = tv.trace_size(model, "hello", max_length=8)
        >>> trace = tv.decode(model, "hello", max_length=8)
        >>> trace.nbytes <= size.arrays
        True
    """
    return predicted(DecodeRequest.of(model, text, target, **options))


def _traces(request: DecodeRequest) -> list[Trace]:
    model, reader, n_texts = request.model, request.model.network, len(request.batch)
    check([request], request.max_trace_bytes)
    names: tuple[TapName, ...] = ("mask", "weights", "scores") if request.with_scores else ("mask", "weights")
    kinds, is_half = tuple(request.recording.layers), request.recording.precision == "float16"
    progress = _Progress(request)
    # Traces are made in here too: outside, autograd would see each operation (3 % of the time of a short text), and some would
    # use a second thread, for which they wait 5 ms while a browser is at work on the same machine.
    with devices.running(model):
        started = time.perf_counter()
        if request.beam is not None:
            steps = StepRecorder(("weights",), kinds, request.recording.layers, half=is_half)
            built: BeamTraces | TraceBuilder = _search(request, request.beam, steps, progress)
        else:
            most_rows = n_at_once(WORKING, n_texts * reader.sizes.vocabulary)
            ranks = TokenRanks(request.n_candidates, model.tokenizer, most_rows)
            n_rows = max(request.most_steps(i) for i in range(n_texts))
            recorder = Recorder(names, kinds, request.recording.layers, half=is_half, most_rows=n_rows)
            tap = compose(changing_tap(request.edits, request.mistake, reader.sizes, request.closed), request.tap, recorder)

            def on_step(step: int, logits: Tensor, token: Tensor) -> bool:
                ranks.add(logits, token)
                return step < 0 or request.on_token is None or progress.step(token)

            ran = run(
                reader,
                request.batch,
                tap=tap,
                on_step=on_step,
                max_length=request.max_length,
                sampling=request.sampling,
                prefix=request.prefix,
                ban=request.ban,
                cached=not looks_ahead(request.edits, request.mistake),
            )
            built = TraceBuilder(request, recorder, ran, ranks)
        n_steps = progress.n_steps if progress.is_stopped else request.max_length
        made = made_by(request, n_steps, time.perf_counter() - started)
        return [built.trace(i, made) for i in range(n_texts)]


def _search(request: DecodeRequest, beam: Beam, recorder: StepRecorder, progress: "_Progress") -> BeamTraces:
    # The logits of so many steps of each search are kept before they are ranked.
    most_steps = n_at_once(WORKING, beam.size * request.model.network.sizes.vocabulary)
    ranked = [RankedNodes(request.n_candidates) for _ in request.texts]

    def after_step(searches: Sequence[BeamResult]) -> bool:
        for nodes, search in zip(ranked, searches, strict=True):
            if len(search.logits) > most_steps:
                nodes.rank(search)
        return request.on_token is None or progress.search_step(searches)

    searches = beam_search(
        request.model.network,
        request.batch,
        beam,
        max_length=request.max_length,
        prefix=request.prefix,
        ban=request.ban,
        tap=compose(request.tap, recorder),
        after_step=after_step,
    )
    return BeamTraces(request, recorder, searches, ranked)


class _Progress:
    """Calls `on_token` after each step, once all of a prefix is written, and remembers whether it ended the decoding."""

    def __init__(self, request: DecodeRequest) -> None:
        self.request, self.n_steps, self.is_stopped = request, 0, False
        self._rows: list[list[int]] = [[] for _ in request.texts]

    def step(self, token: Tensor) -> bool:
        """Takes the ids (batch,) of a step; says whether it goes on."""
        ends, is_over = self.request.model.network.end_ids, True
        for row, number in zip(self._rows, token.tolist(), strict=True):
            if not row or row[-1] not in ends:
                row.append(number)
            is_over = is_over and row[-1] in ends
        return is_over or self._call(self._rows)

    def search_step(self, searches: Sequence[BeamResult]) -> bool:
        """Takes the best living hypothesis of each beam search, or where none lives the best of all."""
        rows = []
        for nodes in (search.nodes for search in searches):
            node = next((node for node in nodes if node.step == nodes[-1].step and node.state == "kept"), None)
            node = node or max((node for node in nodes if node.state in ("end", "length")), key=lambda node: node.score)
            ids = [node.token]
            while node.parent is not None:
                node = nodes[node.parent]
                ids.append(node.token)
            rows.append(ids[::-1])
        return self._call(rows)

    def _call(self, rows: Sequence[Sequence[int]]) -> bool:
        self.n_steps += 1
        on_token, tokenizer = self.request.on_token, self.request.model.tokenizer
        if on_token is not None and self.n_steps >= len(self.request.prefix):
            self.is_stopped = on_token(Written(self.n_steps, tuple(map(tuple, rows)), tokenizer)) is False
        return not self.is_stopped
