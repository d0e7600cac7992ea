"""The data of the step player in *How it learned*, whose steps are the snapshots of a training."""

from collections.abc import Sequence
from typing import Any

from transformer_viz.export.strips import answer_mark, output_strip, source_strip
from transformer_viz.terms import Kind
from transformer_viz.text_display import display_text
from transformer_viz.training.result import TrainingSnapshot, certainty, course, snapshot_sentence
from transformer_viz.views.components import term_tips
from transformer_viz.views.state.focus import Focus

_RULES: dict[Kind, str] = {
    "encoder": "row = the source token that looks · column = the token looked at",
    "decoder": "row = the token to be written · column = the token looked at",
    "cross": "row = the token to be written · column = the token looked at",
}
_FIXED = {
    "answer": "Every moment reads the right answer, so the rows stay the same.",
    "final output": "The right answer is not known, so every moment reads what the finished model writes.",
}


def data(moments: Sequence[TrainingSnapshot], at: Focus, position: int, *, large: bool, dark: bool) -> dict[str, Any]:
    """The player's data, in the form of `player.data`: for each moment a button, a sentence and what the model writes."""
    kind, layer, head = at.kind, at.layer, at.head
    assert isinstance(head, int)
    found = course(moments, kind)
    ring = " · ring = the right token" if found.measure == "mass" else ""
    return {
        "run": at.run,
        "step": at.step,
        "hint": term_tips.mark(f"{_RULES[kind]}{ring}. {_FIXED[moments[0].target]}"),
        "terms": term_tips.meanings(),
        "labels": {"output": "steps of training, one button a moment", "slider": "Moment of training"},
        "large": large,
        "dark": dark,
        "source": source_strip(moments[0].forced),
        "output": [_button(one) for one in moments],
        # "step" is a step of training here, so a step of the output is called a row.
        "answers": [answer_mark(one.written, step_name="row") for one in moments],
        "written": [output_strip(one.written) for one in moments],
        "sentences": [term_tips.mark(snapshot_sentence(one, i, found, kind, layer, head)) for i, one in enumerate(moments)],
        "looked": [_looked_at(one, kind, layer, head, position) for one in moments],
    }


def _button(moment: TrainingSnapshot) -> dict[str, Any]:
    sure = certainty(moment)
    goal = "right" if moment.target == "answer" else "final"
    is_wrong = moment.written.is_right is False
    verdict = "" if moment.written.is_right is None else f", {'wrong' if is_wrong else 'right'}"
    return {
        "text": f"{moment.step:,}",
        "title": f"step {moment.step:,} of training: writes {display_text(moment.written.text) or 'nothing'}{verdict}; "
        f"mean probability of the {goal} tokens {sure:.3f}",
        "class": "wrong" if is_wrong else "",
        "tint": round(sure, 4),
    }


def _looked_at(moment: TrainingSnapshot, kind: Kind, layer: int, head: int, position: int) -> int | None:
    """The source position with the most weight in the row whose candidates are shown, for cross-attention."""
    if kind != "cross":
        return None
    row = moment.forced.attentions[kind].head(layer, head)[position]
    return int(row.argmax()) if row.any() else None
