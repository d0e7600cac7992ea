"""The checks and conversions behind `Trace.from_arrays`, which takes attention and tokens of any program.

What is not given stays unknown: without output tokens the Trace has none, without probabilities it has no steps, and a mask
whose reason cannot be told has `Reason.UNKNOWN`.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from transformer_viz.errors import TraceError
from transformer_viz.terms import Kind, Reason
from transformer_viz.trace.steps import Candidate, Step

ROW_TOLERANCE = 5e-3
"""The tolerance of a row's sum of weights, which is 1: half precision rounds to 2⁻⁹ of each weight."""
_SUM_TOLERANCE = 1e-4
"""The tolerance of a sum of probabilities."""
_NOTHING = 1e-6
"""A weight on a masked cell up to this counts as 0."""
_AXES = {2: "(query, key)", 3: "(head, query, key)", 4: "(layer, head, query, key)"}


def read_tokens(name: str, given: Iterable[str] | None, needed_for: Sequence[Kind] = ()) -> tuple[str, ...]:
    """Labels, each of them text; none where none are given and no kind of attention needs them."""
    if given is None:
        if needed_for:
            raise TraceError(f"{name} is missing; {needed_for[0]} attention needs it for its labels")
        return ()
    if isinstance(given, str):
        raise TraceError(f"{name} is one text, {given[:40]!r}; a list of tokens is needed, list(text) for single letters")
    try:
        tokens = tuple(given)
    except TypeError:
        raise TraceError(f"{name} is {type(given).__name__}; a list of tokens is needed") from None
    for place, token in enumerate(tokens):
        read_text(f"{name}[{place}]", token)
    return tuple(map(str, tokens))


def read_text(name: str, given: Any) -> str:
    """A text without lone surrogates, which no file can hold."""
    if not isinstance(given, str):
        raise TraceError(f"{name} is {str(given)[:40]!r}, not text; labels are text, for example str(token)")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise TraceError(f"{name} holds half of a character (a lone surrogate), which is no text") from None
    return given


def read_alignment(given: Iterable[int | None] | None, n_targets: int, n_sources: int) -> tuple[int | None, ...]:
    """The source position of each target token, or None."""
    if given is None:
        return (None,) * n_targets
    keys = [*given]
    if len(keys) != n_targets:
        raise TraceError(f"alignment has {len(keys)} entries for {n_targets} target tokens; one, or None, is needed for each")
    for t, key in enumerate(keys):
        is_whole = isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_)
        if key is not None and (not is_whole or not 0 <= key < n_sources):
            raise TraceError(f"alignment[{t}] is {str(key)[:40]!r}; it is None, or a source position from 0 to {n_sources - 1}")
    return tuple(None if key is None else int(key) for key in keys)


def read_steps(
    outputs: tuple[str, ...],
    probabilities: Iterable[float] | None,
    candidates: Iterable[Iterable[tuple[str, float]]] | None,
) -> tuple[Step, ...]:
    """One step for each written token; no steps where neither probabilities nor candidates are given."""
    if probabilities is None and candidates is None:
        return ()
    if not outputs:
        raise TraceError("probabilities and candidates belong to written tokens; give output_tokens too")
    rows = [()] * len(outputs) if candidates is None else [_candidates(t, row) for t, row in enumerate(candidates)]
    numbers = [None] * len(outputs) if probabilities is None else [*probabilities]
    for name, entries in (("candidates", rows), ("probabilities", numbers)):
        if len(entries) != len(outputs):
            raise TraceError(f"{name} has {len(entries)} entries for {len(outputs)} output tokens; one is needed for each")
    steps = []
    for t, (token, row, number) in enumerate(zip(outputs, rows, numbers, strict=True)):
        rank = next((rank for rank, (name, _) in enumerate(row) if name == token), None)
        if number is None and rank is None:
            raise TraceError(f"step {t}: {token[:40]!r} is not among its candidates; give probabilities too")
        p = row[rank or 0][1] if number is None else _probability(f"probabilities[{t}]", number)
        if rank is not None and abs(p - row[rank][1]) > _SUM_TOLERANCE:
            raise TraceError(
                f"step {t}: the probability of {token[:40]!r} is {p:.6g}, and {row[rank][1]:.6g} among its candidates"
            )
        log_probability = math.log(p) if p > 0 else -math.inf
        steps.append(Step(token=token, probability=p, log_probability=log_probability, rank=rank, candidates=row))
    return tuple(steps)


def _candidates(t: int, given: Iterable[tuple[str, float]]) -> tuple[Candidate, ...]:
    name = f"candidates[{t}]"
    try:
        pairs = [(token, p) for token, p in given]
    except (TypeError, ValueError):
        raise TraceError(f"{name} is not a list of (token, probability)") from None
    row = tuple((read_text(name, token), _probability(name, p)) for token, p in pairs)
    numbers = [p for _, p in row]
    if len({token for token, _ in row}) != len(row):
        raise TraceError(f"{name} names a token twice")
    if numbers != sorted(numbers, reverse=True):
        raise TraceError(f"{name} is not in order; the most probable token comes first")
    if math.fsum(numbers) > 1 + _SUM_TOLERANCE:
        raise TraceError(f"{name} sums to {math.fsum(numbers):.6g}; probabilities sum to 1 at most")
    return row


def _probability(name: str, given: Any) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(given, str | bool) or not 0 <= number <= 1 + _SUM_TOLERANCE:
        raise TraceError(f"{name}: {str(given)[:40]!r} is no probability; it is a number from 0 to 1")
    return min(number, 1.0)


_NO_WEIGHTS = (
    "torch's fused kernels (sdpa, flash) return no weights. Load the model with attn_implementation='eager', or call "
    "model.set_attn_implementation('eager'), and run it with output_attentions=True; or let tv.wrap(model, tokenizer) record it"
)


def are_steps(given: Any) -> bool:
    """Tells whether attention is what `generate` returns: for each step a tuple with one tensor a layer."""
    is_nested = isinstance(given, list | tuple) and bool(given) and all(isinstance(step, list | tuple) for step in given)
    return is_nested and all(getattr(layer, "ndim", 0) == 4 for step in given for layer in step) and all(given)


def join_steps(kind: Kind, given: Any, beam_indices: Any = None) -> np.ndarray:
    """The steps of `generate` as one array (layer, head, query, key). Keys that a step did not have yet get 0.

    Args:
        kind: which attention.
        given: steps of layers of (batch or beam, head, query, key).
        beam_indices: of a beam search, the row of each step, as `generate` returns it; None where there is one row.
    """
    name = f"{kind} attention"
    rows = None
    if beam_indices is not None:
        chosen = _plain(beam_indices)
        chosen = chosen[0] if chosen.ndim == 2 else chosen
        rows = [int(row) for row in chosen if row >= 0]
        given = given[: len(rows)]
    parts = []
    for number, step in enumerate(given):
        layers = np.stack([_plain(layer) for layer in step])
        n_rows = layers.shape[1]
        row = 0 if rows is None else rows[number]
        if rows is None and n_rows > 1:
            raise TraceError(
                f"{name} has {n_rows} rows in step {number}: beams or sentences. Give beam_indices=out.beam_indices, or "
                "generate for one sentence without beams"
            )
        if row >= n_rows:
            raise TraceError(f"beam_indices names row {row} in step {number}, where {name} has {n_rows}")
        parts.append(layers[:, row])
    n_keys = max(part.shape[-1] for part in parts)
    wide = [np.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, n_keys - part.shape[-1])]) for part in parts]
    return np.concatenate(wide, axis=-2)


def _plain(part: Any) -> np.ndarray:
    """An array, or a tensor on whatever device, of whatever type, with a gradient or without."""
    if hasattr(part, "detach") and hasattr(part, "cpu"):
        part = part.detach().cpu()
        # numpy has no bfloat16.
        part = part.float() if str(part.dtype) == "torch.bfloat16" else part
    return np.asarray(part)


def read_weights(kind: Kind, given: Any, n_queries: int, n_keys: int) -> np.ndarray:
    """Attention as float32 (layer, head, query, key), of whatever `Trace.from_arrays` takes."""
    name = f"{kind} attention"
    if isinstance(given, list | tuple) and (not given or any(part is None for part in given)):
        raise TraceError(f"{name} is {'empty' if not given else 'None in some layers'}: {_NO_WEIGHTS}")
    try:
        # Layer by layer, since the parts of a list may be tensors.
        array = np.stack([_plain(part) for part in given]) if isinstance(given, list | tuple) else _plain(given)
    except Exception as error:  # whatever `__array__` of somebody else's class raises
        raise TraceError(
            f"{name} cannot be read as one array ({type(error).__name__}: {str(error)[:200]}). "
            "A tensor is given as tensor.detach().float().cpu(), a list of layers with the same shape in each."
        ) from error
    if array.dtype.kind not in "fiu":
        raise TraceError(f"{name} is an array of {array.dtype}; numbers are needed")
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
    if (wrong := ~np.isfinite(array)).any():
        raise TraceError(
            f"{name} holds numbers that are not finite, the first at {_first(wrong)}; "
            "a row in which everything is masked becomes NaN in many programs: write zeros there"
        )
    if (wrong := array < 0).any():
        raise TraceError(f"{name} holds negative numbers, the first at {_first(wrong)}; are they scores, before the softmax?")
    return array


def check_rows(kind: Kind, masked: np.ndarray, weights: np.ndarray) -> None:
    """Raises a TraceError where a row of weights does not sum to 1; arguments as of `rows_not_one`."""
    if not (wrong := rows_not_one(masked, weights)).any():
        return
    total = weights.sum(-1, dtype=np.float64)[tuple(np.argwhere(wrong)[0])]
    why = (
        "a row in which everything is masked? Then say so with masks="
        if total == 0
        else "weights after dropout do not; take them before it, in eval mode, or accept them with normalised=False"
    )
    raise TraceError(
        f"{kind} attention: {int(wrong.sum())} of {wrong.size} rows do not sum to 1, the first is {_first(wrong)} "
        f"with {total:.6g}; {why}"
    )


def read_mask(kind: Kind, given: Any, weights: np.ndarray) -> np.ndarray:
    """A mask as bool, (query, key) or, where layers or heads differ, in the shape of the weights. True = masked."""
    name, shape = f"{kind} mask", weights.shape
    if given is None:
        return np.zeros(shape[2:], bool)
    if isinstance(given, str):
        if given != "causal" or kind != "decoder":
            raise TraceError(f"{name} {given[:40]!r} is not possible; give bool (query, key), or for the decoder 'causal'")
        given = np.triu(np.ones(shape[2:], bool), 1)
    try:
        masked = np.asarray(given)
    except Exception as error:
        raise TraceError(f"{name} cannot be read as an array ({type(error).__name__}: {str(error)[:200]})") from error
    if masked.dtype != np.bool_:
        raise TraceError(
            f"{name} is an array of {masked.dtype}; bool is needed, True = masked (for an additive mask: mask < 0)"
        )
    while masked.ndim > 2 and masked.shape[0] == 1:
        masked = masked[0]
    try:
        masked = np.broadcast_to(masked, shape[2:] if masked.ndim <= 2 else shape).copy()
    except ValueError:
        raise TraceError(f"{name} has the shape {masked.shape}; {shape[2:]} or {shape} is needed") from None
    if (wrong := weights_on_masked(masked, weights)).any():
        layer, head, query, key = np.argwhere(wrong)[0]
        raise TraceError(
            f"{name}: {int(wrong.sum())} masked cells have weight, the first at {_first(wrong)} "
            f"({weights[layer, head, query, key]:.4g}). True means masked here; if it means “may look” in yours, give ~mask."
        )
    return masked


def _first(found: np.ndarray) -> str:
    """`[layer, head, query, key]` of the first True."""
    return str([int(i) for i in np.argwhere(found)[0]])


def rows_not_one(masked: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Finds rows that do not sum to 1, bool (…, query); one in which everything is masked may hold zeros.

    Args:
        masked: bool that broadcasts to `weights`, True = masked.
        weights: (…, query, key).
    """
    sums = weights.sum(-1, dtype=np.float64)
    return (np.abs(sums - 1) > ROW_TOLERANCE) & ~(np.broadcast_to(masked, weights.shape).all(-1) & (sums == 0))


def weights_on_masked(masked: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Finds masked cells with weight, bool in the shape of `weights`.

    Where everything in a row is masked they may: some programs then spread it evenly. Arguments as in `rows_not_one`.
    """
    everywhere = np.broadcast_to(masked, weights.shape)
    return everywhere & (weights > _NOTHING) & ~everywhere.all(-1, keepdims=True)


def explained(kind: Kind, masked: np.ndarray, key_is_padding: np.ndarray) -> np.ndarray:
    """Reasons, uint8 in the shape of `masked`: padding and the future where a cell is that, UNKNOWN elsewhere.

    A padded key is of the future, too, only where each later key that is none is hidden.

    Args:
        kind: only the decoder has a future.
        masked: bool (query, key) or (layer, head, query, key).
        key_is_padding: bool (key,).
    """
    n_queries, n_keys = masked.shape[-2:]
    codes = np.broadcast_to(key_is_padding, (n_queries, n_keys)) * np.uint8(Reason.PADDING)
    if kind == "decoder":
        # Of a padded key only where it is seen that later keys are hidden.
        later = np.triu(np.ones((n_queries, n_keys), bool), 1)
        real = later & ~key_is_padding
        is_causal = bool(real.any()) and bool(masked[..., real].all())
        codes = codes | (later if is_causal else real) * np.uint8(Reason.FUTURE)
    return np.where(masked, np.where(codes > 0, codes, np.uint8(Reason.UNKNOWN)), np.uint8(0)).astype(np.uint8)
