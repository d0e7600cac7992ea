"""*Patch A into B* on the page Compare: one activation of A is put into B, to see where B then writes what A wrote."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from transformer_viz.addresses import Place
from transformer_viz.attribution.figures.patching import patching, places_of, strongest
from transformer_viz.attribution.result.patching import PatchedRun, PatchEffect, Patching, PatchingSize, parting
from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.export.strips import output_strip
from transformer_viz.figures.figure_data import plain
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import count_words, signed_words
from transformer_viz.terms import KIND_TITLES, Kind, head_title, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.compare import patch_runs, shown
from transformer_viz.views.compare.sides import Asked
from transformer_viz.views.components import chart, clicks, figure_file, style
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.state import link
from transformer_viz.vocabulary import SPECIAL_TOKENS

_BY_WORDS = {"head": "heads of A", "layer": "layers of A"}
_LARGEST = "largest effect"
_MOST_ROWS = 128
"""Heads of a map, of as many layers as that are; deeper models have a box for the others."""


@dataclass(frozen=True)
class Pair:
    """Both runs by tokens, what was asked of each side, and where they run."""

    runs: tuple[Trace, Trace]
    asked: tuple[Asked, Asked]
    device: str

    def check(self) -> int:
        """The step where they part.

        Raises:
            OptionError: there are no two runs of one model that can be laid on each other.
        """
        a, b = self.asked
        if a.file is not None or b.file is not None:
            raise OptionError("patching reads both runs again, and a file has no model; choose runs on both sides")
        if (a.checkpoint, a.snapshot) != (b.checkpoint, b.snapshot):
            names = [one.checkpoint + ("" if one.snapshot is None else f" at step {one.snapshot:,}") for one in (a, b)]
            raise OptionError(
                f"A is of {names[0]} and B of {names[1]}: patching puts what a model computed into the same model; choose one"
            )
        return parting(*self.runs)

    def model(self) -> LoadedModel:
        """Of both sides."""
        return patch_runs.model_of(self.asked[0], self.device)


def show(pair: Pair, kind: Kind, *, large: bool) -> list[Any]:
    """A toggle, and what it found; the map of the place that is chosen, and the run with it. `kind` is the one in focus."""
    of = (*pair.asked, pair.device)
    if not link.asking_toggle("Patch A into B", key="patching", of=of, help=glossary.sentence("patching")):
        return []
    try:
        pair.check()
        return _found(pair, pair.model(), kind, large=large)
    except TransformerVizError as error:
        said = literal(f"{error}".removesuffix("."))
        st.info(f"**Patching A into B** is not possible here: {said}.", icon=":material/move_down:")
        return []


def _found(pair: Pair, model: LoadedModel, kind: Kind, *, large: bool) -> list[Any]:
    runs, state = pair.runs, st.session_state
    # Of a deep model all heads at once are more than a page has room for, and its layers say which heads to look at.
    by = "layer" if max(each.n_layers * each.n_heads for each in pair.runs[0].attentions.values()) > _MOST_ROWS else "head"
    controls = st.container(horizontal=True, vertical_alignment="bottom", key="patch-controls")
    with controls:
        looks: Any = {"default": by, "words": _BY_WORDS.__getitem__, "label_visibility": "collapsed"}
        link.segmented_control("What is put", list(_BY_WORDS), key="patch_by", **looks)
        of_kind, layers = _part(model, runs, kind)
    extent = patch_runs.extent(model, runs, state.patch_by, of_kind, layers)
    place = st.empty()
    place.caption(_extent_words(extent, model))
    found = patch_runs.patching(model, runs, state.patch_by, of_kind, layers)
    addresses = {
        f"{row}:{column + 1}": found.at(row, column)
        for kind, effects in found.effects.items()
        for row in places_of(found, kind)
        for column in range(effects.shape[-1])
    }
    about = "Kind, layer, head and position of A, all from 1. A click on a cell below chooses it too."
    with controls:
        address = link.selectbox("Place of A", [_LARGEST, *addresses], key="patch_place", help=about, width=240)
    chosen = addresses.get(address) or found.largest(1)[0]
    place.markdown(_sentence(pair, found))
    effects = _maps(pair, found, chosen)
    st.caption(
        f"{_extent_words(extent, model)} · **blue**: B comes nearer to what A wrote · **orange**: farther away · framed: "
        "the place whose run is below; a click or the box *Place of A* chooses another"
    )
    changed = patch_runs.patched(model, runs, chosen.place, chosen.query)
    with st.container(key="patched-run"):
        shown.show(_content(pair, found, chosen, changed, large=large), key="compare-patched")
    return [effects, changed]


def _part(model: LoadedModel, runs: tuple[Trace, Trace], kind: Kind) -> tuple[Kind | None, tuple[int, ...] | None]:
    """Everything where that is not too much for one page, else some layers of the kind in focus, chosen in a box."""
    state, sizes = st.session_state, model.model.sizes
    heads = sizes.heads if state.patch_by == "head" else dict.fromkeys(sizes.kinds, 1)
    whole = patch_runs.extent(model, runs, state.patch_by)
    n_rows = max(len(sizes.layers[each]) * heads[each] for each in sizes.kinds)
    if whole.n_places <= whole.most and n_rows <= _MOST_ROWS:
        return None, None
    of_kind = patch_runs.extent(model, runs, state.patch_by, kind)
    n = max(1, min(of_kind.most_layers, _MOST_ROWS // heads[kind]))
    numbers = sizes.layers[kind]
    pages = {numbers[first]: tuple(numbers[first : first + n]) for first in range(0, len(numbers), n)}
    if len(pages) == 1:
        return kind, None
    if "patch_layers" in state:
        state.patch_layers = next((first for first, page in pages.items() if state.patch_layers in page), next(iter(pages)))
    looks: Any = {"words": lambda first: _page_words(pages[first]), "width": 170, "label_visibility": "collapsed"}
    return kind, pages[link.selectbox("Layers to patch", [*pages], key="patch_layers", **looks)]


def _page_words(layers: tuple[int, ...]) -> str:
    first, last = layers[0] + 1, layers[-1] + 1
    return f"layer {first}" if first == last else f"layers {first} to {last}"


def _extent_words(extent: PatchingSize, model: LoadedModel) -> str:
    """`1,350 places, each a pass over 5 tokens; of SmolLM2 at most 1,486 at once`."""
    passes = f"{count_words(extent.n_places, 'place')}, each a pass over {extent.n_tokens} tokens"
    return f"{passes}; of {literal(model.name)} at most {extent.most:,} at once"


# ---- what was found


def _maps(pair: Pair, found: Patching, chosen: PatchEffect) -> Any:
    """One a kind; that of the place that is chosen is returned."""
    limit, of_place = strongest(found), None
    for kind, column in zip(found.effects, st.columns(len(found.effects)), strict=True):
        looks: Any = {"limit": limit, "style": style.figure_style()}
        figure = call(plain(patching), found, *pair.runs, kind, (chosen.place, chosen.query), **looks)
        with column, st.container(key=f"patch-map-{kind}"):
            heard = clicks.cells(partial(_go, kind, found))
            words = f"{KIND_TITLES[kind]}: how much each place of A brings back. {_largest_of(pair, found, kind)}"
            chart.show(figure, f"patch-chart-{kind}", words, clicks=heard)
            if kind == chosen.place.kind:
                figure_file.offer(figure, "patching")
                of_place = figure
    return of_place


def _go(kind: Kind, found: Patching, row: int | None, column: int | None) -> None:
    """To the run of a clicked cell; what is none is passed over."""
    places = places_of(found, kind)
    if row is not None and column is not None and row < len(places) and column < found.effects[kind].shape[-1]:
        st.session_state.patch_place = f"{places[row]}:{column + 1}"


def _sentence(pair: Pair, found: Patching) -> str:
    """Where the runs part, and which places bring back most."""
    ours, other = (f"**{of_run(token)}**" for token in found.tokens)
    best = [f"**{signed_words(each.value, 2)}** ({_name(each.place)}, {_at(pair, each)})" for each in found.largest(3)]
    return (
        f"At step {found.step + 1} A writes {ours} and B {other}. Of the difference between their logits one place of A, put "
        f"into B alone, brings back at most {', '.join(best)}. 0: nothing changes. 1: B is as sure of {ours} as A."
    )


def _largest_of(pair: Pair, found: Patching, kind: Kind) -> str:
    """For who does not see the map."""
    [best] = replace(found, effects={kind: found.effects[kind]}).largest(1)
    read = display_token(pair.runs[0].labels(kind)[0][best.query])
    return f"The largest effect is {signed_words(best.value, 2)}, of {_name(best.place)} at {place_words(best.query)} {read}."


def _name(place: Place) -> str:
    """`layer 2 head 3 of cross-attention`."""
    assert place.layer is not None
    title = f"layer {place.layer + 1}" if place.head is None else head_title(place.layer, place.head)
    return f"{title} of {KIND_TITLES[place.kind]}"


def _at(pair: Pair, effect: PatchEffect) -> str:
    """`token 7 o`."""
    return f"{place_words(effect.query)} {of_run(pair.runs[0].labels(effect.place.kind)[0][effect.query])}"


def _content(pair: Pair, found: Patching, chosen: PatchEffect, changed: PatchedRun, *, large: bool) -> dict[str, Any]:
    """The strips of A, of B and of what came of it, and how probable both tokens are in each."""
    a, b = pair.runs
    names, sides = ("A", "B", "B′"), [output_strip(a), output_strip(b), _strip(changed, found.step)]
    longest = max(map(len, sides))
    apart = [place for place in range(longest) if _text(sides[1], place) != _text(sides[2], place)]
    strip = {
        "name": "patched",
        "label": "writes, tinted by probability; outlined: other than B",
        "sides": [{"name": name, "tokens": tokens} for name, tokens in zip(names, sides, strict=True)],
        "apart": apart,
        "hint": "what A, B and B with one place of A write, step by step",
    }
    ours, other = map(display_token, found.tokens)
    of_a, of_b = found.differences
    leads = (of_a, of_b, of_b + chosen.value * (of_a - of_b))
    cells = {
        f"p of {ours}": [f"{p:.3g}" for p, _ in changed.of_both],
        f"p of {other}": [f"{p:.3g}" for _, p in changed.of_both],
        f"logit of {ours} less that of {other}": [signed_words(lead, 2) for lead in leads],
    }
    rows = [{"what": what, "cells": row, "kind": None, "is_text": False} for what, row in cells.items()]
    return {
        "sentence": _outcome(pair, found, chosen, changed),
        "strips": [strip],
        "caption": f"How probable both tokens are at step {found.step + 1}",
        "columns": [f"at step {found.step + 1}", "A", "B", "B′"],
        "rows": rows,
        "large": large,
        "dark": style.theme() == "dark",
    }


def _outcome(pair: Pair, found: Patching, chosen: PatchEffect, changed: PatchedRun) -> list[list[str]]:
    """`B′ is B with layer 1 head 1 of the cross-attention of A at token 7, o: it brings back +0.27, and B′ writes …`."""
    read = pair.runs[0].labels(chosen.place.kind)[0][chosen.query]
    wrote = changed.tokens[found.step]
    of = next((name for name, token in zip("AB", found.tokens, strict=True) if token == wrote), None)
    return [
        ["strong", "B′"],
        ["plain", f" is B with {_name(chosen.place)} of A at {place_words(chosen.query)} "],
        ["code", display_token(read)],
        ["plain", ": it brings back "],
        ["strong", signed_words(chosen.value, 2)],
        ["plain", ", and at that step "],
        ["code", display_token(wrote)],
        ["plain", f" is most probable, {'which neither wrote' if of is None else f'as in {of}'}."],
    ]


def _strip(changed: PatchedRun, step: int) -> list[dict[str, Any]]:
    """As `output_strip`; what both runs wrote before is given."""
    return [
        {
            "text": display_token(token),
            "title": f"step {t + 1}: {display_token(token)}, p = {p:.4f}{', as in both' if t < step else ''}",
            "class": "special" if token in SPECIAL_TOKENS else "given" if t < step else "",
            **({} if t < step else {"tint": round(p, 4)}),
        }
        for t, (token, p) in enumerate(zip(changed.tokens, changed.probabilities, strict=True))
    ]


def _text(strip: list[dict[str, Any]], place: int) -> str | None:
    return strip[place]["text"] if place < len(strip) else None
