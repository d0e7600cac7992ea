"""Grades of heads in a sentence."""

from transformer_viz.analysis.grading import Grades
from transformer_viz.language import say, sentences
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.sentences.run_sentences import Sentence, say_sentence
from transformer_viz.terms import head_title, kind_words


def grades_sentence(grades: Grades) -> Sentence:
    """The best head and its baselines; where no step has a right key, how many heads have which name.

    `Layer 1 head 1 of cross-attention is best: over 99 % of its weight is on the right token.
    Uniform attention would have 8 %, …`
    """
    if not grades or grades[0].mass is None:
        return say_sentence("No step of this run has a known right token, so heads are ranked by how well their names fit.")
    best = grades[0]
    head = head_title(best.layer, best.head)
    name = say("{head} of {attention} is best: ", head=head[:1].upper() + head[1:], attention=kind_words(best.kind))
    mass, hits = percent_words(best.mass or 0.0), best.hit_rate
    looks = (
        say("{share} of its weight is on the right token.", share=mass)
        if hits is None
        else say(
            "{share} of its weight is on the right token, which is the largest at {hits} of the steps.",
            share=mass,
            hits=percent_words(hits),
        )
    )
    before = None if best.untrained is None else best.untrained.mass
    uniform = percent_words(best.uniform.mass or 0.0)
    beside = (
        say("Uniform attention would have {uniform} there.", uniform=uniform)
        if before is None
        else say(
            "Uniform attention would have {uniform} there, an untrained model {untrained}.",
            uniform=uniform,
            untrained=percent_words(before),
        )
    )
    return (("strong", name), ("plain", sentences([looks, beside])))
