"""One sentence of a run."""

from transformer_viz.sentences.run_sentences import Sentence, step_sentences
from transformer_viz.terms import Head, Kind
from transformer_viz.trace.trace import Trace


def step_sentence(trace: Trace, kind: Kind, layer: int, head: Head, step: int, *, with_answer: bool = True) -> Sentence:
    """Of one head at one step."""
    return step_sentences(trace, kind, [(layer, head)], with_answer=with_answer)[0][step]
