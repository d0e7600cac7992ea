"""A tap that copies what attention did, and puts the steps of a decoding together again."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from transformer_viz.model.tap import Site, TapName
from transformer_viz.terms import Kind


class Recorder:
    """Keeps the named intermediates of every attention it sees; returns all of them unchanged.

    Args:
        names: which intermediates to keep (see `model.tap`).
        kinds: which kinds of attention to keep; all by default.
        layers: which layers to keep; all by default.
        half: whether weights are kept in half precision.
    """

    def __init__(
        self,
        names: Sequence[TapName] = ("weights", "mask"),
        kinds: Sequence[Kind] | None = None,
        layers: Sequence[int] | None = None,
        *,
        half: bool = False,
    ) -> None:
        self.names = frozenset(names)
        self.kinds = None if kinds is None else frozenset(kinds)
        self.layers = None if layers is None else frozenset(layers)
        self.half = half
        self._pieces: dict[tuple[Kind, TapName, int], list[Tensor]] = defaultdict(list)

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name in self.names and self._is_kept(site):
            pieces = self._pieces[site.kind, name, site.layer]
            if site.first_query == 0:
                # A pass that begins anew, as in decoding without a cache, replaces what was seen.
                pieces.clear()
            pieces.append(value.detach().half() if self.half and name == "weights" else value.detach())
        return value

    def _is_kept(self, site: Site) -> bool:
        return (self.kinds is None or site.kind in self.kinds) and (self.layers is None or site.layer in self.layers)

    def gathered(self, kind: Kind, name: TapName, fill: float | bool = 0) -> Tensor | None:
        """All layers and steps as one tensor, or None when this kind was not seen.

        What was seen is one pass over all rows, or one row a step. Then a step's keys may end at its own position;
        the later ones, which did not exist yet, get `fill`.

        Returns:
            (batch, layer, head, query, key); the head axis is 1 where the intermediate has no heads.
        """
        if name not in self.names or not (each := self._by_layer(kind, name)):
            return None
        (batch, _, _, first_keys), last = each[0][0].shape, each[0][-1]
        n_keys = last.shape[-1]
        n_queries = sum(piece.shape[-2] for piece in each[0])
        # An edit of one head gives its layer's mask an axis for heads that the others do not have.
        n_heads = max(pieces[0].shape[1] for pieces in each)
        whole = torch.full((batch, len(each), n_heads, n_queries, n_keys), fill, dtype=last.dtype, device=last.device)
        # All rows at once: a copy for each step and layer takes as long as a tenth of the decoding.
        places = None if first_keys == n_keys else _staircase(n_keys).to(last.device)
        for place, pieces in enumerate(each):
            if places is None:
                whole[:, place] = torch.cat(pieces, -2)
            else:
                cells = torch.cat(pieces, -1)[..., 0, :].expand(batch, n_heads, -1)
                whole[:, place].flatten(-2).index_copy_(-1, places, cells)
        return whole

    def steps(self, kind: Kind, name: TapName) -> list[Tensor]:
        """One tensor a step of a decoding whose batch changes from step to step, as in beam search.

        Returns:
            For each step (row of its batch, layer, head, key).
        """
        return [torch.stack([piece[:, :, 0] for piece in step], 1) for step in zip(*self._by_layer(kind, name), strict=True)]

    def _by_layer(self, kind: Kind, name: TapName) -> list[list[Tensor]]:
        """What was kept of each layer, one after the other."""
        return [self._pieces[key] for key in sorted(key for key in self._pieces if key[:2] == (kind, name))]


@lru_cache(maxsize=4)
def _staircase(n: int) -> Tensor:
    """Where rows of 1, 2, … n cells, one after the other, stand in the flattened (n, n)."""
    rows, keys = torch.tril_indices(n, n)
    return rows * n + keys
