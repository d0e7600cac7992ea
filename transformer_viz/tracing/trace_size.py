"""What a Trace keeps of a run's attention, and how large that will be before it is run; what is too large is refused.

The arrays of a Trace are counted exactly where the number of steps is known, and at most where only the limit is.
Candidates and the nodes of a search are Python objects: what each takes at most was measured (`docs/memory.md`).
What a run needs besides, and gives back, is known roughly: enough to refuse what would end the process.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from transformer_viz.addresses import HIGHEST, check_kind, range_words
from transformer_viz.decoding.memory import WORKING
from transformer_viz.errors import OptionError, TraceTooLarge, join_names
from transformer_viz.model.sizes import Sizes
from transformer_viz.numbers_in_words import bytes_words
from transformer_viz.schema import whole_number
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.attention import PRECISIONS, Precision
from transformer_viz.trace.trace import Trace

if TYPE_CHECKING:
    from transformer_viz.decoding.beam import Beam
    from transformer_viz.tracing.decode_request import DecodeRequest

MAX_TRACE_BYTES = 10**9
"""The default of `max_trace_bytes`; `load_trace` reads a little more."""
PEAK_TIMES, LEAST_PEAK = 4, 10**9
"""A run in progress may take `PEAK_TIMES` as many bytes as its Traces may, and at least `LEAST_PEAK`."""
_SINGLE, _HALF = 4, 2
_CANDIDATE, _STEP, _NODE = 96, 640, 1100
"""Bytes of a candidate, of a step without its candidates, and of a node of a search, while it is searched and in the Trace."""
_LOGIT = 44
"""Bytes a logit takes while it is sorted and made a probability in double precision."""


class RecordingKeywords(TypedDict, total=False):
    """Keywords of `decode`."""

    kinds: Sequence[str] | None
    layers: Sequence[int] | None
    precision: str


@dataclass(frozen=True)
class RecordingOptions:
    """The choice, checked.

    Attributes:
        layers: of each kind that is kept, in the order of `KINDS`, the numbers from 0, ascending.
        precision: of weights; scores are always float32, since their rounding would show in a softmax.
    """

    layers: Mapping[Kind, tuple[int, ...]]
    precision: Precision = "float32"

    def keywords(self, sizes: Sizes) -> RecordingKeywords:
        """Keywords of `decode` that make this choice; JSON-ready, and only what is not as by default."""
        chosen: RecordingKeywords = {} if tuple(self.layers) == tuple(sizes.layers) else {"kinds": list(self.layers)}
        if partial := [numbers for kind, numbers in self.layers.items() if numbers != sizes.layers.get(kind)]:
            chosen["layers"] = list(partial[0])
        return chosen if self.precision == "float32" else {**chosen, "precision": self.precision}


def check_recording(
    sizes: Sizes, kinds: Sequence[str] | None = None, layers: Sequence[int] | None = None, precision: str = "float32"
) -> RecordingOptions:
    """Checks the keywords. One name or number alone is a list of one.

    Raises:
        OptionError: an unknown kind or precision, no kind, or a layer that one of the kinds does not have.
    """
    if precision not in PRECISIONS:
        raise OptionError(f"precision={str(precision)[:40]!r} is not known; choose one of {join_names(PRECISIONS)}")
    names, numbers = _several(sizes.layers if kinds is None else kinds), None if layers is None else _several(layers)
    if not names:
        raise OptionError(f"kinds is empty; choose at least one of {join_names(sizes.kinds)}")
    for name in names:
        check_kind(name, sizes.kinds, "this model", "kinds")
    chosen = {kind: sizes.layers[kind] for kind in KINDS if kind in names}
    if numbers is None:
        return RecordingOptions(chosen, precision)
    if not numbers:
        raise OptionError("layers is empty; choose at least one layer, or leave it out to keep all")
    for kind, there in chosen.items():
        for number in numbers:
            if whole_number("layers", number, 0, HIGHEST - 1) not in there:
                more = "" if len(chosen) == 1 else "; kinds= chooses the kinds that have it"
                which = range_words(there, first=0)
                raise OptionError(f"layers: {number} is not possible; {kind} attention has layers {which}{more}")
    return RecordingOptions(dict.fromkeys(chosen, tuple(sorted(set(numbers)))), precision)


def keywords_of(trace: Trace, sizes: Sizes) -> RecordingKeywords:
    """The keywords with which another run of this model keeps the same kinds and layers, in the same precision, as `trace`."""
    layers = {kind: attention.layers for kind, attention in trace.attentions.items()}
    return RecordingOptions(layers, trace.precision).keywords(sizes)


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
        """Whether the Traces may be as large as this, and the run meanwhile."""
        return self.total <= max_trace_bytes and self.peak <= max(PEAK_TIMES * max_trace_bytes, LEAST_PEAK)


def predicted(*requests: "DecodeRequest") -> TraceSize:
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
        # Recorded pieces and their joined copy, logits, keys and values with room to grow, eight copies of one attention.
        n_source, n_steps = max(n_sources), max(n_rows_each)  # of the padded batch
        live, rows = (1, n_steps) if beam is None else (beam.size, rows_of_search(beam, n_steps))
        # A target that is given, and a prompt, have the logits of all rows at once.
        n_at_once = max(batch.n_given) + (request.max_length if request.is_forced else 0)
        logits = min(rows * sizes.vocabulary, WORKING + sizes.vocabulary) * _LOGIT + n_at_once * sizes.vocabulary * _SINGLE
        cached = live * sizes.cached * 4 * (n_steps + n_source) * _SINGLE
        attention = 8 * max(sizes.heads.values()) * max(n_source, n_steps) ** 2 * _SINGLE
        once = 2 * _arrays_of(request, n_source, n_steps) + logits + cached + attention
        working = max(working, len(batch) * once)
    return TraceSize(arrays, records, working)


def _arrays_of(request: "DecodeRequest", n_source: int, n_steps: int) -> int:
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


def rows_of_search(beam: "Beam", n_steps: int) -> int:
    """The most rows that a search computes in so many steps: one for `<start>`, then one for each live hypothesis."""
    return 1 + beam.size * (n_steps - 1)


def check(requests: Sequence["DecodeRequest"], max_trace_bytes: int) -> None:
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


def _several(given: object) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
