"""Weights of a model that no Trace can hold: refused with the module, the place and, where it can be told, the reason."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import nn

from transformer_viz.errors import OptionError
from transformer_viz.trace import given_arrays
from transformer_viz.tracing.adapters.seen import Seen


def check(model: nn.Module, calls: Sequence[Seen], softmax_columns: Mapping[str, int]) -> None:
    """Checks each call's weights and mask.

    Args:
        model: whose calls they are.
        calls: all of one run.
        softmax_columns: per module, over how many columns its softmax went.

    Raises:
        OptionError: weights that are not finite or negative, masked cells with weight, rows that do not sum to 1, weights
            that are not those with which the values were weighted.
    """
    modules = dict(model.named_modules())
    for call in calls:
        module = modules[call.module]
        name = f"{call.kind} attention of {call.module or 'the model'} ({type(module).__name__})"
        if fault := _wrong_cells(call) or _wrong_rows(call, module, softmax_columns.get(call.module)):
            raise OptionError(f"{name} {fault}")


def _wrong_cells(call: Seen) -> str:
    if not np.isfinite(call.weights).all():
        return (
            f"is not finite, first at {_first(~np.isfinite(call.weights))}; a row in which everything is masked becomes NaN "
            "in a softmax: leave each row a key that it may look at"
        )
    if (call.weights < 0).any():
        return f"has negative weights, first at {_first(call.weights < 0)}; no Trace holds them"
    if (wrong := given_arrays.weights_on_masked(call.masked, call.weights)).any():
        return (
            f"has weight on {wrong.sum()} cells that the mask it was given hides, first at {_first(wrong)}; "
            "what else it does with its mask is not known, so no true mask can be shown"
        )
    return ""


def _wrong_rows(call: Seen, module: nn.Module, columns: int | None) -> str:
    """A softmax over more columns than there are keys has a sink; so has, most often, one whose output is scaled."""
    n_heads, n_keys = call.weights.shape[0], call.weights.shape[-1]
    learned = [name for name, parameter in module.named_parameters(recurse=False) if parameter.numel() == n_heads]
    sink = f"a learned sink ({learned[0]}, one number for each head)" if learned else "a sink"
    fault, options = "", ""
    if (wrong := given_arrays.rows_not_one(call.masked, call.weights)).any():
        total = call.weights.sum(-1, dtype=np.float64)[tuple(np.argwhere(wrong)[0])]
        fault = (
            f"has {wrong.sum()} of {wrong.size} rows that do not sum to 1, first {total:.6g} at {_first(wrong, 'head, query')}"
        )
        options = ", normalised=False"
        if columns is None:
            fault += "; it makes them without a softmax"
        elif columns > n_keys:
            fault += f"; {sink} takes part of each row: the softmax goes over {columns} columns for {n_keys} keys"
        else:
            fault += "; what it gives as weights was changed after the softmax, by dropout or a factor"
    elif not call.is_applied:
        fault = "does not give its output: the values weighted with it are something else"
        fault += f"; {sink} takes part of each row that its weights, which sum to 1, do not show" if learned else ""
    by_hand = f"by Trace.from_arrays({call.kind}=…{options})"
    more = f"What the model gives with output_attentions=True and eager attention can be looked at all the same, {by_hand}"
    return fault and f"{fault}. {more}"


def _first(wrong: np.ndarray, axes: str = "head, query, key") -> str:
    """`[0, 2, 1] (head, query, key)` of the first True."""
    return f"{[int(i) for i in np.argwhere(wrong)[0]]} ({axes})"
