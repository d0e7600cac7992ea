"""Looking into a head (`tv.inside`) against one pass over the same tokens with every attention recorded."""

from functools import partial
from statistics import median

import torch

import transformer_viz as tv
from benchmarks.cases import SIZES, subject, text_of
from benchmarks.measure import Line, Number, Report, Target, in_turns

TITLE = "the inside of a head"
TARGETS = {"one pass": Target("looking into a head against one pass over its run (teacher forcing)", "at most", 1.0, "×")}
_BUDGET, _LENGTH = 4.0, 64


def measure(report: Report) -> None:
    """Both sizes; the run is there already, as it is on the page."""
    for name, size in SIZES.items():
        checkpoint = subject(size, torch.device("cpu"))
        trace = tv.decode(checkpoint, text_of(_LENGTH), max_length=_LENGTH)
        target = trace.target_tokens[1:]
        works = {
            "inside": partial(tv.inside, checkpoint, trace, "cross", 0, 0, _LENGTH // 2),
            "one pass": partial(tv.decode, checkpoint, trace.source, target=target),
        }
        taken = in_turns(works, budget=_BUDGET, often=tuple(works))
        ours, other = (Number.of(what, [1000 * each for each in taken[what]]) for what in works)
        report.add(Line(f"{name} layers, {_LENGTH} tokens: the inside of a head", ours, other, "ms", len(taken["inside"])))
        report.worst("one pass", median(taken["inside"]) / median(taken["one pass"]), "at most")
