"""What `Trace.from_arrays` makes a Trace of: attention arrays and tokens that somebody has from elsewhere, checked.

What is not given stays unknown: a run without output tokens has none, one without probabilities no
steps, and a mask whose reason cannot be told is said to be that.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from transformer_viz.errors import TraceError, listed
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace import given_arrays
from transformer_viz.trace.attention import Attention
from transformer_viz.trace.trace import Candidate, Step

_SUM_TOLERANCE = 1e-4


class Labels(NamedTuple):
    """Tokens of the source, of what the decoder read, and of what was written; none where there are none."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    output: tuple[str, ...]

    @classmethod
    def of(
        cls,
        kinds: Iterable[Kind],
        source: Iterable[str] | None,
        target: Iterable[str] | None,
        output: Iterable[str] | None,
    ) -> "Labels":
        """Checked; each kind of attention needs those of its queries and keys."""
        labels = cls(
            _tokens("source_tokens", source, needed_for=[kind for kind in kinds if kind != "decoder"]),
            _tokens("target_tokens", target, needed_for=[kind for kind in kinds if kind != "encoder"]),
            _tokens("output_tokens", output),
        )
        if labels.output and len(labels.output) != len(labels.target):
            raise TraceError(
                f"output_tokens has {len(labels.output)} tokens for {len(labels.target)} target tokens; one is needed for each"
            )
        return labels

    def queries_and_keys(self, kind: Kind) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Labels of the rows and of the columns of a kind."""
        return self.source if kind == "encoder" else self.target, self.target if kind == "decoder" else self.source


def attentions_of(
    given: Mapping[Kind, Any], masks: Mapping[str, Any] | None, labels: Labels, *, pad_token: str, normalised: bool
) -> dict[Kind, Attention]:
    """The attention of each kind, checked against the labels; see `Trace.from_arrays`."""
    attentions: dict[Kind, Attention] = {}
    read_masks = _masks(masks, given)
    for kind, array in given.items():
        queries, keys = labels.queries_and_keys(kind)
        weights = given_arrays.weights_of(kind, array, len(queries), len(keys))
        masked = given_arrays.mask_of(kind, read_masks.get(kind), weights)
        if normalised:
            given_arrays.check_rows(kind, weights, masked)
        reasons = given_arrays.explained(kind, masked, np.array([token == pad_token for token in keys]))
        attentions[kind] = Attention(weights=weights, reasons=reasons)
    return attentions


def given_kinds(**arrays: Any) -> dict[Kind, Any]:
    """The kinds of attention that are given, at least one."""
    given = {kind: arrays[kind] for kind in KINDS if arrays[kind] is not None}
    if not given:
        raise TraceError("no attention is given; give encoder=, decoder= or cross=")
    return given


def text_of(name: str, given: str | None, tokens: Iterable[str]) -> str:
    """The text; the tokens with spaces between where it is not given."""
    return " ".join(tokens) if given is None else _text(name, given)


def made_by(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is said of the making; a copy that can be written to a file."""
    return _plain({"strategy": "from arrays", **(given or {})})


def _tokens(name: str, given: Iterable[str] | None, needed_for: Sequence[Kind] = ()) -> tuple[str, ...]:
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
        _text(f"{name}[{place}]", token)
    return tuple(map(str, tokens))


def _text(name: str, given: Any) -> str:
    """Text that can be written to a file: half of a character cannot."""
    if not isinstance(given, str):
        raise TraceError(f"{name} is {str(given)[:40]!r}, not text; labels are text, for example str(token)")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise TraceError(f"{name} holds half of a character (a lone surrogate), which is no text") from None
    return given


def _plain(made_by: dict[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(made_by, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TraceError(f"made_by holds what JSON cannot ({error}); plain text, numbers, lists and dicts are needed") from None


def _masks(given: Mapping[str, Any] | None, kinds: Iterable[Kind]) -> dict[Kind, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TraceError(f"masks is {type(given).__name__}; a dict is needed, for example {{'decoder': 'causal'}}")
    for name in given:
        if name not in KINDS or name not in kinds:
            raise TraceError(f"masks names {str(name)[:40]!r}; there is attention of {listed(kinds)}")
    return {kind: given[kind] for kind in kinds if kind in given}


def alignment_of(given: Iterable[int | None] | None, n_targets: int, n_sources: int) -> tuple[int | None, ...]:
    """The true key of each target token, checked; None where nothing is known."""
    if given is None:
        return (None,) * n_targets
    found = tuple(None if key is None else _position(f"alignment[{t}]", key, n_sources) for t, key in enumerate(given))
    if len(found) != n_targets:
        raise TraceError(f"alignment has {len(found)} entries for {n_targets} target tokens; one, or None, is needed for each")
    return found


def _position(name: str, given: Any, below: int) -> int:
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer) or not 0 <= given < below:
        raise TraceError(f"{name} is {str(given)[:40]!r}; it is None, or a source position from 0 to {below - 1}")
    return int(given)


def steps_of(
    outputs: tuple[str, ...],
    probabilities: Iterable[float] | None,
    candidates: Iterable[Iterable[tuple[str, float]]] | None,
) -> tuple[Step, ...]:
    """One step for each written token, or none at all where nothing is known of probabilities."""
    if probabilities is None and candidates is None:
        return ()
    if not outputs:
        raise TraceError("probabilities and candidates belong to written tokens; give output_tokens too")
    lists = [()] * len(outputs) if candidates is None else [_candidates(t, row) for t, row in enumerate(candidates)]
    known = [None] * len(outputs) if probabilities is None else [*probabilities]
    for name, found in (("candidates", lists), ("probabilities", known)):
        if len(found) != len(outputs):
            raise TraceError(f"{name} has {len(found)} entries for {len(outputs)} output tokens; one is needed for each")
    return tuple(_step(t, token, known[t], lists[t]) for t, token in enumerate(outputs))


def _candidates(t: int, given: Iterable[tuple[str, float]]) -> tuple[Candidate, ...]:
    name = f"candidates[{t}]"
    try:
        pairs = [(token, p) for token, p in given]
    except (TypeError, ValueError):
        raise TraceError(f"{name} is not a list of (token, probability)") from None
    found = tuple((_text(name, token), _probability(name, p)) for token, p in pairs)
    numbers = [p for _, p in found]
    if len({token for token, _ in found}) != len(found):
        raise TraceError(f"{name} names a token twice")
    if numbers != sorted(numbers, reverse=True):
        raise TraceError(f"{name} is not in order; the most probable token comes first")
    if math.fsum(numbers) > 1 + _SUM_TOLERANCE:
        raise TraceError(f"{name} sums to {math.fsum(numbers):.6g}; probabilities sum to 1 at most")
    return found


def _step(t: int, token: str, given: float | None, candidates: tuple[Candidate, ...]) -> Step:
    place = next((place for place, (name, _) in enumerate(candidates) if name == token), None)
    if given is None and place is None:
        raise TraceError(f"step {t}: {token[:40]!r} is not among its candidates; give probabilities too")
    p = candidates[place or 0][1] if given is None else _probability(f"probabilities[{t}]", given)
    if place is not None and abs(p - candidates[place][1]) > _SUM_TOLERANCE:
        raise TraceError(
            f"step {t}: the probability of {token[:40]!r} is {p:.6g}, and {candidates[place][1]:.6g} among its candidates"
        )
    return Step(
        token=token, probability=p, log_probability=math.log(p) if p > 0 else -math.inf, rank=place, candidates=candidates
    )


def _probability(name: str, given: Any) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(given, str | bool) or not 0 <= number <= 1 + _SUM_TOLERANCE:
        raise TraceError(f"{name}: {str(given)[:40]!r} is no probability; it is a number from 0 to 1")
    return min(number, 1.0)
