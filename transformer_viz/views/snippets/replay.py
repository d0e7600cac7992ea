"""Replay: training playback at one moment."""

from transformer_viz.export.content import View
from transformer_viz.views.snippets.explore import DisplayOptions, mosaics
from transformer_viz.views.snippets.lines import Code, assigned, looks
from transformer_viz.views.snippets.runs import Run, load, program


def training_playback(run: Run, at: View, position: int, given: DisplayOptions) -> str:
    """The picture as it stands after `at.step` steps of training, and that moment's mosaics."""
    place = {"layer": at.layer, "head": at.head, "moment": Code("place"), "position": position}
    drawn = looks(given, "theme", "large", "narrow")
    return program(
        *load(run.checkpoint, run.device),
        assigned("moments", "tv.replay", Code("checkpoint"), run.text),
        f"place = [moment.step for moment in moments].index({at.step})",
        assigned("figure", "tv.figures.training_playback", Code("moments"), at.kind, **place, **drawn),
        "figure.show()",
        "trace = moments[place].forced",
        *mosaics("trace", at.kind, at.layer, at.head, given),
    )
