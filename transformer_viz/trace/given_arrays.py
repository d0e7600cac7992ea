"""Arrays that come from elsewhere, read and checked: attention weights, masks, and why a cell is masked."""

from typing import Any

import numpy as np

from transformer_viz.errors import TraceError
from transformer_viz.terms import Kind, Reason

ROW_TOLERANCE = 5e-3
"""How far from 1 a row of weights may sum: half precision rounds to 2⁻⁹ of each weight."""
_NOTHING = 1e-6
"""A weight up to this on a masked cell is none."""
_AXES = {2: "(query, key)", 3: "(head, query, key)", 4: "(layer, head, query, key)"}


def weights_of(kind: Kind, given: Any, n_queries: int, n_keys: int) -> np.ndarray:
    """Attention as float32 (layer, head, query, key).

    Args:
        kind: for the messages.
        given: (layer, head, query, key), (head, query, key) or (query, key); numpy, lists, or anything with
            `__array__`. A list may hold one array a layer, each (1, head, query, key) too.
        n_queries: how many tokens label the rows.
        n_keys: how many tokens label the columns.

    Raises:
        TraceError: not numbers, another shape, or a number that no weight can be.
    """
    name = f"{kind} attention"
    array = _numbers(name, given)
    if array.ndim == 5 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in _AXES:
        more = " A batch axis? Take one sentence, for example [:, 0]." if array.ndim == 5 else ""
        raise TraceError(f"{name} has the shape {array.shape}; {', '.join(_AXES.values())} is needed.{more}")
    with np.errstate(over="ignore"):
        # A copy: a Trace never changes, the caller's array may.
        array = np.array(array.reshape((1,) * (4 - array.ndim) + array.shape), np.float32, order="C")
    if 0 in array.shape:
        raise TraceError(f"{name} is empty: its shape is {array.shape}")
    if array.shape[2:] != (n_queries, n_keys):
        swapped = " Its rows and columns may be swapped." if array.shape[2:] == (n_keys, n_queries) else ""
        raise TraceError(
            f"{name} has {array.shape[2]} rows and {array.shape[3]} columns for {n_queries} query and {n_keys} key tokens; "
            f"its shape must be (layer, head, {n_queries}, {n_keys}), rows are queries.{swapped}"
        )
    if not np.isfinite(array).all():
        raise TraceError(
            f"{name} holds numbers that are not finite, the first at {_where(~np.isfinite(array))}; "
            "a row in which everything is masked becomes NaN in many programs: write zeros there"
        )
    if (array < 0).any():
        raise TraceError(
            f"{name} holds negative numbers, the first at {_where(array < 0)}; are they scores, before the softmax?"
        )
    return array


def mask_of(kind: Kind, given: Any, weights: np.ndarray) -> np.ndarray:
    """A mask as bool, (query, key) or, where layers or heads differ, in the shape of `weights`. True = masked.

    Args:
        kind: for the messages.
        given: None, bool that broadcasts to `weights`, or `"causal"`.
        weights: float32 (layer, head, query, key), from `weights_of`.

    Raises:
        TraceError: no bool, another shape, or a masked cell with weight.
    """
    name, (n_queries, n_keys) = f"{kind} mask", weights.shape[2:]
    if given is None:
        return np.zeros((n_queries, n_keys), bool)
    if isinstance(given, str):
        if given != "causal" or kind != "decoder":
            raise TraceError(f"{name} {given[:40]!r} is not possible; give bool (query, key), or for the decoder 'causal'")
        masked = np.triu(np.ones((n_queries, n_keys), bool), 1)
    else:
        masked = _bools(name, given)
    while masked.ndim > 2 and masked.shape[0] == 1:
        masked = masked[0]
    masked = _broadcast(name, masked, weights.shape)
    _check_against(name, masked, weights)
    return masked


def check_rows(kind: Kind, weights: np.ndarray, masked: np.ndarray) -> None:
    """Raises a TraceError where a row does not sum to 1; one in which everything is masked may hold zeros."""
    if (wrong := rows_not_one(masked, weights)).any():
        layer, head, query = (int(i) for i in np.argwhere(wrong)[0])
        total = weights[layer, head, query].sum(dtype=np.float64)
        why = (
            "a row in which everything is masked? Then say so with masks="
            if total == 0
            else "weights after dropout do not; take them before it, in eval mode, or accept them with normalised=False"
        )
        raise TraceError(
            f"{kind} attention: {int(wrong.sum())} of {wrong.size} rows do not sum to 1, the first is "
            f"[{layer}, {head}, {query}] with {total:.6g}; {why}"
        )


def rows_not_one(masked: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Which rows do not sum to 1, bool (…, query); one in which everything is masked may hold zeros.

    Args:
        masked: bool that broadcasts to `weights`, True = masked.
        weights: (…, query, key).
    """
    sums = weights.sum(-1, dtype=np.float64)
    return (np.abs(sums - 1) > ROW_TOLERANCE) & ~(np.broadcast_to(masked, weights.shape).all(-1) & (sums == 0))


def weights_on_masked(masked: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Which masked cells have weight, bool in the shape of `weights`.

    Where everything in a row is masked they may: some programs then spread it evenly. Arguments as in `rows_not_one`.
    """
    everywhere = np.broadcast_to(masked, weights.shape)
    return everywhere & (weights > _NOTHING) & ~everywhere.all(-1, keepdims=True)


def explained(kind: Kind, masked: np.ndarray, key_is_padding: np.ndarray) -> np.ndarray:
    """Reasons, uint8 in the shape of `masked`: padding and the future where a cell is that, UNKNOWN elsewhere.

    Args:
        kind: only the decoder has a future.
        masked: bool (query, key) or (layer, head, query, key).
        key_is_padding: bool (key,).
    """
    n_queries, n_keys = masked.shape[-2:]
    codes = np.broadcast_to(key_is_padding, (n_queries, n_keys)) * np.uint8(Reason.PADDING)
    if kind == "decoder":
        codes = codes | np.triu(np.ones((n_queries, n_keys), np.uint8), 1) * np.uint8(Reason.FUTURE)
    return np.where(masked, np.where(codes > 0, codes, np.uint8(Reason.UNKNOWN)), np.uint8(0)).astype(np.uint8)


def _numbers(name: str, given: Any) -> np.ndarray:
    """An array of real numbers; a list is read layer by layer, since its parts may be tensors."""
    try:
        array = np.stack([np.asarray(part) for part in given]) if isinstance(given, list | tuple) else np.asarray(given)
    except Exception as error:  # whatever `__array__` of somebody else's class raises
        raise TraceError(
            f"{name} cannot be read as one array ({type(error).__name__}: {str(error)[:200]}). "
            "A tensor is given as tensor.detach().float().cpu(), a list of layers with the same shape in each."
        ) from error
    if array.dtype.kind not in "fiu":
        raise TraceError(f"{name} is an array of {array.dtype}; numbers are needed")
    return array


def _bools(name: str, given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except Exception as error:
        raise TraceError(f"{name} cannot be read as an array ({type(error).__name__}: {str(error)[:200]})") from error
    if array.dtype != np.bool_:
        raise TraceError(f"{name} is an array of {array.dtype}; bool is needed, True = masked (for an additive mask: mask < 0)")
    return array


def _broadcast(name: str, masked: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    want = shape[2:] if masked.ndim <= 2 else shape
    try:
        return np.broadcast_to(masked, want).copy()
    except ValueError:
        raise TraceError(f"{name} has the shape {masked.shape}; {shape[2:]} or {shape} is needed") from None


def _check_against(name: str, masked: np.ndarray, weights: np.ndarray) -> None:
    if (wrong := weights_on_masked(masked, weights)).any():
        layer, head, query, key = np.argwhere(wrong)[0]
        raise TraceError(
            f"{name}: {int(wrong.sum())} masked cells have weight, the first at {_where(wrong)} "
            f"({weights[layer, head, query, key]:.4g}). True means masked here; if it means “may look” in yours, give ~mask."
        )


def _where(found: np.ndarray) -> str:
    """`[layer, head, query, key]` of the first True."""
    return str([int(i) for i in np.argwhere(found)[0]])
