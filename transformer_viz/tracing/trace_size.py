"""The size of a Trace, predicted before it is run; what is too large is refused.

The arrays of a Trace are counted exactly where the number of steps is known, and at most where only the limit is.
Candidates and the nodes of a search are Python objects: what each takes at most was measured (`docs/memory.md`).
What a run needs besides, and gives back, is known roughly: enough to refuse what would end the process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformer_viz.decoding.beam import Beam
from transformer_viz.decoding.memory import WORKING
from transformer_viz.errors import TraceTooLarge
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.terms import KINDS
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode_request import DecodeRequest

PEAK_TIMES, LEAST_PEAK = 4, 10**9
"""A run in progress may take `PEAK_TIMES` as many bytes as its Traces may, and at least `LEAST_PEAK`."""
_SINGLE, _HALF = 4, 2
_CANDIDATE, _STEP, _NODE = 96, 640, 1100
"""Bytes of a candidate, of a step without its candidates, and of a node of a search, while it is searched and in the Trace."""
_LOGIT = 44
"""Bytes a logit takes while it is sorted and made a probability in double precision."""


@dataclass(frozen=True)
class TraceSize:
    """The predicted size of a run, in bytes; every number is an upper limit.

    Attributes:
        arrays: weights, scores, the masks' reasons and the rows of a search; `Trace.nbytes`. Exact where a target is
            given and nothing is changed by edits.
        records: steps with their candidates, and the nodes of a search.
        working: what the run takes besides until its Traces are made, the model not included; roughly, and on a GPU of
            both sides together.
    """

    arrays: int
    records: int
    working: int

    @property
    def total(self) -> int:
        """The bytes that are kept; `max_trace_bytes` limits them."""
        return self.arrays + self.records

    @property
    def peak(self) -> int:
        """The bytes that are kept, and those that the run takes besides."""
        return self.total + self.working

    def fits(self, max_trace_bytes: int) -> bool:
        """Tells whether the Traces may be as large as this, and the run meanwhile."""
        return self.total <= max_trace_bytes and self.peak <= max(PEAK_TIMES * max_trace_bytes, LEAST_PEAK)


def predicted(*requests: DecodeRequest) -> TraceSize:
    """The size of all Traces of these runs, which are made one after the other."""
    arrays = records = working = 0
    for request in requests:
        reader, beam, batch = request.model.network, request.beam, request.batch
        sizes = reader.sizes
        n_candidates, n_ends = min(request.n_candidates, sizes.vocabulary), len(reader.end_ids)
        n_sources, n_rows_each = batch.lengths("source"), [request.most_steps(i) for i in range(len(batch))]
        for n_source, n_steps in zip(n_sources, n_rows_each, strict=True):
            arrays += _arrays_of(request, n_source, n_steps)
            n_rows = n_steps if beam is None else rows_of_search(beam, n_steps)
            records += _STEP * (n_steps + 1) + 16 * n_source + n_rows * n_candidates * _CANDIDATE
            if beam is not None:
                # Each continuation that is recorded has the text to it, in up to four bytes a character.
                node = _NODE + 2 * request.model.tokenizer.longest_label * (n_steps + 1)
                records += beam.n_continuations(n_ends) * n_steps * node
        # What is recorded of the padded batch, which its Traces are cut from, and of a search a copy that grows besides;
        # logits; keys and values, which other people's models join anew for each token; scores and weights of one attention,
        # before and after their mask.
        n_source, n_steps = max(n_sources), max(n_rows_each)  # of the padded batch
        live, rows = (1, n_steps) if beam is None else (beam.size, rows_of_search(beam, n_steps))
        # A target that is given, and a prompt, have the logits of all rows at once.
        n_at_once = max(batch.n_rows(i, request.max_length if request.is_forced else 0) for i in range(len(batch)))
        logits = min(rows * sizes.vocabulary, WORKING + sizes.vocabulary) * _LOGIT + n_at_once * sizes.vocabulary * _SINGLE
        cached = 2 * live * sizes.cached * (n_steps + n_source) * _SINGLE
        attention = 4 * max(sizes.heads.values()) * max(n_source, n_steps) ** 2 * _SINGLE
        recorded = (1 if beam is None else 2) * _arrays_of(request, n_source, n_steps)
        once = recorded + logits + cached + attention
        working = max(working, len(batch) * once)
    return TraceSize(arrays, records, working)


def _arrays_of(request: DecodeRequest, n_source: int, n_steps: int) -> int:
    """Bytes of one Trace with so many source tokens and target rows; of a search, with all rows that it may compute."""
    beam, heads, recording = request.beam, request.model.network.sizes.heads, request.recording
    item = _HALF if recording.precision == "float16" else _SINGLE
    # An edit may make the mask of a kind differ from head to head.
    by_head = KINDS if request.mistake else [edit.place.kind for edit in request.edits]
    n_bytes = 0
    for kind, numbers in recording.layers.items():
        n_queries, n_keys = n_source if kind == "encoder" else n_steps, n_steps if kind == "decoder" else n_source
        n_maps = len(numbers) * heads[kind]
        of_cell = n_maps * (item + _SINGLE * request.with_scores) + (n_maps if kind in by_head else 1)
        of_search = 0 if beam is None or kind == "encoder" else rows_of_search(beam, n_steps) * n_maps * item
        n_bytes += (n_queries * of_cell + of_search) * n_keys
    return n_bytes


def rows_of_search(beam: Beam, n_steps: int) -> int:
    """The most rows that a search computes in so many steps: one for `<start>`, then one for each live hypothesis."""
    return 1 + beam.size * (n_steps - 1)


def check(requests: Sequence[DecodeRequest], max_trace_bytes: int) -> None:
    """Raises an error where these runs together are too large.

    Raises:
        TraceTooLarge: with the choices that would be allowed: half precision, one kind, both, then fewer layers: the last ones
            that all kinds have.
    """
    size = predicted(*requests)
    if size.fits(max_trace_bytes):
        return
    sizes, now, n_texts = requests[0].model.network.sizes, requests[0].recording, len(requests[0].texts)
    half, kind = replace(now, precision="float16"), "cross" if "cross" in now.layers else [*now.layers][-1]
    alone = {kind: now.layers[kind]}
    whole = [half, replace(now, layers=alone), replace(half, layers=alone)]
    choices = [[keep] for keep in whole]
    for keep in (now, *whole):
        shared = min(keep.layers.values(), key=len)
        counts = range(len(shared) - 1, 0, -1)
        choices.append([replace(keep, layers=dict.fromkeys(keep.layers, shared[-count:])) for count in counts])
    offers: list[tuple[dict[str, object], int]] = []
    for several in choices:
        for keep in several:
            kept = predicted(*(replace(request, recording=keep) for request in requests))
            if keep != now and kept.fits(max_trace_bytes):
                offer = dict[str, object](keep.keywords(sizes)), kept.total
                offers += [offer] if offer not in offers else []
                break
    words = f"The trace{'' if n_texts == 1 else f' of {n_texts} texts'} would take up to {bytes_words(size.total)}"
    if size.total <= max_trace_bytes:
        most_peak = max(PEAK_TIMES * max_trace_bytes, LEAST_PEAK)
        words += f", and making it up to {bytes_words(size.peak)}, of which {bytes_words(most_peak)} are allowed"
    words += f"; max_trace_bytes={max_trace_bytes} allows {bytes_words(max_trace_bytes)}."
    ways = [f"{', '.join(f'{k}={v!r}' for k, v in options.items())} ({bytes_words(n)})" for options, n in offers[:3]]
    less = ["shorten the text", f"lower max_length{'' if requests[0].beam is None else ' or beam_size'}"]
    less += ["decode fewer texts at once"] if n_texts > 1 else []
    words += f" It fits with {'; or with '.join(ways)}. Or" if ways else " To make it smaller,"
    raise TraceTooLarge(f"{words} {', '.join(less)}, or raise max_trace_bytes.", size.total, max_trace_bytes, tuple(offers))


def bytes_of(trace: Trace) -> int:
    """The bytes of a finished Trace: its arrays, and its records at the most."""
    search = trace.search
    # The steps of a search's best hypothesis share its rows' candidates.
    lists = [step.candidates for step in trace.steps] if search is None else search.candidates
    nodes = 0 if search is None else sum(_NODE + 4 * len(node.text) for node in search.nodes)
    return trace.nbytes + _STEP * (len(trace.steps) + 1) + _CANDIDATE * sum(map(len, lists)) + nodes
