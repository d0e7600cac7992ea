"""What a block of lines leaves of a survey: sums, counts and bins, and for each text what the examples are chosen by.

A file of it is one safetensors file with JSON in its metadata, and read as anybody's: types, shapes, limits and sums are
checked. Its bytes follow from the block, the model and the options alone.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from transformer_viz import reading
from transformer_viz.analysis.head_names import ROLES
from transformer_viz.analysis.survey.result import MOST_COMPARED, MOST_HEADS, Failed, SurveyedKind
from transformer_viz.analysis.survey.statistic import NAMES, SHARES, STATISTICS
from transformer_viz.errors import FileError, SurveyError
from transformer_viz.schema import read_value, to_plain
from transformer_viz.terms import Kind

FORMAT = 1
MOST_TEXTS, CUT = 4096, 1000
"""Texts of a block, and characters of a text or output that are kept."""
LARGEST, LARGEST_DESCRIPTION = 2**30, 2**24
"""Bytes."""
N_BINS = max(len(each.edges) for each in STATISTICS) - 1
N_BLEU = 10
"""Matching n-grams of 1 to 4 tokens, all of the output, and the lengths of output and answer."""
_KEY = "survey"


@dataclass(frozen=True, kw_only=True, eq=False)
class KindPartial:
    """One kind of attention; the statistics are all of `NAMES`, in their order.

    Attributes:
        layers: their numbers.
        n_heads: of each layer.
        values_of: the statistics whose values of each text are kept.
        n: int64 (statistic, layer, head), texts that have it.
        sums: float64, the same shape, over these texts.
        squares: likewise, of the distances from their mean.
        lowest: likewise; ∞ where no text has it.
        highest: likewise; −∞ where no text has it.
        even: likewise, the sum for attention that looks at every allowed key alike.
        counts: int64 (statistic, layer, head, bin), texts.
        roles: int64 (role, layer, head), texts, in the order of `ROLES`.
        agreed: float64 (head, head), the share of rows with a choice of keys in which both have the same largest one, summed
            over texts; of no heads where there are more than are compared.
        compared: int64, the same shape, texts that have such rows.
        values: float64 (statistic of `values_of`, text, layer, head); NaN where a text has none.
    """

    layers: tuple[int, ...]
    n_heads: int
    values_of: tuple[str, ...]
    n: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    even: np.ndarray
    counts: np.ndarray
    roles: np.ndarray
    agreed: np.ndarray
    compared: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputsPartial:
    """What was written of each text.

    Attributes:
        texts: the outputs, cut where they are long.
        expected: the known answers, likewise, or None.
        has_bleu: whether there are counts for BLEU.
        length: int64 (text,), source tokens without special ones.
        n_tokens: int64 (text,), tokens of the known answer with its end; 0 where none is known.
        n_right: int64 (text,), how many of them were written at their place.
        is_known: bool (text,).
        is_exact: bool (text,).
        confidence: float64 (text,), of the first wrong token; of a token on average where no answer is known; 0 of a right one.
        bleu: int64 (text, 10), as in `N_BLEU`; zeros where no answer is known.
        counts: int64 (bin of `SHARES`,), tokens that were written.
        n_judged: likewise, of those after a right prefix of a known answer.
        right: likewise, of the right ones of these.
        sum_p: float64 (bin,), of the probabilities of the judged ones.
    """

    texts: tuple[str, ...]
    expected: tuple[str | None, ...]
    has_bleu: bool
    length: np.ndarray
    n_tokens: np.ndarray
    n_right: np.ndarray
    is_known: np.ndarray
    is_exact: np.ndarray
    confidence: np.ndarray
    bleu: np.ndarray
    counts: np.ndarray
    n_judged: np.ndarray
    right: np.ndarray
    sum_p: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Partial:
    """What a block leaves.

    Attributes:
        lines: the numbers of the lines that were read, ascending.
        texts: what stands there, cut where it is long.
        failed: lines that could not be read, likewise.
        kinds: the model's kinds of attention.
        outputs: None of an encoder alone.
    """

    lines: tuple[int, ...]
    texts: tuple[str, ...]
    failed: tuple[Failed, ...]
    kinds: Mapping[Kind, KindPartial]
    outputs: OutputsPartial | None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def n_bytes(self) -> int:
        """Of its numbers."""
        return sum(array.nbytes for array in _arrays(self).values())

    def to_bytes(self, digest: str) -> bytes:
        """A file of it; `digest` says of what it is the result."""
        return to_bytes(digest, _description(self), _arrays(self))


@dataclass(frozen=True, kw_only=True)
class _Description:
    """The part of a file that is JSON."""

    statistics: tuple[str, ...]
    roles: tuple[str, ...]
    lines: tuple[int, ...]
    texts: tuple[str, ...]
    failed: tuple[Failed, ...]
    kinds: Mapping[Kind, SurveyedKind]
    values_of: tuple[str, ...]
    outputs: tuple[str, ...] | None
    expected: tuple[str | None, ...]
    has_bleu: bool


def load_partial(path: str | PathLike[str], digest: str | None = None) -> Partial:
    """Reads what `to_bytes` gave.

    Args:
        path: of the file.
        digest: of what it must be the result; None takes any.

    Raises:
        SurveyError: it is no such file, damaged, of another version, or the result of something else.
    """
    about, arrays = from_file(path, digest)
    found = read_value(_Description, about, "the block", SurveyError)
    if (found.statistics, found.roles) != (NAMES, tuple(ROLES)):
        raise SurveyError("it has other statistics or roles than this version")
    outputs = None
    if found.outputs is not None:
        own = {name: _taken(arrays, f"outputs.{name}") for name in _OF_OUTPUTS}
        outputs = OutputsPartial(texts=found.outputs, expected=found.expected, has_bleu=found.has_bleu, **own)
    kinds = {
        kind: KindPartial(
            layers=of.layers,
            n_heads=of.n_heads,
            values_of=found.values_of,
            **{name: _taken(arrays, f"{kind}.{name}") for name in _OF_KIND},
        )
        for kind, of in found.kinds.items()
    }
    if arrays:
        raise SurveyError(f"it holds {sorted(arrays)[0][:60]!r}, which does not belong there")
    return Partial(lines=found.lines, texts=found.texts, failed=found.failed, kinds=kinds, outputs=outputs)


def to_bytes(digest: str, description: Any, arrays: Mapping[str, np.ndarray]) -> bytes:
    """A safetensors file; the same bytes for the same content."""
    from safetensors.numpy import save

    # Of several keys the library writes the metadata in any order.
    about = json.dumps({"format": FORMAT, "digest": digest, **to_plain(description)}, ensure_ascii=False, allow_nan=False)
    check = _checksum(about, arrays)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_KEY: f"{check} {about}"})


def from_file(path: str | PathLike[str], digest: str | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description and the arrays of a file that `to_bytes` gave.

    Raises:
        SurveyError: see `load_partial`.
    """
    try:
        with reading.tensors(path, LARGEST, LARGEST_DESCRIPTION, framework="numpy") as file:
            check, _, text = (file.metadata() or {}).get(_KEY, "").partition(" ")
            about = reading.parsed(text)
            if not isinstance(about, dict) or about.pop("format", None) != FORMAT:
                raise SurveyError(f"it is not of format {FORMAT}")
            if digest not in (None, given := about.pop("digest", None)):
                raise SurveyError(f"it is the result of something else ({str(given)[:12]!r})")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no dictionary
    except FileNotFoundError:
        raise SurveyError(f"There is no file {str(path)[-200:]}.") from None
    except (FileError, TypeError, ValueError, OverflowError) as error:
        raise SurveyError(f"it is no part of a survey ({error})") from error
    if _checksum(text, arrays) != check:
        raise SurveyError("it is damaged: its checksum is another one")
    return about, arrays


def _checksum(about: str, arrays: Mapping[str, np.ndarray]) -> str:
    """A bit that fell over in a sum shows nowhere else."""
    found = hashlib.sha256(about.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _taken(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise SurveyError(f"{name} is missing")
    return arrays.pop(name)


_INT, _FLOAT, _BOOL = (np.dtype(name) for name in ("int64", "float64", "bool"))
_OF_KIND = {
    "n": _INT,
    "sums": _FLOAT,
    "squares": _FLOAT,
    "lowest": _FLOAT,
    "highest": _FLOAT,
    "even": _FLOAT,
    "counts": _INT,
    "roles": _INT,
    "agreed": _FLOAT,
    "compared": _INT,
    "values": _FLOAT,
}
_OF_OUTPUTS = {
    "length": _INT,
    "n_tokens": _INT,
    "n_right": _INT,
    "is_known": _BOOL,
    "is_exact": _BOOL,
    "confidence": _FLOAT,
    "bleu": _INT,
    "counts": _INT,
    "n_judged": _INT,
    "right": _INT,
    "sum_p": _FLOAT,
}


def _description(partial: Partial) -> _Description:
    outputs, kinds = partial.outputs, partial.kinds
    return _Description(
        statistics=NAMES,
        roles=tuple(ROLES),
        lines=partial.lines,
        texts=partial.texts,
        failed=partial.failed,
        kinds={kind: SurveyedKind(layers=of.layers, n_heads=of.n_heads) for kind, of in kinds.items()},
        values_of=next((of.values_of for of in kinds.values()), ()),
        outputs=None if outputs is None else outputs.texts,
        expected=() if outputs is None else outputs.expected,
        has_bleu=outputs is not None and outputs.has_bleu,
    )


def _arrays(partial: Partial) -> dict[str, np.ndarray]:
    found = {f"{kind}.{name}": getattr(of, name) for kind, of in partial.kinds.items() for name in _OF_KIND}
    if partial.outputs is not None:
        found |= {f"outputs.{name}": getattr(partial.outputs, name) for name in _OF_OUTPUTS}
    return found


def _check(partial: Partial) -> None:
    """Raises a SurveyError that names the part which does not fit."""
    n, lines = len(partial.lines), (*partial.lines, *(each.line for each in partial.failed))
    if not 0 < len(lines) <= MOST_TEXTS or len(set(lines)) < len(lines) or min(lines) < 1 or len(partial.texts) != n:
        raise SurveyError(f"{len(lines)} lines with {len(partial.texts)} texts; 1 to {MOST_TEXTS} different ones are needed")
    if list(partial.lines) != sorted(partial.lines):
        raise SurveyError("the lines do not ascend")
    for kind, of in partial.kinds.items():
        _check_kind(kind, of, n)
    if partial.outputs is not None:
        _check_outputs(partial.outputs, n)


def _check_kind(kind: Kind, of: KindPartial, n_texts: int) -> None:
    heads, n_stats = (len(of.layers), of.n_heads), len(NAMES)
    n_heads = heads[0] * heads[1]
    if not 0 < n_heads <= MOST_HEADS or list(of.layers) != sorted(set(of.layers)) or min(of.layers) < 0:
        raise SurveyError(f"{kind}: {heads[0]} layers of {heads[1]} heads; at most {MOST_HEADS} heads are possible")
    if unknown := [name for name in of.values_of if name not in NAMES]:
        raise SurveyError(f"{kind}: values of {unknown[0]!r}, which is no statistic")
    n_compared = n_heads if n_heads <= MOST_COMPARED else 0
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(_OF_KIND, (n_stats, *heads))
    sizes |= {"counts": (n_stats, *heads, N_BINS), "roles": (len(ROLES), *heads)}
    sizes |= {"agreed": (n_compared,) * 2, "compared": (n_compared,) * 2, "values": (len(of.values_of), n_texts, *heads)}
    _check_arrays(f"{kind}.", of, _OF_KIND, sizes, may_be_none=("lowest", "highest", "values"))
    has_all = (of.counts.sum(-1) == of.n).all() and (of.n <= n_texts).all() and (of.roles.sum(0) == n_texts).all()
    if not has_all or (of.compared > n_texts).any() or (of.agreed > of.compared * (1 + 1e-9)).any():
        raise SurveyError(f"{kind}: bins or roles do not add up to the texts")
    has_one = of.n > 0
    if not (np.isfinite(of.lowest) & np.isfinite(of.highest) & (of.lowest <= of.highest))[has_one].all():
        raise SurveyError(f"{kind}: the smallest of a statistic is not below its largest")
    if np.isinf(of.values).any():
        raise SurveyError(f"{kind}: a value is infinite")


def _check_outputs(of: OutputsPartial, n: int) -> None:
    if len(of.texts) != n or len(of.expected) != n:
        raise SurveyError(f"there are {len(of.texts)} outputs and {len(of.expected)} answers of {n} texts")
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(_OF_OUTPUTS, (n,))
    sizes |= {"bleu": (n, N_BLEU)} | dict.fromkeys(("counts", "n_judged", "right", "sum_p"), (len(SHARES) - 1,))
    _check_arrays("outputs.", of, _OF_OUTPUTS, sizes)
    fits = (of.n_right <= of.n_tokens).all() and (of.is_known | ~of.is_exact).all() and (of.confidence <= 1 + 1e-6).all()
    if not fits or not ((of.right <= of.n_judged) & (of.n_judged <= of.counts)).all():
        raise SurveyError("outputs: more is right than there is")


def _check_arrays(
    where: str, of: Any, types: Mapping[str, np.dtype], sizes: Mapping[str, tuple[int, ...]], may_be_none: tuple[str, ...] = ()
) -> None:
    """Types, shapes, no number below 0 but where a statistic is not there, and none that is none."""
    for name, dtype in types.items():
        array: np.ndarray = getattr(of, name)
        if array.dtype != dtype or array.shape != sizes[name]:
            raise SurveyError(f"{where}{name} is {array.dtype} {array.shape}; {dtype} {sizes[name]} is needed")
        if name not in may_be_none and not (np.isfinite(array).all() and (array >= 0).all()):
            raise SurveyError(f"{where}{name} holds a number below 0, or one that is none")
