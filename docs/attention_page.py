"""*What is attention?*: a page for somebody who has never heard of it, with five pictures of the first lesson's run."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

import transformer_viz as tv
from transformer_viz.numbers_in_words import percent_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace

TEXT = "reversethis"
_LAYER, _HEAD = 0, 1
_LOOKS, _SHARES = 2, 4
"""The steps, from 0, of the second picture and of the third."""
_OTHERS = (0, 3)
_PITCH, _BOX, _CELL = 46, 38, 24
_DOWN = 150

TEXTS: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "attention.toml").read_text(encoding="utf-8"))
"""The page's own words, by language."""


def parts(language: str) -> list[tuple[str, str, Markup]]:
    """Heading, text and picture of each part."""
    trace, words = tv.decode(tv.load_checkpoint("reverse", "cpu"), TEXT), TEXTS[language]
    weights = trace.cross.weights[_LAYER, _HEAD]
    row = weights[_SHARES]
    most = [int(key) for key in np.argsort(-row)[:3]]
    shares = [f"{display_token(trace.source_tokens[key])} {percent_words(float(row[key]))}" for key in most]
    fields = {
        "text": TEXT,
        "written": trace.output_tokens[_LOOKS],
        "step": _SHARES + 1,
        "shares": words["and"].join((", " if language == "en" else "、").join(part) for part in (shares[:-1], shares[-1:])),
        "n": sum(attention.weights.shape[0] * attention.weights.shape[1] for attention in trace.attentions.values()),
    }
    drawn = [
        _strips(trace, trace.n_steps - 1),
        _strips(trace, _LOOKS + 1, weights[_LOOKS]),
        _bars(trace, row),
        _maps(trace, [weights]),
        _maps(trace, [trace.cross.weights[_LAYER, head] for head in _OTHERS]),
    ]
    return [(part["title"], part["text"].format(**fields), svg) for part, svg in zip(words["parts"], drawn, strict=True)]


def _strips(trace: Trace, n_written: int, row: np.ndarray | None = None) -> Markup:
    """What is read above what is written so far; with a row, the looks of the last step as lines."""
    source, written = trace.source_tokens, trace.output_tokens[:n_written]
    shift = (len(source) - n_written) / 2
    body, last = "", _middle(n_written - 1 + shift)
    if row is not None:
        for key, weight in enumerate(row):
            if weight >= 0.02:
                x = _middle(key)
                way = f"M{x} {_BOX} C{x} {_DOWN / 2} {last} {_DOWN / 2} {last} {_DOWN - _BOX}"
                body += f'<path class="look" d="{way}" stroke-width="{1 + 9 * weight:.1f}"/>'
    body += "".join(_token(token, key, 0, "read") for key, token in enumerate(source))
    body += "".join(
        _token(token, place + shift, _DOWN - _BOX, "now" if row is not None and place == n_written - 1 else "written")
        for place, token in enumerate(written)
    )
    return _svg(len(source) * _PITCH, _DOWN, body, f"{' '.join(map(display_token, source))} → {''.join(written)}")


def _bars(trace: Trace, row: np.ndarray) -> Markup:
    """A row as bars over its tokens, each with its share."""
    height, body = 90, ""
    for key, weight in enumerate(row):
        high = round(height * float(weight))
        body += f'<rect class="bar" x="{key * _PITCH + 8}" y="{20 + height - high}" width="{_PITCH - 16}" height="{high}"/>'
        if weight >= 0.005:
            body += f'<text x="{_middle(key)}" y="{14 + height - high}">{percent_words(float(weight))}</text>'
        body += _token(trace.source_tokens[key], key, 24 + height, "read")
    said = ", ".join(
        f"{display_token(trace.source_tokens[key])} {percent_words(float(w))}" for key, w in enumerate(row) if w >= 0.005
    )
    return _svg(len(row) * _PITCH, 24 + height + _BOX, body, said)


def _maps(trace: Trace, maps: Sequence[np.ndarray]) -> Markup:
    """Maps side by side, with the tokens at their edges."""
    rows, columns = maps[0].shape
    left, wide = 34, 34 + columns * _CELL + 30
    body = ""
    for place, weights in enumerate(maps):
        for query, row in enumerate(weights):
            label = escape(_short(trace.output_tokens[query]))
            body += f'<text class="label" x="{place * wide + left - 14}" y="{query * _CELL + 17}">{label}</text>'
            for key, weight in enumerate(row):
                at = f'x="{place * wide + left + key * _CELL}" y="{query * _CELL}"'
                body += (
                    f'<rect class="cell" {at} width="{_CELL - 1}" height="{_CELL - 1}" style="--weight: {float(weight):.2f}"/>'
                )
        for key, token in enumerate(trace.source_tokens):
            x = place * wide + left + (key + 0.5) * _CELL
            body += f'<text class="label" x="{x}" y="{rows * _CELL + 16}">{escape(_short(token))}</text>'
    said = "; ".join(f"{display_token(trace.output_tokens[query])}: {display_token(trace.source_tokens[int(row.argmax())])}"
                     for query, row in enumerate(maps[0]))  # fmt: skip
    return _svg(len(maps) * wide - 30, rows * _CELL + 24, body, said)


def _short(token: str) -> str:
    return {"<start>": "⊢", "<end>": "⊣"}.get(token, display_token(token))


def _middle(place: float) -> float:
    return (place + 0.5) * _PITCH


def _token(token: str, place: float, top: float, looks: str) -> str:
    left = place * _PITCH + (_PITCH - _BOX) / 2
    box = f'<rect class="{looks}" x="{left}" y="{top + 1}" width="{_BOX}" height="{_BOX - 2}" rx="6"/>'
    return f'{box}<text class="token" x="{_middle(place)}" y="{top + _BOX / 2 + 6}">{escape(_short(token))}</text>'


def _svg(width: float, height: float, body: str, said: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" style="max-width: {width}px" role="img" aria-label="{escape(said)}">{body}</svg>'
    )
