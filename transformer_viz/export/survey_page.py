"""A survey as one HTML page that asks nothing of the network: maps of all heads, each head with its texts, and the outputs."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from transformer_viz.analysis.survey import words
from transformer_viz.analysis.survey.readings import estimate, kinds, readings
from transformer_viz.analysis.survey.result import Survey, SurveyedHead, SurveyedOutputs, TextValue
from transformer_viz.analysis.verdict import FLOOR_WORDS, MAP_WORDS, Mean, Verdicts, left_out_words
from transformer_viz.export.assets import asset
from transformer_viz.export.pages import PlotlyJs, filled
from transformer_viz.figures.by_length import survey_lengths
from transformer_viz.figures.figure_data import PlainFigure, plain
from transformer_viz.figures.survey_agreement import survey_agreement
from transformer_viz.figures.survey_calibration import survey_calibration
from transformer_viz.figures.survey_distribution import survey_distribution
from transformer_viz.figures.survey_heads import survey_heads
from transformer_viz.figures.theme import Style
from transformer_viz.numbers_in_words import count_words, interval_words, number_words
from transformer_viz.terms import KIND_TITLES, head_title, visible_text

LISTS = {"highest": "highest", "typical": "typical: nearest to the mean", "unusual": "unusual: farthest from the mean"}
"""The texts that are kept of a head, and what their lists are called."""


def survey_html(survey: Survey, *, plotlyjs: PlotlyJs = "packed", style: Style = Style()) -> str:
    """A survey as one page; it depends on the survey and the arguments alone, to the last byte.

    Args:
        survey: of many texts.
        plotlyjs: as in `html`.
        style: theme and size.

    Raises:
        OptionError: an argument has an impossible value.
    """
    page = _Page(survey, style)
    parts = {
        "theme": style.theme,
        "size": "large" if style.large else "",
        "title": escape(f"Survey: {survey.model.name}"),
        "body": "\n".join(page.sections()),
    }
    return filled(asset("survey.html"), page.data(), ("survey.js",), ("inside.css", "survey.css"), plotlyjs, parts)


class _Page:
    """The sections of a page, and the figures that they draw."""

    def __init__(self, survey: Survey, style: Style) -> None:
        self.survey, self.style = survey, style
        self.readings = readings(survey)
        self.kinds = [kind for kind, of in survey.kinds.items() if of.layers]
        self.figures: dict[str, PlainFigure] = {}

    def data(self) -> dict[str, Any]:
        """What the page's program draws, once the sections are made."""
        heads = {
            name: {
                kind: _plain(plain(survey_heads)(self.survey, kind, name, style=self.style))
                for kind in kinds(self.survey, name)
            }
            for name in self.readings
        }
        return {"heads": heads, "figures": {name: _plain(figure) for name, figure in self.figures.items()}}

    def sections(self) -> Iterable[str]:
        """In the order of the page."""
        survey = self.survey
        first = next(iter(self.readings), None)
        yield f"<h1>{escape(survey.model.name)}: what its heads do</h1>"
        if first is not None:
            yield f"<p class='lead'>{escape(words.headline(survey, first))}</p>"
        yield f"<p class='muted'>{escape(words.made_of(survey))}</p>"
        if first is not None:
            yield self._maps()
            yield self._heads()
        yield self._agreement()
        if survey.outputs is not None:
            yield self._outputs(survey.outputs)
        if survey.verdict is not None:
            yield _verdict(survey.verdict)
        if survey.texts.failed:
            yield _failed(survey)

    def _maps(self) -> str:
        named = ((escape(name), escape(each.title)) for name, each in self.readings.items())
        options = "".join(f"<option value='{name}'>{title}</option>" for name, title in named)
        charts = "".join(
            f"<div class='chart' data-kind='{kind}' role='figure' aria-label='Heads of the {KIND_TITLES[kind]}'></div>"
            for kind in self.kinds
        )
        return (
            "<h2>Every head</h2><p>Each map has a scale of its own, from its lowest to its highest head. "
            f"<label>Heads by <select id='number'>{options}</select></label></p><div class='charts'>{charts}</div>"
        )

    def _heads(self) -> str:
        kinds = (
            f"<h3>{KIND_TITLES[kind].capitalize()}</h3>"
            + "".join(self._head(head) for head in self.survey.heads if head.kind == kind)
            for kind in self.kinds
        )
        return f"<h2>Head by head</h2>{''.join(kinds)}"

    def _head(self, head: SurveyedHead) -> str:
        title = f"{head_title(head.layer, head.head).capitalize()}: {words.role_words(head)}"
        return _folded(title, self._distribution(head) + self._numbers(head) + _lists(self.survey, head))

    def _distribution(self, head: SurveyedHead) -> str:
        if head.by is None or head.statistics[head.by] is None:
            return ""
        place, of = (head.kind, head.layer, head.head), self.survey.statistic(head.by)
        name = ".".join(map(str, place))
        self.figures[name] = plain(survey_distribution)(self.survey, *place, head.by, style=self.style)
        return _chart(name, f"Texts by {of.title}")

    def _numbers(self, head: SurveyedHead) -> str:
        rows = []
        for name, each in self.readings.items():
            found = estimate(head, name)
            if found is not None and (each.role is None or found.value):
                ends = (found.value, found.low, found.high, found.even)
                numbers = ["–" if end is None else number_words(end) for end in ends]
                rows.append((each.title, *numbers, f"{found.n:,}"))
        return _table(("", "mean", "95 % from", "to", "uniform", "texts"), rows)

    def _agreement(self) -> str:
        charts = ""
        for kind in self.kinds:
            if self.survey.agreement.get(kind):
                self.figures[f"agreement.{kind}"] = plain(survey_agreement)(self.survey, kind, style=self.style)
                charts += _chart(f"agreement.{kind}", f"Agreement between heads of the {KIND_TITLES[kind]}")
        said = "Share of the rows in which two heads have their largest weight on the same key, of rows with two keys or more."
        return f"<h2>Do heads look at the same keys?</h2><p>{said}</p><div class='charts'>{charts}</div>" if charts else ""

    def _outputs(self, outputs: SurveyedOutputs) -> str:
        charts = ""
        if any(point.n_known for point in outputs.by_length):
            self.figures["lengths"] = plain(survey_lengths)(outputs, style=self.style)
            charts += _chart("lengths", "Right outputs by length")
        if any(outputs.confidence.counts):
            self.figures["calibration"] = plain(survey_calibration)(outputs.confidence, style=self.style)
            charts += _chart("calibration", "Right tokens by their probability")
        rows = [
            (each.line, number_words(each.confidence), each.text, each.output, each.expected or "") for each in outputs.worst
        ]
        worst = _table(("line", "p", "text", "output", "expected"), rows, is_text=(2, 3, 4))
        return (
            f"<h2>What it writes</h2><p>{escape(words.right(outputs))}</p><p>{escape(words.calibrated(outputs))}</p>"
            f"<div class='charts'>{charts}</div><h3>{words.worst_title(outputs)}</h3>{worst}"
        )


def _plain(figure: PlainFigure) -> dict[str, Any]:
    return json.loads(figure.to_json())


def _chart(name: str, said: str) -> str:
    return f"<div class='chart' data-figure='{escape(name)}' role='figure' aria-label='{escape(said)}'></div>"


def _lists(survey: Survey, head: SurveyedHead) -> str:
    if head.by is None:
        return ""
    title = survey.statistic(head.by).title
    lists = "".join(f"<div><h4>{said.capitalize()}</h4>{_texts(getattr(head, name))}</div>" for name, said in LISTS.items())
    return f"<p>Texts by {escape(title)}:</p><div class='lists'>{lists}</div>"


def _texts(found: Sequence[TextValue]) -> str:
    rows = [(number_words(each.value), each.text) for each in found]
    return _table(("value", "text"), rows, is_text=(1,))


def _verdict(found: Verdicts) -> str:
    rows = [(each.name, *_ends(each.top), *_ends(each.rho)) for each in found.maps]
    rows.append(("by chance", *_ends(found.chance), "", ""))
    heads = ("map", "at the cause", "95 %", "ρ", "95 %")
    judged = f"{count_words(found.n_texts, 'text')}, {count_words(found.n_judged, 'step')} judged; {left_out_words(found)}."
    said = f"{judged} {MAP_WORDS}. ρ is Spearman's rank correlation; {FLOOR_WORDS}."
    return f"<h2>On trial: does it point at the cause?</h2><p>{escape(said)}</p>{_table(heads, rows)}"


def _ends(mean: Mean) -> tuple[str, str]:
    value = "–" if mean.value != mean.value else number_words(mean.value)
    return value, "" if mean.interval is None else interval_words(mean.interval)


def _failed(survey: Survey) -> str:
    read = survey.texts
    rows = [(each.line, each.text, each.why) for each in read.failed]
    said = f"{read.n_failed:,} of {read.n:,}; the first {len(read.failed)}:" if len(read.failed) < read.n_failed else ""
    return f"<h2>Texts that could not be read</h2><p>{said}</p>{_table(('line', 'text', 'why'), rows, is_text=(1, 2))}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], is_text: tuple[int, ...] = ()) -> str:
    """Text is text, with what cannot be seen made visible; the first column names the row."""

    def cell(place: int, value: object) -> str:
        if place in is_text:
            return f"<td class='text'>{escape(visible_text(str(value)))}</td>"
        return f"<th scope='row'>{escape(str(value))}</th>" if place == 0 else f"<td>{escape(str(value))}</td>"

    top = "".join(f"<th{' class=text' if place in is_text else ''}>{escape(head)}</th>" for place, head in enumerate(heads))
    body = "".join("<tr>" + "".join(cell(place, value) for place, value in enumerate(row)) + "</tr>" for row in rows)
    # What is wider than a phone scrolls, by keys too.
    return f"<div class='wide' tabindex='0' role='group' aria-label='table'><table><tr>{top}</tr>{body}</table></div>"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"
