"""The seam at which attention is seen and changed.

A tap is called with every named intermediate of every attention and returns it,
changed or not. Recorders and edits are taps; nothing is ever stored on a module.

The names, in the order in which one attention call hands them over:

| name      | shape                      | what it is                                        |
|-----------|----------------------------|---------------------------------------------------|
| `scores`  | batch, head, query, key    | query · key / √d_k, before the mask               |
| `mask`    | batch or 1, head or 1, query, key | bool, True = masked                        |
| `weights` | batch, head, query, key    | after the softmax, before dropout                 |
| `heads`   | batch, head, query, d_v    | each head's output, before the output projection  |
"""

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from transformer_viz.terms import Kind

if TYPE_CHECKING:
    from torch import Tensor

TapName = Literal["scores", "mask", "weights", "heads"]


class Site(NamedTuple):
    """Where in the model an intermediate was made."""

    kind: Kind
    layer: int
    first_query: int = 0
    """Position of the first query row; above 0 in cached decoding, where earlier rows are done."""


class Tap(Protocol):
    """Sees one intermediate and returns it, or another of the same shape."""

    def __call__(self, site: Site, name: TapName, value: "Tensor") -> "Tensor": ...


def reads(tap: Tap, name: TapName) -> bool:
    """Whether a tap looks at this intermediate; one that does not say which it looks at (`names`) may look at any."""
    names = getattr(tap, "names", None)
    return names is None or name in names


class _Composed:
    """Several taps as one."""

    def __init__(self, taps: tuple[Tap, ...]) -> None:
        self._taps = taps
        self.names = frozenset(name for name in get_args(TapName) if any(reads(tap, name) for tap in taps))

    def __call__(self, site: Site, name: TapName, value: "Tensor") -> "Tensor":
        for tap in self._taps:
            value = tap(site, name, value)
        return value


def compose(*taps: Tap) -> Tap:
    """One tap that applies `taps` from left to right, so a recorder placed last sees the edits."""
    return _Composed(taps)
