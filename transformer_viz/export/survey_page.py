"""A survey as one HTML page that loads nothing from the network: maps of all heads, the texts of each, and the outputs."""

import json
from collections.abc import Iterator
from typing import Any

from transformer_viz.addresses import HeadAddress
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.result.verdict import FLOOR_WORDS, MAP_WORDS, left_out_words
from transformer_viz.export.assets import FOLDER
from transformer_viz.export.pages import PlotlyJs, page
from transformer_viz.figures.figure_data import PlainFigure, plain
from transformer_viz.figures.surveys import (
    survey_agreement,
    survey_calibration,
    survey_distribution,
    survey_heads,
    survey_lengths,
)
from transformer_viz.figures.theme import Style
from transformer_viz.language import known, later, say, speaking
from transformer_viz.numbers_in_words import count_words, interval_words, number_words, probability_words
from transformer_viz.surveys import sentences
from transformer_viz.surveys.columns import columns, kinds
from transformer_viz.surveys.result import Survey
from transformer_viz.terms import head_title, kind_words
from transformer_viz.text_display import display_text

LISTS = {
    "highest": later("highest"),
    "typical": later("typical: nearest to the mean"),
    "unusual": later("unusual: farthest from the mean"),
}
"""The texts that are kept of a head, and what their lists are called."""


def survey_html(survey: Survey, *, style: Style = Style(), plotlyjs: PlotlyJs = "packed", language: str | None = None) -> str:
    """Makes one HTML page of a survey; the same survey and arguments give the same bytes.

    Args:
        survey: of many texts.
        style: of the page and its figures.
        plotlyjs: as in `html`.
        language: as in `html`.

    Raises:
        OptionError: an argument has an impossible value.
    """
    with speaking(language):
        return _page(survey, style, plotlyjs)


def _page(survey: Survey, style: Style, plotlyjs: PlotlyJs) -> str:
    """The page in the language of now."""
    by_name, outputs, verdict = columns(survey), survey.outputs, survey.verdict
    heads = {
        name: {kind: _plain(plain(survey_heads)(survey, kind, name, style=style)) for kind in kinds(survey, name)}
        for name in by_name
    }
    drawn: dict[str, PlainFigure] = {}
    for texts in survey.examples:
        place = texts.place
        drawn[str(place)] = plain(survey_distribution)(survey, place, texts.by, style=style)
    shown_kinds = [kind for kind, of in survey.kinds.items() if of.layers]
    for kind in shown_kinds:
        if survey.agreement.get(kind):
            drawn[f"agreement.{kind}"] = plain(survey_agreement)(survey, kind, style=style)
    if outputs is not None and any(point.n_known for point in outputs.by_length):
        drawn["lengths"] = plain(survey_lengths)(outputs, style=style)
    if outputs is not None and any(outputs.confidence.counts):
        drawn["calibration"] = plain(survey_calibration)(outputs.confidence, style=style)
    figures = {name: _plain(figure) for name, figure in drawn.items()}

    def numbers(head: HeadAddress) -> Iterator[tuple[str, ...]]:
        for name, column in by_name.items():
            row = survey.at(head, name)
            if row is not None and (column.role is None or row.mean):
                ends = (row.mean, *row.interval, row.uniform)
                yield (
                    sentences.statistic_title(column),
                    *("–" if end is None else number_words(end) for end in ends),
                    f"{row.n:,}",
                )

    tables: dict[str, Any] = {"failed": [(entry.line, entry.text, entry.why) for entry in survey.texts.failed]}
    if outputs is not None:
        tables["worst"] = [
            (entry.line, probability_words(entry.confidence, 1), entry.text, entry.output, entry.expected or "")
            for entry in outputs.worst
        ]
    if verdict is not None:
        tables["judged"] = say(
            "{texts}, {steps} judged; {left_out}. {map}. ρ is Spearman's rank correlation; {floor}.",
            texts=count_words(verdict.n_texts, "text"),
            steps=count_words(verdict.n_judged, "step"),
            left_out=left_out_words(verdict),
            map=known(MAP_WORDS),
            floor=known(FLOOR_WORDS),
        )
        tables["verdict"] = [
            *((entry.name, *_ends(entry.top), *_ends(entry.rho)) for entry in verdict.maps),
            (say("by chance"), *_ends(verdict.chance), "", ""),
        ]
    return page(
        "survey.html",
        {"heads": heads, "figures": figures},
        FOLDER / "survey.js",
        ("inside.css", "survey.css"),
        plotlyjs,
        title=say("Survey: {model}", model=survey.model.name),
        root={"data-theme": style.theme, "class": "large" if style.large else ""},
        survey=survey,
        columns=by_name,
        kinds=shown_kinds,
        figures=figures,
        numbers=numbers,
        texts=lambda found: [(number_words(entry.value), entry.text) for entry in found],
        lists=LISTS,
        kind_words=kind_words,
        title_of=sentences.statistic_title,
        words=sentences,
        head_title=head_title,
        display_text=display_text,
        **tables,
    )


def _plain(figure: PlainFigure) -> dict[str, Any]:
    return json.loads(figure.to_json())


def _ends(mean: Mean) -> tuple[str, str]:
    value = "–" if mean.value != mean.value else number_words(mean.value)
    return value, "" if mean.interval is None else interval_words(mean.interval)
