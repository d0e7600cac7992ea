"""Taps: callbacks that see and may change every intermediate value of attention.

A tap is called with the named intermediates of every attention and returns each,
changed or not. `RecordTap` and `ReplaceTap` are enough for most; recorders and edits are taps too.
Nothing is ever stored on a module.

`Tap` lists the names with their shapes.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from transformer_viz.errors import OptionError, join_names, short_repr
from transformer_viz.terms import Kind

if TYPE_CHECKING:
    from torch import Tensor

TapName = Literal[
    "residual_before",
    "entered",
    "query",
    "key",
    "value",
    "bias",
    "scores",
    "mask",
    "weights",
    "heads",
    "added",
    "residual_after",
    "state",
]


class Site(NamedTuple):
    """The place in the model where an intermediate was made."""

    kind: Kind
    layer: int
    first_query: int = 0
    """Position of the first query row; above 0 in cached decoding, where earlier rows are done."""


class Tap(Protocol):
    """A callable that gets one intermediate and returns it, or another of the same shape.

    One that never changes anything may say so by an attribute `changes_nothing`.

    The names, in the order in which one layer hands them over:

    | name              | shape                             | what it is                                                   |
    |-------------------|-----------------------------------|--------------------------------------------------------------|
    | `residual_before` | batch, query, d_model             | the residual stream as the attention's sublayer finds it     |
    | `entered`         | batch, query, d_model             | what queries are made of, and in self-attention keys and     |
    |                   |                                   | values: the stream, after the norm where that comes first    |
    | `query`           | batch, head, query, d_k           | after the rotation, where positions rotate                   |
    | `key`             | batch, head, key, d_k             | after the rotation; repeated for each head that shares it    |
    | `value`           | batch, head, key, d_v             | repeated for each head that shares it                        |
    | `bias`            | batch or 1, head or 1, query, key | what positions add to the scores, where they do              |
    | `scores`          | batch, head, query, key           | query · key / √d_k, capped where they are, and with the      |
    |                   |                                   | bias, before the mask                                        |
    | `mask`            | batch or 1, head or 1, query, key | bool, True = masked                                          |
    | `weights`         | batch, head, query, key           | after the softmax, before dropout                            |
    | `heads`           | batch, head, query, d_v           | each head's output, before the output projection             |
    | `added`           | batch, query, d_model             | what the output projection makes of all heads, with its bias |
    | `residual_after`  | batch, query, d_model             | the residual stream as the sublayer leaves it                |
    | `state`           | batch, position, d_model          | the residual stream after a layer of a stack (kind `encoder` |
    |                   |                                   | or `decoder`); layer −1 is what the first layer reads        |

    A step of cached decoding hands over its one row (`Site.first_query`), and the keys and values of all rows so far. What a
    tap returns for the `state` of the last decoder layer may have more sentences: they go through the final norm and the output
    like the others.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> tap = tv.RecordTap("heads")
        >>> tv.decode(model, "hello", tap=tap).text
        'olleh'
        >>> tap.kept[tv.Site("cross", 0)]["heads"].shape  # batch, head, query, d_v: the last step's one row
        torch.Size([1, 4, 1, 32])
        >>> off = tv.ReplaceTap("heads", lambda site, value: value * 0 if site.kind == "cross" else value)
        >>> tv.decode(model, "hello", tap=off).text == "olleh"
        False
    """

    @property
    def names(self) -> Collection[str]:
        """The intermediates that it is called with."""

    def __call__(self, site: Site, name: TapName, value: "Tensor") -> "Tensor": ...


class RecordTap:
    """A tap that keeps intermediates of every attention, of a call of attention that is repeated the last.

    Attributes:
        names: which it keeps.
        kept: by attention, in the order of the calls, and by name.
    """

    changes_nothing = True

    def __init__(self, *names: TapName) -> None:
        self.names = frozenset(names)
        self.kept: dict[Site, dict[TapName, Tensor]] = {}

    def __call__(self, site: Site, name: TapName, value: "Tensor") -> "Tensor":
        self.kept.setdefault(Site(site.kind, site.layer), {})[name] = value
        return value


class ReplaceTap:
    """A tap that replaces an intermediate of every attention by what a function makes of it, which is of the same shape."""

    def __init__(self, name: TapName, change: Callable[[Site, "Tensor"], "Tensor"]) -> None:
        self.names = frozenset({name})
        self._change = change

    def __call__(self, site: Site, name: TapName, value: "Tensor") -> "Tensor":
        return self._change(site, value)


class _Composed:
    """Several taps as one."""

    def __init__(self, taps: tuple[Tap, ...]) -> None:
        self.names = frozenset[str]().union(*(tap.names for tap in taps))
        self._readers = {name: [tap for tap in taps if name in tap.names] for name in self.names}

    def __call__(self, site: Site, name: TapName, value: "Tensor") -> "Tensor":
        for tap in self._readers[name]:
            value = tap(site, name, value)
        return value


def checked(tap: Tap | None) -> Tap | None:
    """Returns a tap that somebody gave, or raises an OptionError where it is none."""
    if tap is None:
        return None
    names = getattr(tap, "names", None)
    if not callable(tap) or not isinstance(names, Collection) or isinstance(names, str):
        raise OptionError(
            f"tap={short_repr(tap)} is not possible; it is a callable with an attribute `names`, such as tv.RecordTap('heads')"
        )
    if unknown := [name for name in names if name not in get_args(TapName)]:
        raise OptionError(f"tap: {short_repr(unknown[0])} is no intermediate; choose from {join_names(get_args(TapName))}")
    return tap


def compose(*taps: Tap | None) -> Tap | None:
    """One tap that applies `taps` from left to right, so that a recorder placed last sees the edits; None of none."""
    there = tuple(tap for tap in taps if tap is not None)
    return _Composed(there) if len(there) > 1 else there[0] if there else None
