"""Replay: training playback at one moment."""

from transformer_viz.terms import Kind
from transformer_viz.views.snippets.explore import DisplayOptions, mosaics
from transformer_viz.views.snippets.lines import Code, assigned, looks
from transformer_viz.views.snippets.runs import load, program


def training_playback(
    text: str, checkpoint: str, device: str, kind: Kind, layer: int, head: int, step: int, position: int, given: DisplayOptions
) -> str:
    """The picture as it stands after `step` steps of training, and that moment's mosaics."""
    place = {"layer": layer, "head": head, "moment": Code("place"), "position": position}
    drawn = looks(given, "theme", "large", "with_answer", "narrow")
    return program(
        *load(checkpoint, device),
        assigned("moments", "tv.replay", Code("checkpoint"), text),
        f"place = [moment.step for moment in moments].index({step})",
        assigned("figure", "tv.figures.training_playback", Code("moments"), kind, **place, **drawn),
        "figure.show()",
        "trace = moments[place].forced",
        *mosaics("trace", kind, layer, head, given),
    )
