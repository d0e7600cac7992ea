"""What a model's logits say of the tokens that it was given to write."""

from typing import Any

import torch
from torch import Tensor

from transformer_viz.errors import OptionError
from transformer_viz.trace.trace import Step
from transformer_viz.tracing import ranked
from transformer_viz.tracing.adapters.labels import Labels, Vocabulary


def logits_of(returned: Any, n_steps: int, vocabulary: Vocabulary | None, is_logits: bool | None) -> Tensor | None:
    """float64 (step, vocabulary) on the CPU, or None where what the model returns is not certainly that.

    Hidden states have the same axes as logits. So without a word from the caller only `.logits` is taken for them, or
    what has as many columns as the vocabulary has tokens.

    Raises:
        OptionError: `is_logits` is True and there are none of the right shape.
    """
    if is_logits is False or n_steps == 0:
        return None
    named = getattr(returned, "logits", None)
    found = named if isinstance(named, Tensor) else _first_tensor(returned)
    rows = None if found is None else _rows(found, n_steps)
    size = len(vocabulary) if isinstance(vocabulary, list | tuple | dict) else None
    is_certain = is_logits or found is named or (rows is not None and rows.shape[1] == size)
    if rows is not None and is_certain:
        return rows.detach().cpu().double()
    if is_logits:
        shape = "no tensor" if found is None else f"a tensor {tuple(found.shape)}"
        raise OptionError(f"logits=True, but the model returns {shape}; (1, {n_steps}, vocabulary) is needed")
    return None


def steps_of(logits: Tensor, written: list[int], labels: Labels, n_candidates: int) -> tuple[Step, ...]:
    """One step for each written id, with its probability from the natural softmax.

    Raises:
        OptionError: an id beyond the logits, or logits that are not numbers.
    """
    if not bool(logits.isfinite().any(-1).all()) or bool(logits.isnan().any()):
        raise OptionError("the model's logits hold NaN; attention with a row in which everything is masked can be the cause")
    size = logits.shape[-1]
    if bad := [number for number in written if not 0 <= number < size]:
        raise OptionError(f"output id {bad[0]} is not in the model's vocabulary of {size}")
    return ranked.steps_of(logits, written, n_candidates, labels.of)


def _first_tensor(returned: Any) -> Tensor | None:
    first = returned[0] if isinstance(returned, tuple | list) and returned else returned
    return first if isinstance(first, Tensor) and first.is_floating_point() else None


def _rows(found: Tensor, n_steps: int) -> Tensor | None:
    """(step, vocabulary), whichever axis the sentence is."""
    if found.dim() == 3 and 1 in found.shape[:2]:
        found = torch.squeeze(found, 0 if found.shape[0] == 1 else 1)
    return found if found.dim() == 2 and found.shape[0] == n_steps else None
