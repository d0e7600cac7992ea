"""The attention calls that an adapter recorded: their checks, and how they become the arrays of a Trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import rounded_words
from transformer_viz.readers.modules.kinds import KnownAttention, Unseen
from transformer_viz.readers.modules.layers import layer_numbers
from transformer_viz.readers.modules.operators import Softmax
from transformer_viz.readers.modules.running import Place
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace import arrays


@dataclass(frozen=True)
class AttentionCall:
    """One call of attention for one sentence.

    Attributes:
        kind: which attention.
        weights: float (head, query, key), after the softmax.
        masked: bool (query, key) or (head, query, key), True = masked.
        module: the name of the module that attends.
        place: where it stands among the layers.
        is_applied: whether the module's output is the values times these weights.
    """

    kind: Kind
    weights: np.ndarray
    masked: np.ndarray
    module: str = ""
    place: Place = ()
    is_applied: bool = True

    @classmethod
    def of(cls, known: Sequence[KnownAttention], softmaxes: Sequence[Softmax]) -> "AttentionCall":
        """The calls of one group, each with some of the heads."""
        heads, masked = zip(*(_by_head(one, softmaxes[one.softmax]) for one in known), strict=True)
        first = softmaxes[known[0].softmax]
        weights, hidden = numpy(torch.cat(heads)), numpy(torch.cat(masked))
        return cls(known[0].kind, weights, hidden, module=first.module, place=first.place)


def _by_head(one: KnownAttention, softmax: Softmax) -> tuple[Tensor, Tensor]:
    """Weights as they were applied and the mask of one sentence, (head, query, key)."""
    assert softmax.applied is not None
    # A weight that is never used counts as what came out of the softmax: 0, or the rows do not add up.
    applied = torch.where(softmax.applied.isnan() & ~softmax.weights.isnan(), 0.0, softmax.applied)
    n_queries, n_keys = softmax.shape[one.query_axis], softmax.shape[-1]
    weights, masked = (each.movedim(one.query_axis, -2).reshape(-1, n_queries, n_keys) for each in (applied, softmax.masked))
    return weights, masked


@dataclass(frozen=True)
class Recorded:
    """The record of one pass, from whichever source.

    Attributes:
        returned: by the model.
        calls: of attention, in order.
        unseen: attention that cannot be shown.
        softmax_columns: by name of a module, the number of columns of its last softmax.
    """

    returned: Any
    calls: list[AttentionCall]
    unseen: Sequence[Unseen]
    softmax_columns: dict[str, int]


@dataclass(frozen=True)
class Layers:
    """The layers of one kind.

    Attributes:
        weights: float (layer, head, query, key), in the order of their numbers.
        masked: bool (query, key) where all layers and heads share one, else in the shape of `weights`; True = masked.
        numbers: the layers' numbers where layers without this kind stand between them; else empty.
    """

    weights: np.ndarray
    masked: np.ndarray
    numbers: tuple[int, ...]


def numpy(tensor: Tensor) -> np.ndarray:
    """On the CPU; half precision is widened, since numpy has no bfloat16."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()


def layers_by_kind(calls: Sequence[AttentionCall]) -> dict[Kind, Layers]:
    """The layers of each kind that was recorded.

    Raises:
        OptionError: layers of one kind have different sizes.
    """
    layers: dict[Kind, Layers] = {}
    for kind in KINDS:
        own = [call for call in calls if call.kind == kind]
        if len(shapes := {call.weights.shape for call in own}) > 1:
            sizes = ", ".join(map(str, sorted(shapes)))
            raise OptionError(
                f"the layers of {kind} attention have different shapes (head, query, key): {sizes}; a Trace needs one for all"
            )
        if own:
            numbers = layer_numbers([call.place for call in own])
            ordered = [call for _, call in sorted(zip(numbers, own, strict=True), key=lambda pair: pair[0])]
            whole = np.stack([np.broadcast_to(call.masked, call.weights.shape) for call in ordered])
            layers[kind] = Layers(
                weights=np.stack([call.weights for call in ordered]),
                masked=whole[0, 0] if (whole == whole[:1, :1]).all() else whole,
                numbers=() if set(numbers) == set(range(len(own))) else tuple(sorted(numbers)),
            )
    return layers


def check_calls(model: nn.Module, calls: Sequence[AttentionCall], softmax_columns: Mapping[str, int]) -> None:
    """Refuses weights that no Trace can hold, with the module, the place and, where it can be told, the reason.

    Args:
        model: whose calls they are.
        calls: all of one run.
        softmax_columns: by module, the number of columns of its softmax.

    Raises:
        OptionError: weights that are not finite or negative, masked cells with weight, rows that do not sum to 1, weights
            that are not those with which the values were weighted.
    """
    modules = dict(model.named_modules())
    for call in calls:
        module = modules[call.module]
        if fault := _fault(call, module, softmax_columns.get(call.module)):
            raise OptionError(f"{call.kind} attention of {call.module or 'the model'} ({type(module).__name__}) {fault}")


def _fault(call: AttentionCall, module: nn.Module, columns: int | None) -> str:
    """Names what is wrong with the weights of a call, in words; empty where nothing is.

    Rows that do not sum to 1 come from a sink where the softmax had more columns than there are keys, and most often where its
    output is scaled.
    """
    weights = call.weights
    if not np.isfinite(weights).all():
        return (
            f"is not finite, first at {_first(~np.isfinite(weights))}; a row in which everything is masked becomes NaN "
            "in a softmax: leave each row a key that it may look at"
        )
    if (weights < 0).any():
        return f"has negative weights, first at {_first(weights < 0)}; no Trace holds them"
    if (wrong := arrays.weights_on_masked(call.masked, weights)).any():
        return (
            f"has weight on {wrong.sum()} cells that the mask it was given hides, first at {_first(wrong)}; "
            "what else it does with its mask is not known, so no true mask can be shown"
        )
    n_heads, n_keys = weights.shape[0], weights.shape[-1]
    learned = [name for name, parameter in module.named_parameters(recurse=False) if parameter.numel() == n_heads]
    sink = f"a learned sink ({learned[0]}, one number for each head)" if learned else "a sink"
    if (wrong := arrays.rows_not_one(call.masked, weights)).any():
        total = weights.sum(-1, dtype=np.float64)[tuple(np.argwhere(wrong)[0])]
        where = _first(wrong, "head, query")
        first = f"{rounded_words(total, 6)} at {where}"
        fault, options = f"has {wrong.sum()} of {wrong.size} rows that do not sum to 1, first {first}", ""
        if columns is None:
            fault += "; it makes them without a softmax"
        elif columns > n_keys:
            fault += f"; {sink} takes part of each row: the softmax goes over {columns} columns for {n_keys} keys"
        else:
            fault += "; what it gives as weights was changed after the softmax, by dropout or a factor"
        options = ", normalised=False"
    elif not call.is_applied:
        fault, options = "does not give its output: the values weighted with it are something else", ""
        fault += f"; {sink} takes part of each row that its weights, which sum to 1, do not show" if learned else ""
    else:
        return ""
    by_hand = f"by Trace.from_arrays({call.kind}=…{options})"
    more = "What the model gives with output_attentions=True and eager attention can be looked at all the same"
    return f"{fault}. {more}, {by_hand}"


def _first(wrong: np.ndarray, axes: str = "head, query, key") -> str:
    """`[0, 2, 1] (head, query, key)` of the first True."""
    return f"{[int(i) for i in np.argwhere(wrong)[0]]} ({axes})"
