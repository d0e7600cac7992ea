"""The options of `decode` about what a Trace keeps: which kinds of attention, which layers, in which precision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from transformer_viz.errors import OptionError, join_names
from transformer_viz.model.sizes import Sizes
from transformer_viz.terms import KIND_TITLES, KINDS, Kind
from transformer_viz.trace.attention import PRECISIONS, Precision
from transformer_viz.trace.trace import Trace


class RecordingKeywords(TypedDict, total=False):
    """Keywords of `decode`."""

    kinds: Sequence[str] | None
    layers: Sequence[int] | None
    precision: str


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """The choice, checked.

    Attributes:
        kinds: in the order of `KINDS`.
        layers: numbers from 0, ascending; None keeps all. Every kind in `kinds` has them.
        precision: of weights; scores are always float32, since their rounding would show in a softmax.
    """

    kinds: tuple[Kind, ...] = KINDS
    layers: tuple[int, ...] | None = None
    precision: Precision = "float32"

    @property
    def is_half(self) -> bool:
        """Whether weights are kept in half precision."""
        return self.precision == "float16"

    def numbers(self, sizes: Sizes) -> dict[Kind, tuple[int, ...]]:
        """The layers that are kept of each kind."""
        return {kind: sizes.layers[kind] if self.layers is None else self.layers for kind in self.kinds}

    def options(self, sizes: Sizes) -> dict[str, object]:
        """Keywords of `decode` that make this choice; JSON-ready, and only what is not as by default."""
        chosen: dict[str, object] = {} if self.kinds == sizes.kinds else {"kinds": list(self.kinds)}
        chosen |= {} if self.layers is None else {"layers": list(self.layers)}
        return chosen | ({"precision": self.precision} if self.is_half else {})


def check_recording(
    sizes: Sizes, kinds: Sequence[str] | None = None, layers: Sequence[int] | None = None, precision: str = "float32"
) -> RecordingOptions:
    """Checks the keywords. One name or number alone is a list of one.

    Raises:
        OptionError: an unknown kind or precision, no kind, or a layer that one of the kinds does not have.
    """
    if precision not in PRECISIONS:
        raise OptionError(f"precision={str(precision)[:40]!r} is not known; choose one of {join_names(PRECISIONS)}")
    names: list[Any] = list(sizes.kinds) if kinds is None else _several(kinds)
    if unknown := [name for name in names if name not in KINDS]:
        raise OptionError(f"kinds: {str(unknown[0])[:40]!r} is not known; choose from {join_names(KINDS)}")
    if not names:
        raise OptionError(f"kinds is empty; choose at least one of {join_names(KINDS)}")
    if lacking := [kind for kind in KINDS if kind in names and kind not in sizes.kinds]:
        raise OptionError(f"kinds: this model has no {KIND_TITLES[lacking[0]]}; choose from {join_names(sizes.kinds)}")
    chosen = tuple(kind for kind in KINDS if kind in names)
    numbers: list[Any] = [] if layers is None else _several(layers)
    if layers is not None and not numbers:
        raise OptionError("layers is empty; choose at least one layer, or leave it out to keep all")
    for kind in chosen:
        there = sizes.layers[kind]
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or number not in there:
                more = "" if len(chosen) == 1 else "; kinds= chooses the kinds that have it"
                which = f"0 to {there[-1]}" if there == tuple(range(len(there))) else join_names(there)
                raise OptionError(f"layers: {str(number)[:40]} is not possible; {kind} attention has layers {which}{more}")
    return RecordingOptions(kinds=chosen, layers=tuple(sorted(set(numbers))) or None, precision=precision)


def keywords_of(trace: Trace, sizes: Sizes) -> RecordingKeywords:
    """The keywords with which another run of this model keeps the same kinds and layers, in the same precision, as `trace`."""
    partial = (each.layers for kind, each in trace.attentions.items() if each.layers != sizes.layers.get(kind))
    return {"kinds": trace.kinds, "layers": next(partial, None), "precision": trace.precision}


def _several(given: object) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
