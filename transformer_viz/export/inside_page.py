"""What a run keeps of the inside of its heads, as one HTML page without a program: every number as it arises."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from transformer_viz.analysis import inside_steps as steps
from transformer_viz.analysis import logit_lens
from transformer_viz.analysis.inside_numbers import NUMBERS, value_of
from transformer_viz.analysis.sentences import plain
from transformer_viz.errors import OptionError, listed
from transformer_viz.export.assets import asset
from transformer_viz.export.content import PageTheme, page_title
from transformer_viz.export.pages import THEMES
from transformer_viz.numbers_in_words import number_words
from transformer_viz.terms import KIND_TITLES, REASON_WORDS, head_title, place_words, visible
from transformer_viz.trace.inside import Inside
from transformer_viz.trace.trace import Trace

_PAGE = """<!doctype html>
<html lang="en" data-theme="{theme}" class="{size}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Inside: {title}</title>
<style>
{style}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STREAMS = ("entered", "added", "residual_before", "residual_after", "projected", "scores")


def inside_html(trace: Trace, *, theme: PageTheme = "auto", large: bool = False) -> str:
    """The inside of every head and row that a run keeps, as one page that asks nothing of the network and runs nothing.

    Args:
        trace: the run.
        theme: `light`, `dark`, or `auto` for what the reader's system prefers.
        large: bigger letters, for a projector.

    Raises:
        OptionError: the run keeps none, or an impossible theme.
        TraceError: what it keeps is damaged.
    """
    if theme not in THEMES:
        raise OptionError(f"theme {theme!r} is not known; choose one of {listed(THEMES)}")
    if not (insides := Inside.of(trace)):
        raise OptionError("This run holds the inside of no head. Record it: trace TEXT --inside cross.1.1:1 -o FILE.npz.")
    return _PAGE.format(
        theme=theme,
        size="large" if large else "",
        title=escape(page_title(trace)),
        policy=_POLICY,
        style=asset("inside.css"),
        body="\n".join(map(_head, insides)),
    )


def _head(inside: Inside) -> str:
    """One head and row."""
    title = f"{KIND_TITLES[inside.kind]}, {head_title(inside.layer, inside.head)}, row {inside.row + 1}"
    writes = "" if inside.written is None else f", which writes <code>{_token(inside.written)}</code>"
    row = f"<p>The row of {place_words(inside.row)}, <code>{_token(inside.row_token)}</code>{writes}.</p>"
    parts = [part for make in _SECTIONS if (part := make(inside))]
    made = "\n".join(f"<section><h3>{n}. {part}</section>" for n, part in enumerate(parts, start=1))
    return f"<article><h2>{escape(title)}</h2>{row}{made}{_untold(inside)}</article>"


# ---- the sections, in order; each is its title, the end of its heading, and what stands below


def _enters(inside: Inside) -> str | None:
    if inside.entered is None:
        return None
    if inside.norm != "pre" or inside.residual_before is None:
        return _section("What enters the row", NUMBERS["entered"].words, _strip(inside.entered, "entered"))
    first = f"<p>before {_strip(inside.residual_before, 'before')}</p>"
    then = f"<p>after the norm {_strip(inside.entered, 'entered')}</p>{_arithmetic(inside, ['normed.1'])}"
    return _section("What enters the row", "The residual stream, and what the norm makes of it.", first + then)


def _query(inside: Inside) -> str:
    return _section("Query", f"What this row looks for: {len(inside.query)} numbers.", _strip(inside.query, "query"))


def _keys(inside: Inside) -> str:
    words = f"What each key shows of itself, {len(inside.query)} numbers each.{_many(inside)}"
    keys = steps.shown_keys(inside)
    most = _most(inside.keys[keys])
    rows = [(key, f"<td class='words'>{_strip(inside.keys[key], 'key', most)}</td>") for key in keys]
    return _section("Keys", words, _table(inside, ("numbers",), rows))


def _scores(inside: Inside) -> str | None:
    """From q · k to the mask."""
    if inside.scores is None:
        return None
    names = [name for name in ("dot", "scaled", "capped", "bias", "score") if NUMBERS[name].make(inside) is not None]
    rows = [(key, _numbers(inside, names, key) + _mask(inside, key)) for key in steps.shown_keys(inside)]
    table = _table(inside, (*(NUMBERS[name].said for name in names), "mask"), rows)
    return _section("Scores and mask", _score_words(inside), table + _of_keys(inside, [*reversed(names)]))


def _weights(inside: Inside) -> str:
    keys = steps.shown_keys(inside)
    names = ["weight"] if inside.scores is None else ["exp", "weight"]
    bars = {key: f"<td class='words'><span class='bar' style='--share:{inside.weights[key]:.4f}'></span></td>" for key in keys}
    table = _table(
        inside, (*(NUMBERS[name].said for name in names), ""), [(k, _numbers(inside, names, k) + bars[k]) for k in keys]
    )
    rest = (
        f"<p>All other keys together: {number_words(value_of(inside, 'rest'), 3)}.</p>" if len(keys) < len(inside.keys) else ""
    )
    ends = ["largest", "sum"] if inside.scores is not None else []
    words = "e to the power of each score, as a share of their sum: together they are 1."
    return _section("Weights", words, table + rest + _arithmetic(inside, ends) + _of_keys(inside, names))


def _values(inside: Inside) -> str:
    keys, weighted = steps.shown_keys(inside), steps.parts(inside)
    most = _most(inside.values[keys])
    pairs = ((key, (_strip(inside.values[key], "value", most), _strip(weighted[key], "weighted", most))) for key in keys)
    rows = [(key, "".join(f"<td class='words'>{strip}</td>" for strip in strips)) for key, strips in pairs]
    words = f"What each key hands on, {len(inside.output)} numbers each, and the same times its weight.{_many(inside)}"
    return _section("Values", words, _table(inside, ("value", "weight × value"), rows))


def _output(inside: Inside) -> str:
    addresses = [f"output.{place + 1}" for place in range(len(inside.output))]
    body = _strip(inside.output, "output") + _folded("How each place comes about", _arithmetic(inside, addresses))
    return _section("Output of the head", "The weighted values, added up place by place.", body)


def _projected(inside: Inside) -> str | None:
    if inside.projected is None:
        return None
    body = _strip(inside.projected, "share") + _arithmetic(inside, ["projected.1"] if inside.out is not None else [])
    return _section("W_O", NUMBERS["projected"].words, body)


def _residual(inside: Inside) -> str | None:
    if inside.added is None or inside.residual_before is None or inside.residual_after is None:
        return None
    lines = [("before", inside.residual_before), ("added by all heads", inside.added), ("after", inside.residual_after)]
    norm = {
        "pre": "Added to it; the norm stood before.",
        "post": "Added to it, and the sum goes through the norm.",
        "residual-post": "What is added goes through the norm first.",
    }[inside.norm or "pre"]
    strips = "".join(f"<p>{escape(said)} {_strip(vector, said)}</p>" for said, vector in lines)
    addresses = ["added.1", "residual_after.1"] + ([] if inside.norm == "pre" else ["normed.1"])
    return _section("Residual stream", norm, strips + _arithmetic(inside, addresses))


def _lens(inside: Inside) -> str | None:
    if inside.lens is None:
        return None
    rows = []
    for state, step in enumerate(inside.lens):
        found = "".join(
            f"<td class='words'><code>{_token(token)}</code> {number_words(p, 2)}</td>" for token, p in step.candidates
        )
        rank = "" if step.rank is None else str(step.rank + 1)
        own = f"<td>{number_words(step.probability, 3)}</td><td>{rank}</td>"
        rows.append(f"<tr><th scope='row'>after {logit_lens.state_name(state)}</th>{own}{found}</tr>")
    most = max(len(step.candidates) for step in inside.lens)
    heads = "".join(f"<th class='words'>{n + 1}</th>" for n in range(most))
    top = f"<tr><th></th><th>p of what was written</th><th>its rank</th>{heads}</tr>"
    table = f"<div class='wide'><table>{top}{''.join(rows)}</table></div>"
    return _section("What each layer would write", logit_lens.CANNOT_SAY, table)


_SECTIONS = (_enters, _query, _keys, _scores, _weights, _values, _output, _projected, _residual, _lens)


# ---- pieces


def _section(title: str, words: str, body: str) -> str:
    return f"{escape(title)}</h3><p>{escape(words)}</p>{body}"


def _score_words(inside: Inside) -> str:
    width = len(inside.query)
    scale = inside.scale or 1.0
    divided = "divided by nothing" if scale == 1 else f"times {scale:.4f}"
    divided = f"divided by √{width}" if abs(scale - width**-0.5) < 1e-6 else divided
    words = f"q · k is the sum of {width} products, {divided}"
    words += "" if inside.softcap is None else f", softly capped at {inside.softcap:g}"
    words += "" if inside.bias is None else ", and the position bias is added"
    return f"{words}. A masked key is out, whatever its score."


def _many(inside: Inside) -> str:
    n, n_shown = len(inside.keys), len(steps.shown_keys(inside))
    return "" if n == n_shown else f" Of {n} keys the {n_shown} with the largest weights."


def _numbers(inside: Inside, names: Iterable[str], key: int) -> str:
    return "".join(f"<td>{number_words(value_of(inside, f'{name}.{key + 1}'), 3)}</td>" for name in names)


def _mask(inside: Inside, key: int) -> str:
    code = int(inside.reasons[key])
    return f"<td class='masked'>{escape(REASON_WORDS.get(code, 'masked'))}</td>" if code else "<td></td>"


def _table(inside: Inside, heads: Sequence[str], rows: Iterable[tuple[int, str]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    lines = "".join(f"<tr><th scope='row'>{escape(steps.label(inside, key))}</th>{cells}</tr>" for key, cells in rows)
    return f"<div class='wide'><table><tr><th></th>{top}</tr>{lines}</table></div>"


def _most(numbers: np.ndarray) -> float:
    """What has the strongest colour."""
    return float(np.nan_to_num(np.abs(numbers)).max(initial=0)) or 1.0


def _strip(vector: np.ndarray, said: str, most: float | None = None) -> str:
    """A vector as colours: the further from 0, the stronger, `most` or its own largest the strongest; figures on hover."""
    most = _most(vector) if most is None else most
    cells = []
    for place, value in enumerate(np.nan_to_num(vector.astype(float)), start=1):
        kind = " class='less'" if value < 0 else ""
        cells.append(
            f"<i{kind} style='--p:{abs(value) / most:.0%}' title='{place}: {number_words(float(vector[place - 1]), 3)}'></i>"
        )
    label = (
        f"{said}: {len(vector)} numbers from {number_words(float(vector.min()), 3)} to {number_words(float(vector.max()), 3)}"
    )
    return f"<span class='strip' role='img' aria-label='{escape(label)}'>{''.join(cells)}</span>"


def _of_keys(inside: Inside, names: Sequence[str]) -> str:
    """The arithmetic of numbers of the keys that are shown, one fold a kind of number."""
    folds = []
    for name in names:
        addresses = [f"{name}.{key + 1}" for key in steps.shown_keys(inside)]
        if any(len(steps.explain(inside, address).terms) > 1 or name == "dot" for address in addresses):
            folds.append(_folded(f"How each {NUMBERS[name].said} comes about", _arithmetic(inside, addresses)))
    return "".join(folds)


def _arithmetic(inside: Inside, addresses: Iterable[str]) -> str:
    return "".join(_explained(steps.explain(inside, address)) for address in addresses)


def _explained(found: steps.Explanation) -> str:
    rounded = " <small>(rounded)</small>" if found.is_rounded else ""
    line = " ".join(
        f"<b>{escape(term.operator)}</b> {escape(term.figure)} <small>{escape(term.words)}</small>" for term in found.terms
    )
    rows = "".join("<tr>" + "".join(f"<td>{escape(term.figure)}</td>" for term in row) + "</tr>" for row in found.rows)
    heads = "".join(f"<th>{escape(head)}</th>" for head in found.heads)
    table = f"<div class='wide'><table><tr>{heads}</tr>{rows}</table></div>" if found.rows else ""
    return _folded(
        f"{found.label} = {found.terms[-1].figure}",
        f"<p>{escape(plain(found.words))}</p>{table}<p class='line'>{line}{rounded}</p>",
    )


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>" if body else ""


def _untold(inside: Inside) -> str:
    missing = [name.replace("_", " ") for name in _STREAMS if getattr(inside, name) is None]
    return f"<p class='muted'>What this model's reader cannot tell: {escape(listed(missing))}.</p>" if missing else ""


def _token(token: str) -> str:
    return escape(visible(token))
