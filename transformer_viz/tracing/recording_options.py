"""What a run keeps of its attention: which kinds, which layers, in which precision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from transformer_viz.errors import OptionError, listed
from transformer_viz.model.config import ModelConfig
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.search import PRECISIONS, Precision
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

    def numbers(self, config: ModelConfig) -> dict[Kind, tuple[int, ...]]:
        """The layers that are kept of each kind."""
        return {kind: tuple(range(n)) if self.layers is None else self.layers for kind, n in self._sizes(config).items()}

    def partial(self, config: ModelConfig) -> dict[Kind, tuple[int, ...]]:
        """As `Trace.layers`: the kinds of which not all layers are kept."""
        if self.layers is None:
            return {}
        found = self.numbers(config)
        return {kind: found[kind] for kind, n in self._sizes(config).items() if len(found[kind]) < n}

    def options(self) -> dict[str, object]:
        """Keywords of `decode` that make this choice; JSON-ready, and only what is not as by default."""
        chosen: dict[str, object] = {} if self.kinds == KINDS else {"kinds": list(self.kinds)}
        chosen |= {} if self.layers is None else {"layers": list(self.layers)}
        return chosen | ({"precision": self.precision} if self.is_half else {})

    def _sizes(self, config: ModelConfig) -> dict[Kind, int]:
        return {kind: n_layers(config, kind) for kind in self.kinds}


def keep(config: ModelConfig, **options: Unpack[RecordingKeywords]) -> RecordingOptions:
    """Checks the keywords.

    Raises:
        OptionError: an unknown kind or precision, no kind, or a layer that one of the kinds does not have.
    """
    precision = next((name for name in PRECISIONS if name == options.get("precision", "float32")), None)
    if precision is None:
        raise OptionError(f"precision={str(options.get('precision'))[:40]!r} is not known; choose one of {listed(PRECISIONS)}")
    kinds = _kinds(options.get("kinds"))
    return RecordingOptions(kinds=kinds, layers=_layers(options.get("layers"), config, kinds), precision=precision)


def as_in(trace: Trace) -> RecordingKeywords:
    """The keywords that keep of another run what this one has."""
    layers = next(iter(trace.layers.values()), None)
    return {"kinds": trace.kinds, "layers": layers, "precision": trace.precision}


def n_layers(config: ModelConfig, kind: Kind) -> int:
    """How many layers of a kind the model has."""
    return config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers


def _kinds(given: Sequence[str] | None) -> tuple[Kind, ...]:
    if given is None:
        return KINDS
    names = _several(given)
    if unknown := [name for name in names if name not in KINDS]:
        raise OptionError(f"kinds: {str(unknown[0])[:40]!r} is not known; choose from {listed(KINDS)}")
    if not names:
        raise OptionError(f"kinds is empty; choose at least one of {listed(KINDS)}")
    return tuple(kind for kind in KINDS if kind in names)


def _layers(given: Sequence[int] | None, config: ModelConfig, kinds: tuple[Kind, ...]) -> tuple[int, ...] | None:
    if given is None:
        return None
    numbers: list[int] = []
    if not (wanted := _several(given)):
        raise OptionError("layers is empty; choose at least one layer, or leave it out to keep all")
    for kind in kinds:
        most = n_layers(config, kind) - 1
        for number in wanted:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= most:
                more = "" if len(kinds) == 1 else "; kinds= chooses the kinds that have it"
                raise OptionError(f"layers: {str(number)[:40]} is not possible; {kind} attention has layers 0 to {most}{more}")
            numbers.append(number)
    return tuple(sorted(set(numbers)))


def _several(given: object) -> list[object]:
    """One name or number alone is a list of one."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
