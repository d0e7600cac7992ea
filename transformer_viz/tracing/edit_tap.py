"""Edits checked and carried out: a tap that flips masks, switches heads off and forces rows of weights."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from transformer_viz.edits import Edit, Flip, Force, HeadOff, MaskOff
from transformer_viz.errors import OptionError
from transformer_viz.model.mistakes import Mistake, MistakeTap
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Site, Tap, TapName, compose
from transformer_viz.terms import KIND_TITLES, Kind


class EditTap:
    """Applies edits in their order, at every query and key position that the run reaches.

    Args:
        edits: what is changed.
        n_heads: of each kind.
        closed: kinds whose padding no edit opens: a key that no row may see stays masked, as if the text stood alone.
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
        if not here:
            return value
        if name == "mask":
            # A key that some row may see is no padding: in self-attention each sees itself, cross-attention is alike for all.
            seen_by_none = value.all(-2, keepdim=True).all(1, keepdim=True)
            self._padding = seen_by_none if site.kind in self.closed else torch.zeros_like(seen_by_none)
        value = value.clone()
        for edit in here:
            head = edit.place.head
            heads = slice(None) if head is None else slice(head, head + 1)
            if name == "heads":
                if isinstance(edit, HeadOff):
                    value[:, heads] = 0.0
                continue
            if isinstance(edit, HeadOff):
                continue
            if name == "mask" and head is not None:
                # An axis for heads, where one of them is changed alone.
                value = value.expand(-1, self.n_heads[site.kind], -1, -1).clone()
            rows = slice(None)
            if isinstance(edit, Flip | Force) and edit.query is not None:
                # The query's row in this call; empty where the call does not hold it.
                row = edit.query - site.first_query
                rows = slice(row, row + 1) if 0 <= row < value.shape[-2] else slice(0, 0)
            if isinstance(edit, Force):
                forced, is_reached = self._forced(edit, value)
                if name == "mask":
                    value[:, heads, rows] &= (forced == 0) | ~is_reached
                else:
                    value[:, heads, rows] = torch.where(is_reached, forced, value[:, heads, rows])
            elif isinstance(edit, MaskOff) and name == "mask":
                value[:, heads] = False
            elif isinstance(edit, Flip) and name == "mask":
                columns = slice(None) if edit.key is None else slice(edit.key, min(edit.key + 1, value.shape[-1]))
                value[:, heads, rows, columns] = ~value[:, heads, rows, columns]
        return value | self._padding if name == "mask" else value

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


def looks_ahead(edits: Sequence[Edit], mistake: Mistake | None) -> bool:
    """Tells whether a later token can change an earlier row, so that cached decoding would be wrong."""
    changes_decoder = any(edit.place.kind == "decoder" and not isinstance(edit, HeadOff) for edit in edits)
    return changes_decoder or (mistake is not None and mistake.looks_ahead)


def check_edits(edits: Iterable[Edit], sizes: Sizes, n_source: int, most_steps: int) -> None:
    """Raises an OptionError where an edit names a layer, head or position that this run cannot have.

    Args:
        edits: what is to be done.
        sizes: of the model.
        n_source: source tokens, padding included.
        most_steps: the most target tokens that can come.
    """
    for edit in edits:
        if edit.place.kind not in sizes.layers:
            raise OptionError(f"edit {str(edit)!r}: this model has no {KIND_TITLES[edit.place.kind]}")
        _within(edit, "layer", edit.place.layer, sizes.layers[edit.place.kind][-1] + 1)
        _within(edit, "head", edit.place.head, sizes.heads[edit.place.kind])
        n_queries = n_source if edit.place.kind == "encoder" else most_steps
        n_keys = most_steps if edit.place.kind == "decoder" else n_source
        if isinstance(edit, Flip | Force):
            _within(edit, "query", edit.query, n_queries)
        keys = [edit.key] if isinstance(edit, Flip) else [key for key, _ in edit.shares] if isinstance(edit, Force) else []
        for key in keys:
            _within(edit, "key", key, n_keys)


def _within(edit: Edit, name: str, value: int | None, size: int) -> None:
    if value is not None and value >= size:
        raise OptionError(f"edit {str(edit)!r}: there is no {name} {value + 1} here; possible is 1 to {size}")
