"""Taps that record attention during a run: one array a layer, into which each step writes its rows, or each step by itself."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.memory import KEPT
from transformer_viz.model.tap import Site, TapName
from transformer_viz.terms import KINDS, Kind

_LEAST, _GROWTH = 16, 1.5
"""Rows that are there at first, and how many times as many where they do not suffice."""
_FILLS: dict[TapName, float | bool] = {"mask": True, "scores": math.nan}
"""The value where a step could see no key, since it was not written yet: the causal rule masks it, and it has no score."""


class _Choice:
    """The intermediates that a recorder keeps.

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

    def _kept(self, site: Site, name: TapName, value: Tensor) -> Tensor | None:
        """The intermediate as it is kept; None where it is not."""
        if name not in self.names or site.kind not in self.kinds:
            return None
        if self.layers is not None and site.layer not in self.layers[site.kind]:
            return None
        kept = value.detach() if value.requires_grad else value
        return kept.half() if self.half and name == "weights" else kept


class Recorder(_Choice):
    """Keeps the named intermediates of every attention it sees; returns all of them unchanged. See `_Choice` for arguments.

    Each step writes its rows into an array with room for more, of at most `most_rows` where that is known. So no piece stays
    where it was made: those of 200 tokens of 30 layers, between tensors that grow at every step, took 470 MB where 100 are
    needed.
    """

    def __init__(
        self,
        names: Sequence[TapName] = ("weights", "mask"),
        kinds: Sequence[Kind] | None = None,
        layers: Mapping[Kind, Sequence[int]] | None = None,
        *,
        half: bool = False,
        most_rows: int = 0,
    ) -> None:
        super().__init__(names, kinds, layers, half=half)
        self.most_rows = most_rows
        self._rows: dict[tuple[Kind, TapName], _Rows] = {}

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if (kept := self._kept(site, name, value)) is not None:
            rows = self._rows.get((site.kind, name))
            if rows is None:
                layers = () if self.layers is None else self.layers[site.kind]
                rows = self._rows[site.kind, name] = _Rows(layers, _FILLS.get(name, 0), self.most_rows)
            rows.write(site, kept)
        return value

    def gathered(self, kind: Kind, name: TapName) -> Tensor | None:
        """Gathers all layers and steps as one tensor; None when this kind was not seen.

        What was seen is one pass over all rows, or one row a step, after a first pass over the rows of a prompt where there is
        one. Then a step's keys may end at its own position; the later ones, which did not exist yet, are masked, without a
        score, and have no weight.

        Returns:
            (batch, layer, head, query, key); the head axis is 1 where the intermediate has no heads.
        """
        rows = self._rows.get((kind, name))
        return None if rows is None else rows.whole()

    def arrays(self, kind: Kind) -> dict[TapName, np.ndarray]:
        """The recorded arrays of a kind, on the CPU; nothing where it was not seen."""
        gathered = {name: self.gathered(kind, name) for name in self.names}
        return {name: tensor.cpu().numpy() for name, tensor in gathered.items() if tensor is not None}


class _Rows:
    """The rows of one intermediate of one kind, (batch, layer, head, query, key), with room for more.

    Args:
        layers: their numbers; those that come without being named get a place too.
        fill: what stands where nothing is written.
        most: how many rows there can be; 0 = nobody knows.
    """

    def __init__(self, layers: Sequence[int], fill: float | bool, most: int) -> None:
        self._layers, self._fill, self._most = list(layers), fill, most
        self._room: Tensor | None = None
        self._n_rows = self._n_keys = 0

    def write(self, site: Site, piece: Tensor) -> None:
        """Writes (batch, head, query, key) at its layer and rows; a pass that begins anew writes over what was seen."""
        if site.layer not in self._layers:
            self._layers.append(site.layer)
        place, end, n_keys = self._layers.index(site.layer), site.first_query + piece.shape[-2], piece.shape[-1]
        # An edit of one head gives its layer's mask an axis for heads, and a mask of nothing has one row for all sentences.
        needed = piece.shape[0], len(self._layers), *piece.shape[1:-2], end, n_keys
        room = self._room
        if room is None or any(have < need for have, need in zip(room.shape, needed, strict=True)):
            room = self._grow(needed, piece)
        room[:, place, ..., site.first_query : end, :n_keys] = piece
        self._n_rows, self._n_keys = max(self._n_rows, end), max(self._n_keys, n_keys)

    def _grow(self, needed: Sequence[int], like: Tensor) -> Tensor:
        """A room that is as large as needed, and whose rows, and keys that grow with them, have space for more."""
        before = self._room
        if before is not None:
            growing = [axis for axis in (len(needed) - 2, len(needed) - 1) if needed[axis] > before.shape[axis]]
            needed = [max(have, need) for have, need in zip(before.shape, needed, strict=True)]
            most = [max(need, self._most) if axis in growing else need for axis, need in enumerate(needed)]
            if self._most and math.prod(most) <= KEPT:
                needed = most
            else:
                for axis in growing:
                    needed[axis] = max(needed[axis], _LEAST, int(needed[axis] * _GROWTH))
        room = self._room = self._filled(needed, like)
        if before is not None:
            _, n_layers, *_, n_rows, n_keys = before.shape
            room[:, :n_layers, ..., :n_rows, :n_keys] = before
        return room

    def _filled(self, shape: Sequence[int], like: Tensor) -> Tensor:
        if self._fill == 0 and like.device.type == "cpu":
            # Zeros that the system makes when they are written on: room that is never used takes no memory.
            # As bytes, since numpy has no bfloat16.
            n_bytes = math.prod(shape) * like.element_size()
            return torch.from_numpy(np.zeros(n_bytes, np.uint8)).view(like.dtype).view(tuple(shape))
        return torch.full(shape, self._fill, dtype=like.dtype, device=like.device)

    def whole(self) -> Tensor:
        """The rows without the room, layers in the order of their numbers."""
        assert self._room is not None
        whole = self._room[..., : self._n_rows, : self._n_keys]
        order = sorted(range(len(self._layers)), key=self._layers.__getitem__)
        return whole if order == [*range(len(order))] else whole[:, order]


class StepRecorder(_Choice):
    """Keeps the pieces of a decoding whose batch changes from step to step, as in beam search. See `_Choice` for arguments."""

    def __init__(
        self,
        names: Sequence[TapName] = ("weights",),
        kinds: Sequence[Kind] | None = None,
        layers: Mapping[Kind, Sequence[int]] | None = None,
        *,
        half: bool = False,
    ) -> None:
        super().__init__(names, kinds, layers, half=half)
        self._pieces: dict[tuple[Kind, TapName, int], list[Tensor]] = defaultdict(list)

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if (kept := self._kept(site, name, value)) is not None:
            self._pieces[site.kind, name, site.layer].append(kept)
        return value

    def steps(self, kind: Kind, name: TapName) -> list[np.ndarray]:
        """One array a step: (row of its batch, layer, head, key); the first is the last row of what was read before."""
        steps = zip(*self._by_layer(kind, name), strict=True)
        return [torch.stack([piece[:, :, -1] for piece in step], 1).cpu().numpy() for step in steps]

    def opening(self, kind: Kind, name: TapName) -> np.ndarray | None:
        """The rows of the first pass, (batch, layer, head, query, key); None where this kind was not seen."""
        each = self._by_layer(kind, name)
        return torch.stack([pieces[0] for pieces in each], 1).cpu().numpy() if each else None

    def _by_layer(self, kind: Kind, name: TapName) -> list[list[Tensor]]:
        return [self._pieces[key] for key in sorted(self._pieces) if key[:2] == (kind, name)]
