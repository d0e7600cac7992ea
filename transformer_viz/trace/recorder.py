"""A tap that copies what attention did, and puts the steps of a decoding together again."""

from collections import defaultdict
from collections.abc import Sequence

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
        self._pieces: dict[tuple[Kind, TapName, int], list[tuple[int, Tensor]]] = defaultdict(list)

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name in self.names and self._is_kept(site):
            pieces = self._pieces[site.kind, name, site.layer]
            if site.first_query == 0:
                # A pass that begins anew, as in decoding without a cache, replaces what was seen.
                pieces.clear()
            piece = value.detach()
            pieces.append((site.first_query, piece.half() if self.half and name == "weights" else piece))
        return value

    def _is_kept(self, site: Site) -> bool:
        return (self.kinds is None or site.kind in self.kinds) and (self.layers is None or site.layer in self.layers)

    def gathered(self, kind: Kind, name: TapName, fill: float | bool = 0) -> Tensor | None:
        """All layers and steps as one tensor, or None when this kind was not seen.

        In cached decoding a step's keys end at its own position; the later ones, which did not
        exist yet, get `fill`.

        Returns:
            (batch, layer, head, query, key); the head axis is 1 where the intermediate has no heads.
        """
        layers = sorted(layer for k, n, layer in self._pieces if (k, n) == (kind, name))
        if not layers:
            return None
        first = self._pieces[kind, name, layers[0]]
        n_queries = max(start + piece.shape[-2] for start, piece in first)
        n_keys = max(piece.shape[-1] for _, piece in first)
        batch = max(piece.shape[0] for _, piece in first)
        like = first[0][1]
        # An edit of one head gives its layer's mask an axis for heads that the others do not have.
        n_heads = max(self._pieces[kind, name, layer][0][1].shape[1] for layer in layers)
        whole = torch.full((batch, len(layers), n_heads, n_queries, n_keys), fill, dtype=like.dtype, device=like.device)
        # All rows at once: a copy for each step and layer takes as long as a tenth of the decoding.
        are_whole = all(piece.shape[-1] == n_keys for _, piece in first)
        places = None if are_whole else _places(first, n_keys).to(like.device)
        for place, layer in enumerate(layers):
            pieces = [piece for _, piece in self._pieces[kind, name, layer]]
            if places is None:
                whole[:, place] = torch.cat(pieces, -2)
            else:
                cells = _side_by_side(pieces).expand(batch, n_heads, -1)
                whole[:, place].flatten(-2).index_copy_(-1, places, cells)
        return whole

    def steps(self, kind: Kind, name: TapName) -> list[Tensor]:
        """One tensor a step of a decoding whose batch changes from step to step, as in beam search.

        Returns:
            For each step (row of its batch, layer, head, key).
        """
        layers = sorted(layer for k, n, layer in self._pieces if (k, n) == (kind, name))
        pieces = [self._pieces[kind, name, layer] for layer in layers]
        return [torch.stack([piece[:, :, 0] for _, piece in step], 1) for step in zip(*pieces, strict=True)]


def _side_by_side(pieces: Sequence[Tensor]) -> Tensor:
    """All cells of a layer's pieces (batch, head, query, key), one piece after the other: (batch, head, cell)."""
    if all(piece.shape[-2] == 1 for piece in pieces):
        return torch.cat(pieces, -1)[..., 0, :]  # ty: ignore[invalid-argument-type]
    return torch.cat([piece.flatten(-2) for piece in pieces], -1)


def _places(pieces: Sequence[tuple[int, Tensor]], n_keys: int) -> Tensor:
    """Where the cells of each piece stand in the flattened (query, key), one piece after the other."""
    rows = [(start + row, piece.shape[-1]) for start, piece in pieces for row in range(piece.shape[-2])]
    queries, lengths = torch.tensor(rows).T
    # Each row's place in the whole, less its place among the pieces.
    shifts = queries * n_keys - (lengths.cumsum(0) - lengths)
    return shifts.repeat_interleave(lengths) + torch.arange(int(lengths.sum()))
