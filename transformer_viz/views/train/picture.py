"""The moments of a training as the browser fetches them: every number of each moment, and every sentence about it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from transformer_viz.export.strips import answer_mark, output_strip, source_strip
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.mosaic import mosaic
from transformer_viz.figures.page_templates import candidate_steps, seen_reasons
from transformer_viz.figures.theme import Style
from transformer_viz.figures.training import playback_template
from transformer_viz.language import later, say
from transformer_viz.language import sentences as sentences_of
from transformer_viz.numbers_in_words import probability_words
from transformer_viz.sentences.run_sentences import Sentence, sentence
from transformer_viz.terms import Kind, kind_words
from transformer_viz.text_display import display_text
from transformer_viz.trace.hidden_answer import COVERED
from transformer_viz.training.result import TrainingSnapshot, certainty, course, snapshot_sentence, when

_FIXED = {
    "answer": later("Every moment reads the right answer, so the rows stay the same."),
    "final output": later("The right answer is not known, so every moment reads what the finished model writes."),
}


def content(
    moments: Sequence[TrainingSnapshot],
    rows: Sequence[str],
    style: Style,
    mark: Callable[[Sentence], Sequence[tuple[str, str]]],
    *,
    covered: str = "",
    terms: Any = None,
) -> dict[str, Any]:
    """The content of the viewer of a training.

    Args:
        moments: from `trace_training`.
        rows: the words of each position.
        style: of the page.
        mark: marks the terms in a sentence.
        covered: what is said of the last moment, where a part of it is not to be seen yet.
        terms: what a term means.
    """
    pieces: dict[tuple[str, str], int] = {}

    def numbered(said: Sentence) -> list[int]:
        return [pieces.setdefault(piece, len(pieces)) for piece in mark(said)]

    first, colours = moments[0], style.colours
    answers: list[Any] = [answer_mark(one.written, step_name="row") for one in moments]
    buttons = [_button(one) for one in moments]
    if covered:
        answers[-1] = {"class": "", "words": ()}
        buttons[-1] |= {"title": say(COVERED), "class": "covered", "tint": 0}
    return {
        "kinds": {kind: _kind(moments, kind, style, mark, numbered, covered) for kind in first.forced.kinds},
        "pieces": list(pieces),
        "moments": [one.step for one in moments],
        "rows": rows,
        "when": [say("All heads. {step}, reading the same target:", step=when(one.step)) for one in moments],
        "labels": {"output": say("steps of training, one button a moment"), "slider": say("Moment of training")},
        "source": source_strip(first.forced),
        "output": buttons,
        # "step" is a step of training here, so a step of the output is called a row.
        "answers": answers,
        "written": [output_strip(one.written) for one in moments],
        "candidates": [candidate_steps(one.forced) for one in moments],
        "true": (None,) * len(first.forced.alignment) if covered else first.forced.alignment,
        "terms": terms,
        "colours": {name: getattr(colours, name) for name in ("accent", "muted", "chosen", "other", "paper")},
    }


def _button(one: TrainingSnapshot) -> dict[str, Any]:
    sure, is_right = certainty(one), one.written.is_right
    fields: dict[str, Any] = {"step": one.step, "text": display_text(one.written.text) or say("nothing")}
    writes = {
        None: say("step {step:,} of training: writes {text}", **fields),
        False: say("step {step:,} of training: writes {text}, wrong", **fields),
        True: say("step {step:,} of training: writes {text}, right", **fields),
    }[is_right]
    title = (
        say("{writes}; mean probability of the right tokens {p}", writes=writes, p=probability_words(sure))
        if one.target == "answer"
        else say("{writes}; mean probability of the final tokens {p}", writes=writes, p=probability_words(sure))
    )
    return {"text": f"{one.step:,}", "title": title, "class": "wrong" if is_right is False else "", "tint": round(sure, 4)}


def _kind(
    moments: Sequence[TrainingSnapshot],
    kind: Kind,
    style: Style,
    mark: Callable[[Sentence], Sequence[tuple[str, str]]],
    numbered: Callable[[Sentence], list[int]],
    covered: str,
) -> dict[str, Any]:
    """A kind of attention as `numbers.js` has it; a moment is a measure of it."""
    attention, found = moments[0].forced.attentions[kind], course(moments, kind)
    looks = say("the source token that looks") if kind == "encoder" else say("the token to be written")
    about = [say("row = {token}", token=looks), say("column = the token looked at")]
    about += [say("ring = where the {unit} comes from", unit=say("token"))] if found.measure == "mass" else []
    hint = sentences_of([say("{sentence}.", sentence=" · ".join(about)), say(_FIXED[moments[0].target])])
    sentences = [
        [
            [
                numbered(
                    sentence(("strong", say("{when}: ", when=when(one.step))), covered)
                    if covered and one is moments[-1]
                    else snapshot_sentence(one, place, found, kind, layer, head)
                )
                for place, one in enumerate(moments)
            ]
            for head in range(attention.n_heads)
        ]
        for layer in attention.layers
    ]
    return {
        "title": kind_words(kind),
        "hint": mark(sentence(hint)),
        "numbers": attention.layers,
        "heads": attention.n_heads,
        "shape": attention.weights.shape,
        "reasons": seen_reasons(attention),
        "colouring": "fixed",
        "covered": [0, 0],
        "linked": {"kind": kind},
        "sentences": sentences,
        "picture": playback_template(moments, kind, with_answer=not covered, style=style),
        "measures": {str(place): _moment(one, kind, style) for place, one in enumerate(moments)},
    }


def _moment(one: TrainingSnapshot, kind: Kind, style: Style) -> dict[str, Any]:
    attention, small = one.forced.attentions[kind], plain(mosaic)(one.forced, kind, style=style)
    weights = np.where(attention.is_covered[:, None], np.float32(np.nan), attention.weights.astype(np.float32, copy=False))
    rows = attention.covered
    return {"weights": weights, "covered": [rows.start, rows.stop], "mosaic": {"data": small.data, "layout": small.layout}}
