"""The picture of *Inside*: one row of one head, and the arithmetic of one of its numbers, drawn with `inside.html`.

Every figure is text, rounded where the arithmetic is (`inside_head/numbers.py`).
"""

import base64
import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from PIL import Image

from transformer_viz.figures.theme import THEMES, ThemeName, even_scale, rgb
from transformer_viz.inside_head import logit_lens, numbers
from transformer_viz.inside_head.explanations import explain
from transformer_viz.language import enumerated, later, say, sentences
from transformer_viz.numbers_in_words import number_words, percent_words, probability_words
from transformer_viz.sentences.run_sentences import Piece, Sentence, of_run, say_sentence
from transformer_viz.terms import REASON_WORDS, head_title, kind_words, place_label
from transformer_viz.text_display import display_token
from transformer_viz.trace.inside import Inside
from transformer_viz.views import glossary
from transformer_viz.views.components import markup

KEY = "inside"
_ALMOST_ALL = 0.98
"""The share of a station's numbers that is in the range of its colours."""
_WORDS = functools.partial(number_words, places=3)
Cell = Column = Station = dict[str, Any]


@dataclass(frozen=True)
class Looks:
    """The looks of the page's drawings."""

    theme: ThemeName
    large: bool


def show(
    inside: Inside, way: Sequence[str], looks: Looks, pinned: int | None, on_press: Callable[[Any], None], wanted: int = 0
) -> None:
    """Draws the row, and explains the number at the end of the way: addresses, each a term of the one before it.

    Args:
        inside: the row of a head.
        way: addresses, the last of them that of the number that is explained.
        looks: how the page draws.
        pinned: a key that is shown in any case.
        on_press: gets what the browser asks for: the address of a number; `+` and an address, a term of the number that is
            explained; `-n`, back to the n-th number of the way. Or nonsense.
        wanted: how often somebody has asked to see it; whenever that is one more, it is brought into sight.
    """
    drawn, at = picture(inside, looks, pinned), way[-1]
    # A number of a vector stands in the strip of all of it.
    vector = re.sub(r"\.\d+$", "", at)
    stations = [*drawn["enters"], *drawn["flow"], *drawn["leaves"]]
    here = [station["id"] for station in stations if not {at, vector}.isdisjoint(station["addresses"])]
    markup.show(
        "components/inside.html",
        KEY,
        on_press,
        script=_script(),
        data={"place": [inside.kind, inside.layer, inside.head, inside.row], "words": _words_of_script(), "wanted": wanted},
        way=[explain(inside, address) for address in way],
        at=at,
        vector=vector,
        explained_in=[*here, stations[0]["id"]][0],
        formula=_formula,
        **drawn,
    )


def _words_of_script() -> dict[str, str]:
    """With the places that the script fills in."""
    tip = say("{name}, {place} of {n}: {number}", name="{name}", place="{place}", n="{n}", number="{number}")
    title = say("Next: {title}", title="{title}")
    return {"walk": say("▶ Show the way"), "next": title, "all": say("All of it"), "tip": tip}


@functools.cache
def _script() -> str:
    return Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


@functools.cache
def _formula(text: str) -> Markup:
    """`W_Q` and `e^{score}`: what stands below and above the line."""
    tags = {"_": "sub", "^": "sup"}
    return Markup(
        re.sub(r"([_^])(?:\{([^}]*)\}|(\w))", lambda m: f"<{tags[m[1]]}>{m[2] or m[3]}</{tags[m[1]]}>", str(escape(text)))
    )


@functools.cache
def _palettes(theme: ThemeName) -> tuple[np.ndarray, np.ndarray]:
    """uint8 (256, 3): the colours of numbers from the lowest to the largest, and of weights."""
    colours, found = THEMES[theme], []
    for stops in (even_scale(colours.diverging), even_scale(colours.scale)):
        places, names = zip(*stops, strict=True)
        channels = np.transpose([*map(rgb, names)])
        found.append(np.stack([np.interp(np.linspace(0, 1, 256), places, channel) for channel in channels], -1))
    first, second = np.round(found).astype(np.uint8)
    return first, second


def _paint(cells: Sequence[Cell], palette: np.ndarray) -> None:
    """Draws the vectors of a station, each as a picture's address: a pixel for each number. Some models have a place or two
    that are a hundred times as large as all others, beside which nothing else would have any colour: those few are drawn no
    stronger."""
    vectors = [cell for cell in cells if "numbers" in cell]
    sizes = np.abs(np.concatenate([[], *[cell["numbers"] for cell in vectors]]))
    # A run with a mistake may have numbers that are none.
    sizes = sizes[np.isfinite(sizes)]
    most = float(np.quantile(sizes, _ALMOST_ALL) or sizes.max() or 1.0) if len(sizes) else 1.0
    for cell in vectors:
        places, picture = np.nan_to_num(cell["numbers"] / most, nan=0.0).clip(-1, 1), BytesIO()
        Image.fromarray(palette[(127.5 + 127.5 * places).round().astype(int)][None]).save(picture, "PNG")
        cell["picture"] = f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}"


def picture(inside: Inside, looks: Looks, pinned: int | None = None) -> dict[str, Any]:
    """The picture for the browser: the stations before the keys, those with a line for each key, and those after them."""
    keys = numbers.shown_keys(inside, pinned)
    n_more = len(inside.key_tokens) - len(keys)
    written = "" if inside.written is None else f"→{display_token(inside.written)}"
    row = of_run(place_label(inside.row, display_token(inside.row_token)) + written)
    hint = say("The row is that of the step; one that is pinned in the map stays.")
    if inside.kind == "encoder" and inside.written is None:
        hint = say("A click on a row of the map shows another row.")
    enters, flow, leaves = _enters(inside), _flow(inside, keys, looks), _leaves(inside)
    for station in (*enters, *flow, *leaves):
        _paint(station["cells"], _palettes(looks.theme)[0])
    untold = [words for name, words in _PARTS.items() if getattr(inside, name) is None]
    return {
        "large": looks.large,
        "dark": looks.theme == "dark",
        "row": say_sentence(
            "Row {row}, {head} of the {attention}",
            row=row,
            head=head_title(inside.layer, inside.head),
            attention=kind_words(inside.kind),
        ),
        "reason": _reason(inside, pinned),
        "hint": hint,
        "words": say("One row of one head, from input to output"),
        "enters": enters,
        "names": [
            {"text": "q", "class": "word top"},
            *({"text": numbers.label(inside, key), "class": "pinned" if key == pinned else ""} for key in keys),
            *([{"text": say("{n} more", n=n_more), "class": "word"}] if n_more else []),
            {"text": "", "class": "word together"},
        ],
        "flow": flow,
        "leaves": leaves,
        "untold": say("Not known of this model: {names}.", names=enumerated(map(say, untold))) if untold else "",
        "lens": _lens(inside),
    }


def _reason(inside: Inside, pinned: int | None) -> Sentence:
    """Why the row looks where it does, in numbers; nothing where it looks nowhere."""
    weights = inside.weights
    if not np.isfinite(weights).all() or not weights.any():
        return ()
    best, *others = [int(key) for key in np.argsort(-weights, kind="stable") if weights[key] > 0]

    def share(key: int) -> str:
        return percent_words(float(weights[key]))

    def name(key: int) -> Piece:
        return of_run(numbers.label(inside, key))

    query = of_run(place_label(inside.row, display_token(inside.row_token)))
    fields: dict[str, Any] = {"query": query, "best": name(best), "share": share(best)}
    if pinned is not None and pinned != best:
        fields |= {"key": name(pinned), "part": share(pinned)}
        return say_sentence(
            "Query {query} fits key {key} less: {part} of the row; {best} fits best and gets {share}.", **fields
        )
    if not others:
        return say_sentence("Query {query} has key {best} alone to look at: {share} of the row.", **fields)
    fields |= {"next": name(others[0]), "second": share(others[0])}
    return say_sentence("Query {query} fits key {best} best: {share} of the row; next is {next} with {second}.", **fields)


# ---- cells


def _number(value: float, address: str | None, label: str, **more: Any) -> Cell:
    """Makes the cell of a number; without an address it has no arithmetic of its own."""
    return {"address": address, "label": label, "text": _WORDS(float(value)), **more}


def _vector(values: np.ndarray, address: str | None, label: str, axis: str) -> Cell:
    return {"address": address, "label": label, "values": [*map(_WORDS, values.tolist())], "numbers": values, "axis": axis}


def _of_each(inside: Inside, name: str, keys: Sequence[int], axis: str = "") -> list[Cell]:
    """A number, or with an axis a vector, of each key, by its name in an address."""
    number, found = numbers.NUMBERS[name], numbers.NUMBERS[name].make(inside)
    assert found is not None
    cells: list[Cell] = []
    for key in keys:
        value, cell = (
            found[key],
            {
                "address": f"{name}.{key + 1}",
                "label": say("{number} of {key}", number=say(number.said), key=numbers.label(inside, key)),
            },
        )
        more = {"values": [*map(_WORDS, value.tolist())], "numbers": value, "axis": axis} if axis else {"text": _WORDS(value)}
        cells.append({**cell, **more})
    return cells


def _of_place(inside: Inside, name: str, axis: str = "d_model") -> Cell:
    """A vector by its name in an address."""
    found = numbers.NUMBERS[name].make(inside)
    assert found is not None
    return _vector(found, name, say(numbers.NUMBERS[name].said), axis)


def _has(inside: Inside, *names: str) -> bool:
    return not any(numbers.NUMBERS[name].make(inside) is None for name in names)


def _said(term: str) -> str:
    return say("{sentence}.", sentence=say(glossary.TERMS[term].sentence))


# ---- before the keys


def _enters(inside: Inside) -> list[Station]:
    """Up to the query. Where the norm stands before the attention, what enters goes through it first."""
    first, of = ("residual_before", "norm(x)") if inside.norm == "pre" else ("entered", "x")
    stations = []
    if _has(inside, first):
        words = say("The vector of this row's token, as the layers below have computed it.")
        stations.append(_stream(inside, first, say("What enters"), "x", words))
    if first != "entered" and _has(inside, "entered"):
        stations.append(_stream(inside, "entered", say("Norm"), of, _said("norm")))
    return [*stations, _stream(inside, "query", say("Query"), f"q = {of} W_Q", _said("query"), "d_k")]


def _stream(inside: Inside, name: str, title: str, formula: str, words: str, axis: str = "d_model") -> Station:
    """A station with one vector."""
    cell = _of_place(inside, name, axis)
    return _station(name, title, formula, words, [cell], lines=[("", cell)])


def _station(name: str, title: str, formula: str, words: str, cells: Sequence[Cell], **drawn: Any) -> Station:
    addresses = [cell.get("address") for cell in cells]
    about = {"id": name, "title": title, "formula": formula, "words": words}
    return {**about, "cells": cells, "addresses": addresses, **drawn}


# ---- one line a key


def _flow(inside: Inside, keys: Sequence[int], looks: Looks) -> list[Station]:
    """From the keys to the head's output. A column has a top line, one line a key, perhaps one for all other keys, and what
    they are together."""
    rest = sorted({*range(len(inside.key_tokens))} - {*keys})
    blank, stations = [None] if rest else [], list[Station]()

    def column(kind: str, head: str, cells: Sequence[Cell | None], others: Sequence[Cell | None], **ends: Cell) -> Column:
        return {"kind": kind, "head": head, "cells": [ends.get("top"), *cells, *others, ends.get("together")]}

    def add(name: str, title: str, formula: str, words: str, *columns: Column) -> None:
        cells = [cell for each in columns for cell in each["cells"] if cell]
        stations.append(_station(name, title, formula, words, cells, columns=columns))

    of_source = say("Here they are those of the source, as the encoder has read it.")
    words = sentences([_said("key"), *([of_source] if inside.kind == "cross" else [])])
    top = _of_place(inside, "query", "d_k")
    add(
        "keys",
        say("Keys"),
        "k = x W_K",
        words,
        column("strip", say("k, under q"), _of_each(inside, "key", keys, "d_k"), blank, top=top),
    )

    if inside.scores is not None and inside.scale is not None:
        between = _between(inside)
        columns = [column("number", head, _of_each(inside, name, keys), blank) for name, head in between]
        columns[-1]["cells"][-1] = _number(numbers.largest(inside), "largest", say("the largest score"), prefix=say("largest"))
        words = say("How well each key fits the query: the dot product of both.")
        if inside.masked.any():
            closed: list[Cell | None] = []
            for key in keys:
                why, label = (
                    say(REASON_WORDS[int(inside.reasons[key])]),
                    say("{number} of {key}", number=say("mask"), key=numbers.label(inside, key)),
                )
                closed.append({"address": f"mask.{key + 1}", "label": label, "masked": why} if inside.masked[key] else None)
            n_closed = int(inside.masked[rest].sum())
            columns.append(
                column("mask", say("mask"), closed, [{"masked": say("{n} masked", n=n_closed)}] if n_closed else blank)
            )
            words = sentences([words, say("A masked key is out, whatever its score.")])
        add("scores", say("Scores"), " ".join(["q · k", *(head for _, head in between[1:])]), words, *columns)

    columns = []
    if inside.scores is not None:
        exps = numbers.exps(inside)
        more = [_number(exps[rest].sum(), None, say("all other keys together"))] if rest else []
        together = _number(exps.sum(), "sum", say("sum of the row"), prefix=say("sum"))
        columns.append(column("number", say("e^{{score − largest}}"), _of_each(inside, "exp", keys), more, together=together))
    cells = _of_each(inside, "weight", keys)
    # The colours that the map has.
    shares = np.nan_to_num(inside.weights[keys]).clip(0, 1)
    tints = _palettes(looks.theme)[1][(255 * shares).round().astype(int)]
    for tint, cell in zip(tints.tolist(), cells, strict=True):
        cell["tint"] = f"rgb{(*tint,)}"
    # Its own arithmetic is that of all but the largest.
    address = "rest" if keys == numbers.shown_keys(inside) else None
    more = [_number(inside.weights[rest].sum(), address, say("weight of all other keys"))] if rest else []
    add("weights", say("Weights"), "softmax", _said("softmax"), *columns, column("weight", say("÷ sum"), cells, more))

    add(
        "values",
        say("Values"),
        "v = x W_V",
        _said("value"),
        column("strip", "v", _of_each(inside, "value", keys, "d_v"), blank),
    )

    more = [_vector(numbers.parts(inside)[rest].sum(0), None, say("all other keys together"), "d_v")] if rest else []
    cells, together = _of_each(inside, "part", keys, "d_v"), _of_place(inside, "output", "d_v")
    words = say("Each value times its weight. Their sum is the output of this head.")
    add("output", say("Output"), say("Σ weight × v"), words, column("strip", say("weight × v"), cells, more, together=together))
    return stations


def _between(inside: Inside) -> list[tuple[str, str]]:
    """From q · k to the score: the numbers that this model has between them by name, and the heads of their columns."""
    n = len(inside.query)
    by = (
        f"÷ √{n}" if inside.scale is not None and math.isclose(inside.scale, n**-0.5, rel_tol=1e-6) else f"× {inside.scale:.3g}"
    )
    done = [by] * (inside.scale != 1) + [say("soft-capped")] * (inside.softcap is not None)
    if inside.bias is None:
        names = [*("dot", "scaled")[: len(done)], "score"]
        return list(zip(names, ["q · k", *done], strict=True))
    names = ["dot", *["scaled"] * (inside.scale != 1), *["capped"] * (inside.softcap is not None), "bias", "score"]
    return list(zip(names, ["q · k", *done, say("+ bias"), say("= score")], strict=True))


# ---- after the keys


def _leaves(inside: Inside) -> list[Station]:
    """From W_O to the residual stream, with the norm where this model has it."""
    stations = []
    if _has(inside, "projected"):
        words = sentences([_said("output projection"), say("This is what this head adds.")])
        stations.append(_stream(inside, "projected", say("The head's share"), say("output W_O"), words))
    is_normed, after = _has(inside, "normed"), "residual_after"
    added = "added"
    if is_normed and inside.norm == "residual-post":
        stations.append(_stream(inside, "added", say("All heads"), "", say("What all heads of the layer add together.")))
        stations.append(_stream(inside, "normed", say("Norm"), say("norm(added)"), _said("norm")))
        added = "normed"
    elif is_normed and inside.norm == "post":
        after = "norm_input"
    if _has(inside, "residual_before", added, after):
        cells = [_of_place(inside, name) for name in ("residual_before", added, after)]
        lines = list(zip(("", "+", "="), cells, strict=True))
        stations.append(_station("residual", say("Residual stream"), "", _said("residual stream"), cells, lines=lines))
    if after == "norm_input":
        stations.append(_stream(inside, "residual_after", say("Norm"), say("norm(sum)"), _said("norm")))
    return stations


_PARTS = {
    "entered": later("what enters"),
    "scores": later("the scores"),
    "projected": later("the way through W_O"),
    "residual_before": later("the residual stream"),
    "added": later("what all heads add"),
}


def _lens(inside: Inside) -> dict[str, Any] | None:
    if inside.lens is None:
        return None
    rows = [
        {
            "name": say("after {state}", state=logit_lens.state_name(state)),
            "candidates": [
                {
                    "token": display_token(token),
                    "text": probability_words(p),
                    "share": float(np.nan_to_num(p)),
                    "written": token == step.token,
                }
                for token, p in step.candidates
            ],
        }
        for state, step in enumerate(inside.lens)
    ]
    return {
        "title": say("What each layer would write"),
        "words": say(logit_lens.CANNOT_SAY),
        "verdict": logit_lens.lens_summary(inside),
        "rows": rows,
    }
