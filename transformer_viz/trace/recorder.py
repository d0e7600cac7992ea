"""The tap that records attention during a run, and joins the rows of its steps into one array a layer."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from transformer_viz.model import masks
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
        self._pieces: dict[tuple[Kind, TapName], dict[int, list[Tensor]]] = defaultdict(lambda: defaultdict(list))

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name in self.names and site.kind in self.kinds and (self.layers is None or site.layer in self.layers[site.kind]):
            pieces = self._pieces[site.kind, name][site.layer]
            if site.first_query == 0:
                # A pass that begins anew, as in decoding without a cache, replaces what was seen.
                pieces.clear()
            kept = value.detach() if value.requires_grad else value
            kept = kept.half() if self.half and name == "weights" else kept
            # A mask of nothing is one cell in memory, and known by it.
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
        first, last = each[0][0], each[0][-1]
        n_keys = last.shape[-1]
        # All rows at once: a copy for each step and layer takes as long as a tenth of the decoding.
        if first.shape[-1] == n_keys:
            layers = [pieces[0] if len(pieces) == 1 else torch.cat(pieces, -2) for pieces in each]
            return layers[0][:, None] if len(layers) == 1 else torch.stack(_alike(layers), 1)
        cells = _alike([_joined(pieces) for pieces in each])
        # There is a row for each key: the token that is read at a step is the step's own key.
        shape = (first.shape[0], len(each), cells[0].shape[1], n_keys * n_keys)
        whole = torch.full(shape, fill, dtype=last.dtype, device=last.device)
        places = _staircase(n_keys, first.shape[-1], last.device)
        for place, layer in enumerate(cells):
            whole[:, place].index_copy_(-1, places, layer)
        return whole.view(*shape[:3], n_keys, n_keys)

    def array(self, kind: Kind, name: TapName) -> np.ndarray | None:
        """What was seen, on the CPU; None where this kind was not seen, or no mask masked anything.

        A key that a step could not see because it was not written yet is masked by the causal rule, and has no score.
        """
        if name == "mask" and self.masks_nothing(kind):
            return None
        gathered = self.gathered(kind, name, fill={"mask": True, "scores": math.nan}.get(name, 0))
        return None if gathered is None else gathered.cpu().numpy()

    def masks_nothing(self, kind: Kind) -> bool:
        """Whether all masks of this kind are `masks.nothing`. If not, they must be gathered, and may still mask nothing."""
        return masks.are_nothing([mask for layer in self._by_layer(kind, "mask") for mask in layer])

    def is_incremental(self, kind: Kind) -> bool:
        """Whether the keys of a step end at its own position, as in cached decoding."""
        return any(layer[0].shape[-1] < layer[-1].shape[-1] for layer in self._by_layer(kind, "weights"))

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
        """What was kept of each layer, one after the other."""
        return [pieces for _, pieces in sorted(self._pieces[kind, name].items())]


def _joined(pieces: list[Tensor]) -> Tensor:
    """All pieces as one tensor (batch, head, cell): the rows of the first pass, then one row of each later pass."""
    if pieces[0].shape[-2] == 1:
        return torch.cat(pieces, -1)[..., 0, :]
    return torch.cat([pieces[0].flatten(-2), torch.cat(pieces[1:], -1)[..., 0, :]], -1)


def _alike(layers: list[Tensor]) -> list[Tensor]:
    """The layers broadcast to one batch size and number of heads.

    An edit of one head gives its layer's mask an axis for heads, and a layer without a mask has one row for all sentences.
    """
    shapes = [layer.shape for layer in layers]
    if len(set(shapes)) == 1:
        return layers
    most = [max(sizes) for sizes in zip(*shapes, strict=True)]
    return [layer.expand(most) for layer in layers]


@lru_cache(maxsize=4)
def _staircase(n: int, first: int, device: torch.device) -> Tensor:
    """Where `first` rows of so many cells and then rows of one more each, up to n, stand in the flattened (n, n)."""
    rows, keys = torch.tril_indices(n, n, device=device)
    stairs = (rows * n + keys)[rows >= first]
    square = torch.arange(first, device=device)
    return torch.cat([(square[:, None] * n + square).flatten(), stairs])
