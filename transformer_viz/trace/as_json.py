"""A run in short, as JSON-ready data: what was read, what was written, and how sure the model was."""

import math
from typing import Any

from transformer_viz.trace.search import Search
from transformer_viz.trace.trace import Step, Trace


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
    }


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
        "candidates": [[token, _finite(probability)] for token, probability in step.candidates],
    }
    if step.sampling_probability is not None:
        data["sampling_probability"] = _finite(step.sampling_probability)
    return data


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
