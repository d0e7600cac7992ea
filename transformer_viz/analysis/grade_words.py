"""What the grades of a run say, in sentences."""

from transformer_viz.analysis.grading import Grades, HeadGrade
from transformer_viz.analysis.sentences import Sentence, Style
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.terms import KIND_TITLES, head_title


def grades_sentence(grades: Grades) -> Sentence:
    """The best head and its baselines; where no step has a right key, how many heads have which name.

    `Layer 1 head 1 of cross-attention is best: over 99 % of its weight is on the right token.
    Uniform attention would have 8 %, …`
    """
    if not grades or grades[0].mass is None:
        return (("plain", "No step of this run has a known right token, so heads are ranked by how well their names fit."),)
    best = grades[0]
    pieces: list[tuple[Style, str]] = [
        ("strong", f"{head_title(best.layer, best.head).capitalize()} of {KIND_TITLES[best.kind]} is best: "),
        ("plain", f"{percent_words(best.mass or 0.0)} of its weight is on the right token"),
    ]
    if best.hit_rate is not None:
        pieces.append(("plain", f", which is the largest at {percent_words(best.hit_rate)} of the steps"))
    pieces.append(("plain", f". {_baselines(best)}"))
    return tuple(pieces)


def _baselines(best: HeadGrade) -> str:
    uniform = f"Uniform attention would have {percent_words(best.uniform.mass or 0.0)} there"
    if best.untrained is None or best.untrained.mass is None:
        return f"{uniform}."
    return f"{uniform}, an untrained model {percent_words(best.untrained.mass)}."
