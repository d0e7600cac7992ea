"""How large a run's Trace will be, before it is run: `trace_size`, and the refusal of what is too large.

The arrays of a Trace are counted exactly where the number of steps is known, and at most where only the limit is.
Candidates and the nodes of a search are Python objects: what each takes at most was measured (`docs/memory.md`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from transformer_viz.errors import OptionError, TraceTooLarge
from transformer_viz.model.config import ModelConfig
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.recording_options import RecordingOptions

if TYPE_CHECKING:
    from transformer_viz.decoding.beam import Beam

MAX_TRACE_BYTES = 10**9
"""Unless a caller sets another; `load_trace` reads a little more."""
PEAK_TIMES, LEAST_PEAK = 4, 10**9
"""While a run is made it may take so many times what its Traces may, and at any rate so many bytes."""
_SINGLE, _HALF, _DOUBLE = 4, 2, 8
_CANDIDATE, _STEP, _NODE = 96, 640, 1100
"""Bytes of a (token, probability), of a step without them, and of a continuation of a search in both its forms."""
_LOGIT = 44
"""Bytes a logit takes while it is sorted and made a probability in double precision."""
_ATTENTION_COPIES = 8
"""Of the scores of one layer, from the product of queries and keys to the weights that are used."""


@dataclass(frozen=True)
class TraceSize:
    """Bytes, all at the most.

    Attributes:
        arrays: weights, scores, the masks' reasons and the rows of a search; `Trace.nbytes`. Exact where a target is
            given and nothing is changed by edits.
        records: steps with their candidates, and the nodes of a search.
        peak: what a run takes until its Traces are made, the Traces included and the model not. On a GPU this is the
            sum of what both sides take.
    """

    arrays: int
    records: int
    peak: int

    @property
    def total(self) -> int:
        """What is kept; `max_trace_bytes` limits it."""
        return self.arrays + self.records


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What decides the size of a run, before it is run.

    Attributes:
        config: sizes of the model.
        keep: what is kept of its attention.
        n_sources: source tokens of each Trace, padding that is kept included.
        n_steps: target rows of each Trace, at the most.
        source_width: of the padded batch.
        target_width: likewise, at the most.
        n_candidates: that each step keeps.
        with_scores: whether scores are kept too.
        by_head: kinds whose mask may differ from head to head.
        beam: how to search, or None.
        forced: whether the target is given, and read in one pass.
        recomputed: whether every step computes all rows again.
        longest_token: characters.
    """

    config: ModelConfig
    keep: RecordingOptions
    n_sources: Sequence[int]
    n_steps: Sequence[int]
    source_width: int
    target_width: int
    n_candidates: int
    with_scores: bool = False
    by_head: frozenset[Kind] = frozenset()
    beam: "Beam | None" = None
    forced: bool = False
    recomputed: bool = False
    longest_token: int = 1


def predicted(plan: Plan) -> TraceSize:
    """The size of all Traces of a run together."""
    pairs = list(zip(plan.n_sources, plan.n_steps, strict=True))
    arrays = sum(_arrays(plan, n_source, n_steps) for n_source, n_steps in pairs)
    records = sum(_records(plan, n_source, n_steps) for n_source, n_steps in pairs)
    return TraceSize(arrays, records, arrays + records + _working(plan))


def check(plans: Sequence[Plan], max_trace_bytes: int, times: int = 1) -> TraceSize:
    """The size of all these runs together, so many times; or a TraceTooLarge that says what would be allowed."""
    size = together(plans, times)
    if _fits(size, max_trace_bytes):
        return size
    keeps = _offers(plans, max_trace_bytes, times)
    offers = tuple((keep.options(), together(_kept(plans, keep), times).total) for keep in keeps)
    raise TraceTooLarge(_refusal(plans, size, max_trace_bytes, offers), size.total, max_trace_bytes, offers)


def together(plans: Sequence[Plan], times: int = 1) -> TraceSize:
    """All are kept, and they are made one after the other."""
    sizes = [predicted(plan) for plan in plans]
    if len(sizes) == times == 1:
        return sizes[0]
    arrays, records = (times * sum(getattr(size, name) for size in sizes) for name in ("arrays", "records"))
    return TraceSize(arrays, records, arrays + records + max(size.peak - size.total for size in sizes))


def rows_of_search(beam: "Beam", n_steps: int) -> int:
    """The most rows that a search computes in so many steps: one for `<start>`, then one for each live hypothesis."""
    return 1 + beam.size * (n_steps - 1)


def array_bytes(plan: Plan, n_source: int, n_steps: int, n_rows: int | None = None, best_steps: int | None = None) -> int:
    """Of one Trace with these numbers; `n_rows` and `best_steps` are a search's rows and the length of its best."""
    own = n_steps if best_steps is None else best_steps
    shapes: dict[Kind, int] = {"encoder": n_source**2, "decoder": own**2, "cross": own * n_source}
    n_heads, item = plan.config.n_heads, _HALF if plan.keep.is_half else _SINGLE
    total = 0
    for kind, numbers in plan.keep.numbers(plan.config).items():
        n_maps = len(numbers) * n_heads
        total += shapes[kind] * (n_maps * (item + _SINGLE * plan.with_scores) + (n_maps if kind in plan.by_head else 1))
        if n_rows is not None and kind != "encoder":
            total += n_rows * n_maps * item * (n_steps if kind == "decoder" else n_source)
    return total


def _arrays(plan: Plan, n_source: int, n_steps: int) -> int:
    return array_bytes(plan, n_source, n_steps, None if plan.beam is None else rows_of_search(plan.beam, n_steps))


def _records(plan: Plan, n_source: int, n_steps: int) -> int:
    n_candidates = min(plan.n_candidates, plan.config.target_vocabulary_size)
    rows = n_steps if plan.beam is None else rows_of_search(plan.beam, n_steps)
    tokens = _STEP * (n_steps + 1) + 16 * n_source
    # As many continuations again are recorded as are kept; each knows the text to it, in up to four bytes a character.
    nodes = 0 if plan.beam is None else 2 * plan.beam.size * n_steps
    return tokens + rows * n_candidates * _CANDIDATE + nodes * (_NODE + 2 * plan.longest_token * (n_steps + 1))


def _working(plan: Plan) -> int:
    """What is let go once the Traces are made: recorded pieces, the same put together, logits, keys and values."""
    config, batch = plan.config, len(plan.n_sources)
    n_source, n_steps = plan.source_width, plan.target_width
    live = batch * (1 if plan.beam is None else plan.beam.size)
    rows = batch * (n_steps if plan.beam is None else rows_of_search(plan.beam, n_steps))
    n_kinds = plan.keep.numbers(config)
    cells: dict[Kind, int] = {"encoder": batch * n_source**2, "decoder": rows * n_steps, "cross": rows * n_source}
    item = (_HALF if plan.keep.is_half else _SINGLE) + _SINGLE * plan.with_scores
    pieces = 0
    for kind, numbers in n_kinds.items():
        n_masks = config.n_heads if kind in plan.by_head else 1
        pieces += len(numbers) * cells[kind] * (config.n_heads * item + n_masks)
    logits = rows * config.target_vocabulary_size * _LOGIT
    return 2 * pieces + logits + _model(plan, live)


def _model(plan: Plan, live: int) -> int:
    """Inside the model: the largest attention, the widest layer, keys and values with room to grow and to be reordered."""
    config, n_source, n_steps = plan.config, plan.source_width, plan.target_width
    batch = len(plan.n_sources)
    in_one_pass = n_steps if plan.forced or plan.recomputed else 1
    largest = max(batch * n_source**2, live * in_one_pass * max(n_steps, n_source), live * max(n_steps, n_source))
    attention = _ATTENTION_COPIES * _SINGLE * config.n_heads * largest
    tokens = max(batch * n_source, live * in_one_pass)
    widths = config.d_ff + 8 * config.d_model + 4 * config.n_heads * (config.key_width + config.value_width)
    per_token = config.n_decoder_layers * config.n_heads * (config.key_width + config.value_width) * _SINGLE
    # Buffers double when they are full, and the old ones live until the new ones are filled.
    cached = live * per_token * (2 * max(16, 2 * n_steps) + 2 * n_source)
    return attention + tokens * widths * _SINGLE + cached + live * n_source * config.d_model * _DOUBLE


def _fits(size: TraceSize, most: int) -> bool:
    return size.total <= most and size.peak <= _most_peak(most)


def _most_peak(most: int) -> int:
    return max(PEAK_TIMES * most, LEAST_PEAK)


def _kept(plans: Sequence[Plan], keep: RecordingOptions) -> list[Plan]:
    return [replace(plan, keep=keep) for plan in plans]


def _offers(plans: Sequence[Plan], most: int, times: int) -> list[RecordingOptions]:
    """Other choices that fit: half precision, one kind, both, then fewer layers: the last ones that all kinds have."""

    def fits(keep: RecordingOptions) -> bool:
        return _fits(together(_kept(plans, keep), times), most)

    def fewer_layers(keep: RecordingOptions) -> RecordingOptions | None:
        shared = min(keep.numbers(plans[0].config).values(), key=len)
        choices = (replace(keep, layers=shared[-count:]) for count in range(len(shared) - 1, 0, -1))
        return next(filter(fits, choices), None)

    now = plans[0].keep
    half = replace(now, precision="float16")
    kind: Kind = "cross" if "cross" in now.kinds else now.kinds[-1]
    whole = [half, replace(now, kinds=(kind,)), replace(half, kinds=(kind,))]
    fewer = [found for keep in (now, *whole) if (found := fewer_layers(keep)) is not None]
    return list(dict.fromkeys([keep for keep in whole if keep != now and fits(keep)] + fewer))


def _refusal(plans: Sequence[Plan], size: TraceSize, most: int, offers: Sequence[tuple[dict[str, Any], int]]) -> str:
    n_texts, is_search = len(plans[0].n_sources), plans[0].beam is not None
    said = f"The trace{'' if n_texts == 1 else f' of {n_texts} texts'} would take up to {megabytes(size.total)}"
    if size.total <= most:
        said += f", and making it up to {megabytes(size.peak)}, of which {megabytes(_most_peak(most))} are allowed"
    said += f"; max_trace_bytes={most} allows {megabytes(most)}."
    ways = [f"{', '.join(f'{k}={v!r}' for k, v in options.items())} ({megabytes(n)})" for options, n in offers[:3]]
    less = ["shorten the text", f"lower max_length{' or beam_size' if is_search else ''}"]
    less += ["decode fewer texts at once"] if n_texts > 1 else []
    fits = f" It fits with {'; or with '.join(ways)}. Or" if ways else " To make it smaller,"
    return f"{said}{fits} {', '.join(less)}, or raise max_trace_bytes."


def megabytes(n_bytes: float) -> str:
    """`0.214 MB` as `214 kB`; three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= 0.9995 * size:
            return f"{n_bytes / size:,.0f} {unit}" if n_bytes >= 999.5 * size else f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes / 1e3:.3g} kB"


def checked_limit(value: int | None) -> int:
    """`max_trace_bytes`, or an OptionError."""
    if value is None:
        return MAX_TRACE_BYTES
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"max_trace_bytes={value!r} is not possible; it is a whole number of bytes, at least 1")
    return value


def held_bytes(trace: Trace) -> int:
    """What a finished Trace takes: its arrays, and its records at the most."""
    search = trace.search
    # The steps of a search's best hypothesis share its rows' candidates.
    lists = [step.candidates for step in trace.steps] if search is None else search.candidates
    nodes = 0 if search is None else sum(_NODE + 4 * len(node.text) for node in search.nodes)
    return trace.nbytes + _STEP * (len(trace.steps) + 1) + _CANDIDATE * sum(map(len, lists)) + nodes
