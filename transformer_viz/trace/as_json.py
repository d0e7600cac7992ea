"""A run in short, as JSON-ready data: what was read, what was written, and how sure the model was."""

import math
from collections.abc import Iterable
from typing import Any

from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Candidate, Fill, Step, Trace


def summary(trace: Trace) -> dict[str, Any]:
    """Tokens, steps and candidates without the matrices; numbers that are not finite become None."""
    return {
        "source": trace.source,
        "text": trace.text,
        "expected": trace.expected,
        "right": trace.is_right,
        "first_wrong_step": trace.first_wrong_step,
        "finished": trace.finished,
        "mistake": trace.mistake,
        "edits": list(trace.edits),
        "checkpoint": trace.made_by.get("checkpoint"),
        "device": trace.made_by.get("device"),
        "source_tokens": list(trace.source_tokens),
        "target_tokens": list(trace.target_tokens),
        "output_tokens": list(trace.output_tokens),
        "alignment": list(trace.alignment),
        "steps": [_step(step) for step in trace.steps],
        "made_by": dict(trace.made_by),
        **({} if trace.search is None else {"hypotheses": _hypotheses(trace.search)}),
        **_later_parts(trace),
    }


def _later_parts(trace: Trace) -> dict[str, Any]:
    """What only some runs have."""
    parts: dict[str, Any] = {"n_given": trace.n_given, "fills": [_fill(fill) for fill in trace.fills]}
    ids = {name: getattr(trace, name) for name in ("source_ids", "target_ids", "output_ids")}
    return {name: part for name, part in parts.items() if part} | {
        name: list(part) for name, part in ids.items() if part is not None
    }


def _fill(fill: Fill) -> dict[str, Any]:
    return {"place": fill.place, "candidates": _candidates(fill.candidates), **_candidate_ids(fill)}


def _hypotheses(search: Search) -> list[dict[str, Any]]:
    """Finished hypotheses, best first."""
    nodes = [search.nodes[number] for number in search.best]
    return [
        {"text": node.text, "score": node.score, "log_probability": node.total, "tokens": node.step + 1, "state": node.state}
        for node in nodes
    ]


def _step(step: Step) -> dict[str, Any]:
    data = {
        "token": step.token,
        "probability": _finite(step.probability),
        "log_probability": _finite(step.log_probability),
        "rank": step.rank,
        "candidates": _candidates(step.candidates),
        **({} if step.token_id is None else {"token_id": step.token_id}),
        **_candidate_ids(step),
    }
    if step.sampling_probability is not None:
        data["sampling_probability"] = _finite(step.sampling_probability)
    return data


def _candidates(candidates: Iterable[Candidate]) -> list[list[Any]]:
    return [[token, _finite(probability)] for token, probability in candidates]


def _candidate_ids(part: Step | Fill) -> dict[str, Any]:
    return {"candidate_ids": list(part.candidate_ids)} if part.candidate_ids else {}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
