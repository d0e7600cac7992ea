"""Edits carried out: a tap that flips masks, switches heads off and forces rows of weights."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from transformer_viz import edits as plain
from transformer_viz.addresses import Place
from transformer_viz.edits import Edit, Flip, Force, HeadOff, MaskOff
from transformer_viz.model.mistakes import Mistake, MistakeTap
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Site, Tap, TapName, compose
from transformer_viz.terms import Kind


class EditTap:
    """Applies edits in their order, at every query and key position that the run reaches.

    Args:
        edits: what is changed.
        n_heads: of each kind.
        closed: kinds of which a text has no padding to look at: what no row may see stays masked, as if it stood alone.
    """

    names = frozenset({"mask", "weights", "heads"})

    def __init__(self, edits: Sequence[Edit], n_heads: Mapping[Kind, int], closed: Collection[Kind] = ()) -> None:
        self.edits = tuple(edits)
        self.n_heads = n_heads
        self.closed = frozenset(closed)
        self._padding = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
        """bool (batch or 1, 1, 1, key), of the attention whose mask was seen last."""

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        here = [e for e in self.edits if e.place.kind == site.kind and e.place.layer in (None, site.layer)]
        if name not in self.names or not here:
            return value
        if name == "mask":
            # A key that some row may see is no padding: in self-attention each sees itself, cross-attention is alike for all.
            seen_by_none = value.all(-2, keepdim=True).all(1, keepdim=True)
            self._padding = seen_by_none if site.kind in self.closed else torch.zeros_like(seen_by_none)
        change = {"mask": self._mask, "weights": self._weights, "heads": self._heads}[name]
        for edit in here:
            value = change(edit, site, value)
        return value | self._padding if name == "mask" else value

    def _mask(self, edit: Edit, site: Site, masked: Tensor) -> Tensor:
        if isinstance(edit, HeadOff):
            return masked
        masked = self._own(masked, edit.place)
        heads = _whole_or(edit.place.head)
        if isinstance(edit, MaskOff):
            masked[:, heads] = False
        elif isinstance(edit, Flip):
            rows, columns = _row(edit.query, site, masked), _column(edit.key, masked)
            masked[:, heads, rows, columns] = ~masked[:, heads, rows, columns]
        else:
            rows = _row(edit.query, site, masked)
            forced, is_reached = self._forced(edit, masked)
            masked[:, heads, rows] &= (forced == 0) | ~is_reached
        return masked

    def _weights(self, edit: Edit, site: Site, weights: Tensor) -> Tensor:
        if not isinstance(edit, Force):
            return weights
        weights = weights.clone()
        heads, rows = _whole_or(edit.place.head), _row(edit.query, site, weights)
        forced, is_reached = self._forced(edit, weights)
        weights[:, heads, rows] = torch.where(is_reached, forced, weights[:, heads, rows])
        return weights

    def _heads(self, edit: Edit, site: Site, heads: Tensor) -> Tensor:
        if not isinstance(edit, HeadOff):
            return heads
        heads = heads.clone()
        heads[:, _whole_or(edit.place.head)] = 0.0
        return heads

    def _own(self, masked: Tensor, place: Place) -> Tensor:
        """A copy that may be written to, with an axis for heads where one of them is changed alone."""
        n_heads = masked.shape[1] if place.head is None else self.n_heads[place.kind]
        return masked.expand(-1, n_heads, -1, -1).clone()

    def _forced(self, edit: Force, like: Tensor) -> tuple[Tensor, Tensor]:
        """The row of weights, (batch or 1, 1, 1, key), and bool (batch or 1, 1, 1, 1): whether its keys exist at this step."""
        n_keys, is_padding = like.shape[-1], self._padding
        dtype = torch.float32 if like.dtype == torch.bool else like.dtype
        if not edit.shares:
            is_own = (~is_padding).to(dtype).expand(-1, -1, -1, n_keys)
            return is_own / is_own.sum(-1, keepdim=True).clamp(min=1), torch.ones_like(is_padding[..., :1])
        row = torch.zeros(1, 1, 1, n_keys, dtype=dtype, device=like.device)
        if any(key >= n_keys for key, _ in edit.shares):
            return row, torch.zeros_like(is_padding[..., :1])
        for key, weight in edit.shares:
            row[..., key] = weight
        return row, ~(is_padding & (row > 0)).any(-1, keepdim=True)


def changing_tap(edits: Sequence[Edit], mistake: Mistake | None, sizes: Sizes, closed: Collection[Kind] = ()) -> Tap | None:
    """One tap for a mistake and edits on top of it, or None where there is neither. A new one for every run.

    Edits open no padding of the kinds in `closed` (see `EditTap`).
    """
    return compose(MistakeTap(mistake) if mistake is not None else None, EditTap(edits, sizes.heads, closed) if edits else None)


def kind_sizes(sizes: Sizes) -> dict[Kind, tuple[int, int]]:
    """Layers and heads of every kind, for `edits.check`."""
    return {kind: (numbers[-1] + 1, sizes.heads[kind]) for kind, numbers in sizes.layers.items()}


def looks_ahead(edits: Sequence[Edit], mistake: Mistake | None) -> bool:
    """Whether a later token can change an earlier row, so that cached decoding would be wrong."""
    return plain.may_look_ahead(edits) or (mistake is not None and mistake.looks_ahead)


def _whole_or(number: int | None) -> slice:
    return slice(None) if number is None else slice(number, number + 1)


def _row(query: int | None, site: Site, like: Tensor) -> slice:
    """The query's row in this call; empty where the call does not hold it."""
    if query is None:
        return slice(None)
    row = query - site.first_query
    return slice(row, row + 1) if 0 <= row < like.shape[-2] else slice(0, 0)


def _column(key: int | None, like: Tensor) -> slice:
    return slice(None) if key is None else slice(key, min(key + 1, like.shape[-1]))
