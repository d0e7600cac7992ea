"""The choice of what a Trace keeps of a run's attention: kinds, layers and precision."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from transformer_viz.addresses import HIGHEST, check_kind, range_words
from transformer_viz.errors import OptionError, join_names
from transformer_viz.model.sizes import Sizes
from transformer_viz.schema import whole_number
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.attention import PRECISIONS, Precision
from transformer_viz.trace.trace import Trace

MAX_TRACE_BYTES = 10**9
"""The default of `max_trace_bytes`; `load_trace` reads a little more."""


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


def _several(given: object) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
