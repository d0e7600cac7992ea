"""Occlusion: D[t, j] = log p(y_t | all) − log p(y_t | all but key j), in nats; above 0, key j spoke for what was written."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from transformer_viz.attribution.methods import Method
from transformer_viz.attribution.rerun import Run
from transformer_viz.edits import Flip, Force
from transformer_viz.errors import OptionError
from transformer_viz.language import later
from transformer_viz.model.tap import ReplaceTap, Site, Tap, compose
from transformer_viz.terms import Kind
from transformer_viz.trace.attribution import NATS, TITLES

_SIDES: dict[Kind, str] = {"cross": "source", "decoder": "target"}


def of(run: Run, kind: Kind, mode: str) -> Tensor:
    """(query, key); of what the decoder reads later than the step NaN, since it cannot be the cause."""
    n_keys = run.n_keys(kind)
    difference = (run.log_p - log_p_without(run, kind, torch.eye(n_keys, dtype=torch.bool), mode)).T
    if kind == "decoder":
        later = torch.ones_like(difference, dtype=torch.bool).triu(1)
        difference = difference.masked_fill(later, torch.nan)
    return difference


def log_p_without(run: Run, kind: Kind, sets: Tensor, mode: str) -> Tensor:
    """float64 (set, step) on the CPU: log-probabilities of what was written, without each set of keys.

    Args:
        run: the run.
        kind: `cross`, whose keys are source tokens, or `decoder`, whose keys are what was read.
        sets: bool (set, key), True = left out.
        mode: one of `MODES`.

    Returns:
        NaN where nothing that could be read is left.

    Raises:
        OptionError: the model has no token for it, or edits name positions that would move.
    """
    return MODES[mode](run, kind, sets.to(run.written.device))


def _by_word(run: Run, kind: Kind, sets: Tensor) -> Tensor:
    """The unknown token stands in their places."""
    unknown = run.model.tokenizer.unknown_id
    if unknown is None:
        raise OptionError(f"{run.model.name} has no token for what it does not know; take mode position or deleted")
    inputs = run.inputs.repeated(len(sets))
    side = _SIDES[kind]
    return run.log_p_of(replace(inputs, **{side: getattr(inputs, side).masked_fill(sets, unknown)}))


def _by_position(run: Run, kind: Kind, sets: Tensor) -> Tensor:
    """They stay in their places, and no query of any layer of this kind may look at them.

    A row whose weights were forced onto such a key gets nothing from it.
    """

    def close(part: slice, site: Site, value: Tensor) -> Tensor:
        """Closes keys in a mask, or in the weights after it."""
        if site.kind != kind:
            return value
        keys = sets[part, None, None, : value.shape[-1]]
        return value | keys if value.dtype == torch.bool else value.masked_fill(keys, 0.0)

    def closing(part: slice) -> Tap | None:
        return compose(ReplaceTap("mask", partial(close, part)), ReplaceTap("weights", partial(close, part)))

    return run.log_p_of(run.inputs.repeated(len(sets)), tap_of=closing)


def _by_deletion(run: Run, kind: Kind, sets: Tensor) -> Tensor:
    """The text is shorter, and what comes after them moves up."""
    if moved := [edit for edit in run.edits if isinstance(edit, Flip | Force)]:
        raise OptionError(f"edit {moved[0]} names positions, which move where tokens are deleted; take mode word or position")
    log_p = torch.full((len(sets), len(run.written)), torch.nan, dtype=torch.float64)
    side = _SIDES[kind]
    for n_deleted in sets.sum(1).unique().tolist():
        # Sets that leave as many tokens are one batch.
        alike = (sets.sum(1) == n_deleted).nonzero()[:, 0]
        left = ~sets[alike]
        if not bool(left.any()):
            continue
        whole = run.inputs.repeated(len(left))
        shorter = {name: getattr(whole, name)[left].view(len(left), -1) for name in (side, f"{side}_padding")}
        # Of each step the row of the last token that is left of what was read before it; −1 where none is.
        rows = None if kind == "cross" else left.cumsum(1) - 1
        log_p[alike.cpu()] = run.log_p_of(replace(whole, **shorter), rows)
    return log_p


MODES: dict[str, Callable[[Run, Kind, Tensor], Tensor]] = {"word": _by_word, "position": _by_position, "deleted": _by_deletion}

METHOD = Method(
    of,
    title=TITLES["occlusion"],
    help=later("How much less probable what was written becomes without a token, in nats"),
    cannot=later("which of two tokens it was where either is enough"),
    order=1,
    unit=NATS,
    modes=tuple(MODES),
    explains_scores=True,
    dtype=torch.float64,
)
