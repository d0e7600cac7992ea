"""What a run would have been without some of what it read: three ways to take keys away, each for many sets of keys at once."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from transformer_viz.attribution.run import Read, Run
from transformer_viz.edits import Flip, Force
from transformer_viz.errors import OptionError
from transformer_viz.model.tap import Change, Site, Tap, compose
from transformer_viz.terms import Kind

_SIDES: dict[Kind, str] = {"cross": "source", "decoder": "target"}


def log_p_without(run: Run, kind: Kind, sets: Tensor, mode: str) -> Tensor:
    """float64 (set, step) on the CPU: log-probabilities of what was written, without each set of keys.

    Args:
        run: the run.
        kind: `cross`, whose keys are source tokens, or `decoder`, whose keys are what was read.
        sets: bool (set, key), True = taken away.
        mode: one of `MODES`.

    Returns:
        NaN where nothing that could be read is left.

    Raises:
        OptionError: the model has no token for it, or edits name positions that would move.
    """
    return MODES[mode](run, kind, sets.to(run.written.device))


def _word(run: Run, kind: Kind, sets: Tensor) -> Tensor:
    """The unknown token stands in their places."""
    unknown = run.model.tokenizer.unknown_id
    if unknown is None:
        raise OptionError(f"{run.model.name} has no token for what it does not know; take mode position or deleted")
    read = run.read.repeated(len(sets))
    side = _SIDES[kind]
    return run.log_p_of(replace(read, **{side: getattr(read, side).masked_fill(sets, unknown)}))


def _position(run: Run, kind: Kind, sets: Tensor) -> Tensor:
    """They stay in their places, and no query of any layer of this kind may look at them."""
    return run.log_p_of(run.read.repeated(len(sets)), tap_of=lambda part: _closing(kind, sets[part]))


def _closing(kind: Kind, closed: Tensor) -> Tap | None:
    """Closes keys to every query, bool (text, key); a row that was forced onto one loses what it gave it."""

    def masked(site: Site, mask: Tensor) -> Tensor:
        return mask | closed[:, None, None, : mask.shape[-1]] if site.kind == kind else mask

    def emptied(site: Site, weights: Tensor) -> Tensor:
        return weights.masked_fill(closed[:, None, None, : weights.shape[-1]], 0.0) if site.kind == kind else weights

    return compose(Change("mask", masked), Change("weights", emptied))


def _deleted(run: Run, kind: Kind, sets: Tensor) -> Tensor:
    """The text is shorter, and what comes after them moves up."""
    if moved := [edit for edit in run.edits if isinstance(edit, Flip | Force)]:
        raise OptionError(f"edit {moved[0]} names positions, which move where tokens are deleted; take mode word or position")
    found = torch.full((len(sets), len(run.written)), torch.nan, dtype=torch.float64)
    for n_deleted in sets.sum(1).unique().tolist():
        alike = (sets.sum(1) == n_deleted).nonzero()[:, 0]
        left = ~sets[alike]
        if bool(left.any()):
            found[alike.cpu()] = run.log_p_of(_shortened(run.read, kind, left), _rows(run, kind, left))
    return found


def _shortened(read: Read, kind: Kind, left: Tensor) -> Read:
    """What is left of one text, for sets that leave as many."""
    side = _SIDES[kind]
    whole = read.repeated(len(left))
    parts = {name: getattr(whole, name)[left].view(len(left), -1) for name in (side, f"{side}_padding")}
    return replace(whole, **parts)


def _rows(run: Run, kind: Kind, left: Tensor) -> Tensor:
    """Of each step the row of the last token that is left of what was read before it; −1 where none is."""
    if kind == "cross":
        return torch.arange(len(run.written), device=left.device).expand(len(left), -1)
    return left.cumsum(1) - 1


MODES: dict[str, Callable[[Run, Kind, Tensor], Tensor]] = {"word": _word, "position": _position, "deleted": _deleted}
