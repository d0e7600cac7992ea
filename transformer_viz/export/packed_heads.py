"""The heads of a large run for a page, each packed alone: a browser unpacks one when somebody chooses it.

A weight becomes a whole number of 16 bits with a scale for its row: the largest one where that is above 1, else 1, since finer
steps for small weights would be a fifth of the page. The bytes of a head, all low ones and then all high ones, are deflated,
which makes little of what is masked or nearly nothing.
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from transformer_viz.sentences.run_sentences import Sentence, step_sentences
from transformer_viz.terms import COMBINED, Head, Kind
from transformer_viz.trace.limits import n_weights
from transformer_viz.trace.trace import Trace

EXACT_UP_TO = 2**21
"""The most weights of a run whose page has every one as it is."""
_NOT_A_NUMBER, _LARGEST = 65_535, 65_534
_SAMPLED = 6
"""Heads of a kind by which the size of all is known to some hundredths."""


@dataclass(frozen=True)
class PackedKind:
    """The heads of one kind of attention.

    Attributes:
        heads: by layer's place and head, as `0 3` or `0 mean`: `sentences` of the steps, and of a head its `weights`; both
            deflated, as base64.
        error: the largest difference between a weight and what it is unpacked to.
    """

    heads: dict[str, dict[str, str]]
    error: float


def is_large(trace: Trace) -> bool:
    """Tells whether its page has packed heads."""
    return n_weights(trace) > EXACT_UP_TO


def packed_kind(trace: Trace, kind: Kind, *, with_answer: bool) -> PackedKind:
    """Packs all heads of a kind, and the sentences of its layers' means and maxima."""
    places = list(_places(trace, kind))
    # The library that deflates lets other threads work meanwhile.
    with ThreadPoolExecutor() as pool:
        packed = list(pool.map(partial(_head, trace, kind, with_answer=with_answer), places))
    names = [f"{trace.attentions[kind].layer_index(layer)} {head}" for layer, head in places]
    return PackedKind(dict(zip(names, (parts for parts, _ in packed), strict=True)), max(error for _, error in packed))


def estimated_size(trace: Trace) -> int:
    """About how many bytes the heads take in a page, by some of them."""
    n_bytes = 0.0
    for kind, attention in trace.attentions.items():
        heads = [(layer, head) for layer in attention.layers for head in range(attention.n_heads)]
        sample = heads[:: -(-len(heads) // _SAMPLED)]
        sizes = [sum(map(len, _head(trace, kind, place, with_answer=True)[0].values())) for place in sample]
        n_bytes += sum(sizes) / len(sizes) * len(heads)
    return round(n_bytes)


def exact_part(
    trace: Trace,
    kind: Kind,
    layer: int,
    head: Head,
    *,
    with_answer: bool,
    mark: Callable[[Sentence], Sequence[tuple[str, str]]] = tuple,
) -> dict[str, str]:
    """`exact_bytes` as base64, for JSON.

    Raises:
        OptionError: the run has no such kind, layer or head.
    """
    parts = exact_bytes(trace, kind, layer, head, with_answer=with_answer, mark=mark)
    return {name: base64.b64encode(data).decode() for name, data in parts.items()}


def exact_bytes(
    trace: Trace,
    kind: Kind,
    layer: int,
    head: Head,
    *,
    with_answer: bool,
    mark: Callable[[Sentence], Sequence[tuple[str, str]]] = tuple,
) -> dict[str, bytes]:
    """One head for a viewer whose run comes in parts: its `weights` as they are, float32, the first bytes of all numbers, then
    the second ones and so on; its `sentences`; and its `reasons` where those differ from head to head. Deflated.

    Raises:
        OptionError: the run has no such kind, layer or head.
    """
    attention = trace.attentions[kind]
    planes = np.asarray(attention.head(layer, head), "<f4").view(np.uint8).reshape(-1, 4).T
    sentences = step_sentences(trace, kind, [(layer, head)], with_answer=with_answer)[0]
    text = json.dumps([mark(sentence) for sentence in sentences], separators=(",", ":"))
    parts = {"weights": _deflated(planes.tobytes(), zlib.Z_RLE, level=1), "sentences": _deflated(text.encode(), level=1)}
    if attention.reasons.ndim > 2:
        parts["reasons"] = _deflated(attention.head_reasons(layer, head).tobytes(), level=1)
    return parts


def packed_weights(weights: np.ndarray) -> tuple[bytes, np.ndarray]:
    """One map, deflated, and what it is unpacked to.

    Args:
        weights: (query, key), not negative; NaN where a mistake made one.

    Returns:
        The float32 scales of the rows, the low bytes of all numbers and their high bytes, deflated; and the (query, key)
        float32 numbers that a browser makes of them.
    """
    known = np.isfinite(weights)
    most = np.where(known, weights, 0).max(-1, keepdims=True, initial=0)
    scales = (np.maximum(most, 1) / _LARGEST).astype("<f4")
    whole = np.rint(np.where(known, weights, 0) / scales).astype("<u2")
    planes = np.where(known, whole, np.uint16(_NOT_A_NUMBER)).view(np.uint8).reshape(-1, 2).T
    again = np.where(known, whole.astype(np.float32) * scales, np.float32(np.nan))
    return _deflated(scales.tobytes() + planes.tobytes(), zlib.Z_RLE), again


def packed_reasons(reasons: np.ndarray) -> dict[str, Any]:
    """Reasons of masks that differ from head to head, in a thousandth of their size."""
    return {"dtype": "u1", "shape": list(reasons.shape), "deflated": base64.b64encode(_deflated(reasons.tobytes())).decode()}


def _places(trace: Trace, kind: Kind) -> Iterator[tuple[int, Head]]:
    attention = trace.attentions[kind]
    return ((layer, head) for layer in attention.layers for head in (*range(attention.n_heads), *COMBINED))


def _head(trace: Trace, kind: Kind, place: tuple[int, Head], *, with_answer: bool) -> tuple[dict[str, str], float]:
    """A head, or what is combined from a layer's, of which the browser makes the map by itself; and its largest error."""
    parts, error = {}, 0.0
    # Those of an encoder beside a decoder are one for all heads, and stand in the page as they are.
    if trace.is_stepped(kind):
        sentences = step_sentences(trace, kind, [place], with_answer=with_answer)[0]
        text = json.dumps([list(map(list, sentence)) for sentence in sentences], separators=(",", ":"))
        parts["sentences"] = _deflated(text.encode())
    if place[1] not in COMBINED:
        weights = trace.attentions[kind].head(*place).astype(np.float32, copy=False)
        parts["weights"], again = packed_weights(weights)
        error = float(np.nanmax(np.abs(weights - again), initial=0))
    return {name: base64.b64encode(data).decode() for name, data in parts.items()}, error


def _deflated(data: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY, level: int = 9) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, strategy=strategy)
    return packer.compress(data) + packer.flush()
