"""Grades of heads in a sentence."""

from transformer_viz.analysis.grading import Grades
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.sentences.run_sentences import Sentence, sentence
from transformer_viz.terms import KIND_TITLES, head_title


def grades_sentence(grades: Grades) -> Sentence:
    """The best head and its baselines; where no step has a right key, how many heads have which name.

    `Layer 1 head 1 of cross-attention is best: over 99 % of its weight is on the right token.
    Uniform attention would have 8 %, …`
    """
    if not grades or grades[0].mass is None:
        return sentence("No step of this run has a known right token, so heads are ranked by how well their names fit.")
    best = grades[0]
    name = f"{head_title(best.layer, best.head).capitalize()} of {KIND_TITLES[best.kind]} is best: "
    pieces = [f"{percent_words(best.mass or 0.0)} of its weight is on the right token"]
    if best.hit_rate is not None:
        pieces.append(f", which is the largest at {percent_words(best.hit_rate)} of the steps")
    before = None if best.untrained is None else best.untrained.mass
    untrained = "" if before is None else f", an untrained model {percent_words(before)}"
    uniform = f". Uniform attention would have {percent_words(best.uniform.mass or 0.0)} there{untrained}."
    return sentence(("strong", name), *pieces, uniform)
