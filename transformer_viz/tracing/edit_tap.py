"""Edits carried out: a tap that flips masks, switches heads off and forces rows of weights."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from transformer_viz import edits as plain
from transformer_viz.edits import Edit, Flip, Force, HeadOff, MaskOff, Place
from transformer_viz.model.mistakes import Mistake, MistakeTap
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Site, Tap, TapName, compose
from transformer_viz.terms import Kind


class EditTap:
    """Applies edits in their order, at every query and key position that the run reaches."""

    names = frozenset({"mask", "weights", "heads"})

    def __init__(self, edits: Sequence[Edit], n_heads: Mapping[Kind, int]) -> None:
        self.edits = tuple(edits)
        self.n_heads = n_heads

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        here = [e for e in self.edits if e.place.kind == site.kind and e.place.layer in (None, site.layer)]
        if name not in self.names or not here:
            return value
        change = {"mask": self._mask, "weights": self._weights, "heads": self._heads}[name]
        for edit in here:
            value = change(edit, site, value)
        return value

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
            masked[:, heads, _row(edit.query, site, masked)] &= self._forced(edit, masked)[0] == 0
        return masked

    def _weights(self, edit: Edit, site: Site, weights: Tensor) -> Tensor:
        if not isinstance(edit, Force):
            return weights
        weights = weights.clone()
        row, reached = self._forced(edit, weights)
        if reached:
            weights[:, _whole_or(edit.place.head), _row(edit.query, site, weights)] = row
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

    def _forced(self, edit: Force, like: Tensor) -> tuple[Tensor, bool]:
        """The row of weights, (key,), and whether all the keys that it names exist at this step."""
        n_keys = like.shape[-1]
        row = torch.zeros(n_keys, dtype=torch.float32 if like.dtype == torch.bool else like.dtype, device=like.device)
        if not edit.shares:
            return row + 1 / n_keys, True
        if any(key >= n_keys for key, _ in edit.shares):
            return row, False
        for key, weight in edit.shares:
            row[key] = weight
        return row, True


def changing_tap(edits: Sequence[Edit], mistake: Mistake | None, sizes: Sizes) -> Tap | None:
    """One tap for a mistake and edits on top of it, or None where there is neither. A new one for every run."""
    taps: list[Tap] = []
    if mistake is not None:
        taps.append(MistakeTap(mistake))
    if edits:
        taps.append(EditTap(edits, sizes.heads))
    return compose(*taps) if taps else None


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
