"""The program of Survey: reads it, says its sentence, and draws its maps."""

from collections.abc import Mapping
from typing import Any

from transformer_viz.terms import Kind
from transformer_viz.views.snippets.lines import Code, call, literal, looks


def program(
    path: str, name: str, kinds: tuple[Kind, ...], focus: tuple[Kind, int, int], given: Mapping[str, Any], beside: str | None
) -> str:
    """The lines.

    Args:
        path: of the survey's folder or file, as people find it.
        name: the number by which heads are compared.
        kinds: the maps that are drawn.
        focus: kind, layer and head, outlined.
        given: how the page draws.
        beside: likewise the path of the other survey, where two are compared.
    """
    chosen = looks(given, "theme", "large")
    lines = ["import transformer_viz as tv", "", f"survey = tv.load_survey({literal(path)})"]
    if beside:
        lines += [f"other = tv.load_survey({literal(beside)})", f"change = tv.compare_surveys(survey, other, {literal(name)})"]
    for kind in kinds:
        outlined = {"focus": focus[1:]} if focus[0] == kind else {}
        if beside:
            drawn = call("tv.figures.survey_difference", Code("change"), kind, **outlined, **chosen)
        else:
            drawn = call("tv.figures.survey_heads", Code("survey"), kind, name, **outlined, **chosen)
        lines.append(f"{drawn}.show()")
    return "\n".join(lines)
