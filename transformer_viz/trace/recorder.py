"""The tap that records attention during a run, and joins the rows of its steps into one array a layer."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_viz.model.tap import Site, TapName
from transformer_viz.terms import KINDS, Kind

_LONG, _ROOM = 32, 2**18
"""After `_LONG` steps, recorded pieces are copied into buffers of `_ROOM` numbers. Left in place, they would fragment memory,
since a model's tensors grow at every step: 200 tokens of 30 layers took 470 MB where 100 are needed."""


class Recorder:
    """Keeps the named intermediates of every attention it sees; returns all of them unchanged.

    Args:
        names: which intermediates to keep (see `model.tap`).
        kinds: which kinds of attention to keep; all by default.
        layers: which layers of each kind to keep; all by default.
        half: whether weights are kept in half precision.
    """

    changes_nothing = True

    def __init__(
        self,
        names: Sequence[TapName] = ("weights", "mask"),
        kinds: Sequence[Kind] | None = None,
        layers: Mapping[Kind, Sequence[int]] | None = None,
        *,
        half: bool = False,
    ) -> None:
        self.names = frozenset(names)
        self.kinds, self.layers = frozenset(KINDS if kinds is None else kinds), layers
        self.half = half
        self._rooms: dict[torch.dtype, tuple[Tensor, int]] = {}
        self._pieces: dict[tuple[Kind, TapName, int], list[Tensor]] = defaultdict(list)

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name in self.names and site.kind in self.kinds and (self.layers is None or site.layer in self.layers[site.kind]):
            pieces = self._pieces[site.kind, name, site.layer]
            if site.first_query == 0:
                # A pass that begins anew, as in decoding without a cache, replaces what was seen.
                pieces.clear()
            kept = value.detach() if value.requires_grad else value
            kept = kept.half() if self.half and name == "weights" else kept
            pieces.append(self._together(kept) if site.first_query >= _LONG and kept.is_contiguous() else kept)
        return value

    def _together(self, piece: Tensor) -> Tensor:
        """A copy of the piece in the buffer."""
        n, (room, n_used) = piece.numel(), self._rooms.get(piece.dtype, (piece, piece.numel()))
        if n_used + n > room.numel():
            room, n_used = piece.new_empty(max(n, _ROOM)), 0
        self._rooms[piece.dtype] = room, n_used + n
        return room[n_used : n_used + n].view(piece.shape).copy_(piece)

    def gathered(self, kind: Kind, name: TapName, fill: float | bool = 0) -> Tensor | None:
        """All layers and steps as one tensor, or None when this kind was not seen.

        What was seen is one pass over all rows, or one row a step, after a first pass over the rows of a prompt where there is
        one. Then a step's keys may end at its own position; the later ones, which did not exist yet, get `fill`.

        Returns:
            (batch, layer, head, query, key); the head axis is 1 where the intermediate has no heads.
        """
        if not (each := self._by_layer(kind, name)):
            return None
        # An edit of one head gives its layer's mask an axis for heads, and a mask of nothing has one row for all sentences.
        shapes, like = np.array([piece.shape for layer in each for piece in layer]), each[0][0]
        n_texts, *heads, _, n_keys = shapes.max(0).tolist()
        shape = (n_texts, len(each), *heads, int(shapes[:, -2].sum()) // len(each), n_keys)
        whole = torch.full(shape, fill, dtype=like.dtype, device=like.device)
        for place, layer in enumerate(each):
            first = 0
            for piece in layer:
                end = first + piece.shape[-2]
                whole[:, place, ..., first:end, : piece.shape[-1]] = piece
                first = end
        return whole

    def arrays(self, kind: Kind) -> dict[TapName, np.ndarray]:
        """The recorded arrays of a kind, on the CPU; nothing where it was not seen.

        A key that a step could not see because it was not written yet is masked by the causal rule, and has no score.
        """
        fills = {"mask": True, "scores": math.nan}
        gathered = {name: self.gathered(kind, name, fills.get(name, 0)) for name in self.names}
        return {name: tensor.cpu().numpy() for name, tensor in gathered.items() if tensor is not None}

    def steps(self, kind: Kind, name: TapName) -> list[np.ndarray]:
        """One array a step of a decoding whose batch changes from step to step, as in beam search.

        Returns:
            For each step (row of its batch, layer, head, key); the first is the last row of what was read before.
        """
        steps = zip(*self._by_layer(kind, name), strict=True)
        return [torch.stack([piece[:, :, -1] for piece in step], 1).cpu().numpy() for step in steps]

    def opening(self, kind: Kind, name: TapName) -> np.ndarray | None:
        """All rows of the first pass, (batch, layer, head, query, key); None where this kind was not seen."""
        each = self._by_layer(kind, name)
        return torch.stack([pieces[0] for pieces in each], 1).cpu().numpy() if each else None

    def _by_layer(self, kind: Kind, name: TapName) -> list[list[Tensor]]:
        """Joins what was kept of each layer."""
        return [self._pieces[key] for key in sorted(self._pieces) if key[:2] == (kind, name)]
