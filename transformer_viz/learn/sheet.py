"""A printable sheet of questions for a class, eight before and eight after the lessons, from runs of random texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from transformer_viz.addresses import parse_head
from transformer_viz.errors import LessonError
from transformer_viz.evaluation.evaluate import sample_texts
from transformer_viz.learn.example_run import Example, load_model, measured
from transformer_viz.learn.lesson import LESSONS, Ask, read_lessons
from transformer_viz.learn.questions import CAUSE, Question, Spot, code, question
from transformer_viz.learn.words import Words, speaking, words
from transformer_viz.numbers_in_words import number_words, probability_words
from transformer_viz.terms import MISTAKES, Kind, kind_words, place_labels, row_labels
from transformer_viz.text_display import display_text
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.batch import decode_forced
from transformer_viz.tracing.decode import decode

PARTS = ("before", "after")
_FEWEST_TOKENS, _MOST_TOKENS, _MOST_TEXTS = 4, 11, 200


class Cell(NamedTuple):
    """The text of a cell, and its grey: 255 is white."""

    text: str
    shade: int = 255


@dataclass(frozen=True)
class Grid:
    """A map as a table: what stands above it, labels of its columns, and rows with theirs."""

    about: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


@dataclass(frozen=True)
class Item:
    """A question on the sheet, with the maps that it is about."""

    question: Question
    figures: list[Grid]

    @property
    def answer(self) -> str:
        """The letters of the right options, or the number."""
        if self.question.number is not None:
            return self.question.figure(self.question.number)
        return ", ".join(chr(ord("a") + place) for place in sorted(self.question.right))


def sheet_html(seed: int = 0, language: str = "en", lessons_at: str | None = None) -> str:
    """The sheet as an HTML page, which depends on the seed, the language and this address alone.

    Args:
        seed: of the texts.
        language: of the words.
        lessons_at: the address of the site, with a slash at its end, for a link to each lesson, with its QR code where
            `segno` is installed; nothing for the folder in which the sheet lies itself; None for no links.

    Raises:
        LessonError: there are no questions in this language, or too few fair ones with this seed.
    """
    with speaking(language):
        return _sheet(seed, language, lessons_at)


def _sheet(seed: int, language: str, lessons_at: str | None) -> str:
    say = words(language)
    items: dict[str, list[Item]] = {part: [] for part in PARTS}
    for ask, model, head in _KINDS:
        found = _items(ask, model, head, seed, language)
        first = next(found, None)
        # Where the options are the same, another one is to be right.
        second = next((item for item in found if first and _answer(item) != _answer(first)), None)
        if first is None or second is None:
            raise LessonError(f"seed {seed} gives no two texts with different answers to {ask.kind}; take another --seed")
        items["before"].append(first)
        items["after"].append(second)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    models = say.list(sorted({model for _, model, _ in _KINDS}))
    return environment.get_template("sheet.html").render(
        language=language, words=say, parts=list(items.items()), seed=seed, models=models, links=_links(language, lessons_at)
    )


@dataclass(frozen=True)
class LessonLink:
    """A lesson's title and address, and the address as a QR code in SVG; empty where there is none."""

    title: str
    address: str
    qr_code: Markup


def _links(language: str, lessons_at: str | None) -> list[LessonLink]:
    if lessons_at is None:
        return []
    links = [(lesson.title, f"{lessons_at}{lesson.page_name(language)}") for lesson in read_lessons(LESSONS / language)[0]]
    return [LessonLink(title, address, _qr_code(address)) for title, address in links]


def _qr_code(address: str) -> Markup:
    """The address for a phone's camera. A page that lies beside the sheet has no address for a phone."""
    if not address.startswith(("https://", "http://")) or find_spec("segno") is None:
        return Markup()
    import segno

    # Four modules of white around it, as ISO/IEC 18004 asks; error correction for a bad print.
    return Markup(segno.make(address, micro=False, error="m").svg_inline(scale=2, border=4, light="#fff", title=address))


def _answer(item: Item) -> tuple[tuple[str, ...], frozenset[int], float | None]:
    return item.question.options, item.question.right, item.question.number


def _items(ask: Ask, name: str, head: tuple[Kind, int, int], seed: int, language: str) -> Iterator[Item]:
    """Questions about random texts, each at another row."""
    model, say = load_model(name), words(language)
    texts = sample_texts(model, _MOST_TEXTS, seed)
    if ask.kind == "greedy-or-beam":
        # Shorter than `reverse-small` was trained with, so that it is unsure, and greedy and beam search often part.
        rng = np.random.default_rng(seed)
        texts = ["".join(rng.choice(list("aenst"), 6)) for _ in range(_MOST_TEXTS)]
    for place, text in enumerate(texts):
        if not _FEWEST_TOKENS <= len(model.task.read(text)) <= _MOST_TOKENS:
            continue
        if ask.kind == "mistake":
            trace = decode_forced(model, [text, text[: len(text) // 2]], mistake=MISTAKES[place % len(MISTAKES)])[-1]
        else:
            trace = decode(model, text)
        example = Example(model, trace, Spot(*head, 1 + place % max(1, trace.n_steps - 2)))
        trace = measured(example, ask)
        made = question(trace, ask, example.focus, language)
        if isinstance(made, Question) and _is_worth_asking(made, trace):
            yield Item(made, _figures(made, trace, model.name, say))


def _is_worth_asking(made: Question, trace: Trace) -> bool:
    """Tells whether a question makes one think: its number is near neither 0 nor 1, and the head does not look at the cause."""
    if made.kind == "matters-most":
        looked = trace.cross.row(made.spot.layer, made.spot.head, made.spot.row).argmax()
        return place_labels(trace.cross.keys)[looked] not in {made.options[place] for place in made.right}
    return made.number is None or 0.15 < made.number < 0.85


def _figures(question: Question, trace: Trace, model: str, say: Words) -> list[Grid]:
    """Draws what is shown with a question."""
    spot, figures = question.spot, []
    fields = {"model": model, "source": code(trace.source)}
    match question.kind:
        case "looks-most" | "writes":  # the map of its head; of what is written next as far as its row, with nothing of it
            is_open = question.kind != "writes"
            fields |= {"kind": kind_words(spot.kind), "head": spot.label, "output": code(trace.text) if is_open else "…"}
            figures.append(_weights(say("sheet.of", **fields), trace, spot, trace.n_steps if is_open else spot.row + 1))
        case "aligns" | "heads-by":  # the maps of the heads that its options name
            for label in sorted({label for option in question.options for label in option.split(" > ")}):
                if (place := parse_head(label)) is not None:
                    figures.append(_weights(label, trace, Spot(spot.kind, *place, 0), trace.n_steps))
        case "mistake":
            for kind, attention in trace.attentions.items():
                mask = attention.head_mask(attention.layers[0], 0)
                rows = [[Cell("", 60 if is_masked else 255) for is_masked in row] for row in mask]
                queries, keys = map(place_labels, trace.labels(kind))
                about = say("sheet.of-mask", **fields, kind=kind_words(kind))
                figures.append(Grid(about, keys, list(zip(queries, rows, strict=True))))
        case "greedy-or-beam":  # the greedy run beside the best of the beam, token by token
            assert trace.search is not None
            best = [(node.token, float(np.exp(node.log_probability))) for node in trace.search.path(trace.search.best[0])]
            greedy = [(step.token, step.probability) for step in decode(load_model(model), trace.source).steps]
            for name, way in (("greedy", greedy), ("beam", best)):
                cells = [Cell(probability_words(probability)) for _, probability in way]
                figures.append(
                    Grid(say(f"sheet.{name}"), [display_text(token) for token, _ in way], [(say("sheet.probability"), cells)])
                )
        case "matters-most":
            weights = trace.cross.row(spot.layer, spot.head, spot.row)
            losses = trace.attributions[CAUSE].values[..., spot.row, :].reshape(-1, len(weights))[0]
            lines = [
                (say("sheet.weight"), [_shaded(float(weight)) for weight in weights]),
                (say("sheet.loss"), [Cell(number_words(float(loss), 2)) for loss in losses]),
            ]
            figures.append(Grid(say("sheet.of-causes", head=spot.label), place_labels(trace.cross.keys), lines))
    return figures


def _weights(about: str, trace: Trace, spot: Spot, n_rows: int) -> Grid:
    reads, keys = trace.labels(spot.kind)
    is_told = n_rows == trace.n_steps and spot.kind != "encoder"
    names = row_labels(reads, trace.output_tokens if is_told else None)
    cells = [[_shaded(float(weight)) for weight in row] for row in trace.attentions[spot.kind].head(spot.layer, spot.head)]
    return Grid(about, place_labels(keys), list(zip(names, cells, strict=True))[:n_rows])


def _shaded(weight: float) -> Cell:
    """Per cent, from white to black."""
    return Cell(f"{100 * weight:.0f}" if weight >= 0.005 else "", round(255 - 215 * min(1.0, weight)))


_KINDS: tuple[tuple[Ask, str, tuple[Kind, int, int]], ...] = (
    (Ask(kind="looks-most"), "german", ("cross", 1, 2)),
    (Ask(kind="number", number="softmax", tolerance=0.05), "reverse", ("cross", 0, 1)),
    (Ask(kind="mistake"), "reverse", ("decoder", 0, 0)),
    (Ask(kind="aligns"), "german", ("cross", 1, 2)),
    (Ask(kind="heads-by", by="entropy"), "reverse", ("decoder", 0, 0)),
    (Ask(kind="greedy-or-beam"), "reverse-small", ("cross", 0, 1)),
    (Ask(kind="writes"), "reverse", ("cross", 1, 1)),
    (Ask(kind="matters-most"), "german", ("cross", 0, 1)),
)
"""For each shipped lesson, in their order: the question, its model and head."""
