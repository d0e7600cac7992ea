"""A survey by plain loops: each text decoded alone, each head graded by `analysis.alignment`, numbers in lists."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_viz import Trace, decode
from transformer_viz.analysis.grading import alignment
from transformer_viz.analysis.word_starts import is_special
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import Kind
from transformer_viz.vocabulary import END

Place = tuple[Kind, int, int]


class Plain:
    """What a survey of these texts must say."""

    def __init__(self, model: LoadedModel, texts: Sequence[str], max_length: int | None = None) -> None:
        self.values: dict[tuple[Place, str], list[float]] = defaultdict(list)
        self.even: dict[tuple[Place, str], list[float]] = defaultdict(list)
        self.lines: dict[tuple[Place, str], list[int]] = defaultdict(list)
        self.roles: dict[Place, Counter[str]] = defaultdict(Counter)
        self.agreement: dict[Kind, dict[tuple[int, int], list[float]]] = defaultdict(lambda: defaultdict(list))
        self.traces = [decode(model, text, max_length=max_length) for text in texts]
        for line, trace in enumerate(self.traces, 1):
            self._add(line, trace)

    def _add(self, line: int, trace: Trace) -> None:
        for grade in alignment(trace):
            place = (grade.kind, grade.layer, grade.head)
            self.roles[place][grade.name] += 1
            more = _more(trace, *place)
            for name, value in [*grade.measures.items(), *((name, own) for name, (own, _) in more.items())]:
                if value is not None:
                    even = more[name][1] if name in more else grade.uniform.measures[name]
                    assert even is not None
                    self.values[place, name].append(value)
                    self.even[place, name].append(even)
                    self.lines[place, name].append(line)
        for kind in trace.kinds:
            weights = trace.attentions[kind].weights
            heads = weights.reshape(-1, *weights.shape[2:])
            for a, one in enumerate(heads):
                for b, other in enumerate(heads):
                    alike = [
                        int(x.argmax()) == int(y.argmax())
                        for x, y, n_allowed in zip(one, other, self._n_allowed(trace, kind), strict=True)
                        if x.any() and y.any() and n_allowed > 1
                    ]
                    if alike:
                        self.agreement[kind][a, b].append(sum(alike) / len(alike))

    @staticmethod
    def _n_allowed(trace: Trace, kind: Kind) -> list[int]:
        """Allowed keys of each row; the models here have one mask for all heads of a kind."""
        mask = trace.attentions[kind].mask
        return (~mask.reshape(-1, *mask.shape[-2:])[0]).sum(-1).tolist()


def _more(trace: Trace, kind: Kind, layer: int, head: int) -> dict[str, tuple[float, float]]:
    """What is measured over many texts alone, of this head and of uniform attention."""
    weights, keys = trace.attentions[kind].weights, trace.attentions[kind].keys
    place = trace.attentions[kind].layer_index(layer)
    mask = trace.attentions[kind].mask
    mask = mask if mask.ndim == 2 else mask[place, head]
    special = [k for k, key in enumerate(keys) if is_special(key)]
    last = keys.index(END) if END in keys else len(keys) - 1
    found: dict[str, Any] = defaultdict(lambda: ([], []))
    for q, row in enumerate(weights[place, head].astype(np.float64)):
        allowed = [k for k in range(len(keys)) if not mask[q, k]]
        if len(allowed) < 2:
            continue
        own = {
            "special": special,
            **({} if kind == "decoder" else {"last_key": [last]}),
            **({} if kind == "cross" else {"itself": [q]}),
        }
        for name, of in own.items():
            found[name][0].append(sum(row[k] for k in of))
            found[name][1].append(sum(k in allowed for k in of) / len(allowed))
    return {name: (math.fsum(own) / len(own), math.fsum(even) / len(even)) for name, (own, even) in found.items()}
