"""*Patch A into B* on the page Compare: one activation of A is put into B, to see where B then writes what A wrote."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import streamlit as st

from transformer_viz import checkpoints
from transformer_viz.addresses import AttentionAddress
from transformer_viz.attribution import patch as patches
from transformer_viz.attribution.result.patching import PatchedRun, PatchEffect, Patching, PatchingSize, parting
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.export.strips import output_strip
from transformer_viz.figures.experiments import patching, places_of, strongest
from transformer_viz.figures.figure_data import plain
from transformer_viz.language import enumerated, later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import count_words, probability_words, signed_words
from transformer_viz.sentences.run_sentences import say_sentence
from transformer_viz.terms import Kind, head_title, kind_words, place_words
from transformer_viz.text_display import display_token
from transformer_viz.trace.trace import Trace
from transformer_viz.views import glossary
from transformer_viz.views.cache.computing import compute
from transformer_viz.views.cache.model_list import load_any
from transformer_viz.views.compare import shown
from transformer_viz.views.compare.sides import Asked
from transformer_viz.views.components import chart
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.state import link
from transformer_viz.vocabulary import SPECIAL_TOKENS

Runs = tuple[Trace, Trace]
_BY_WORDS = {"head": later("heads of A"), "layer": later("layers of A")}
_LARGEST = later("largest effect")
_MOST_ROWS = 128
"""Heads of a map, of as many layers as that are; deeper models have a box for the others."""


def show(runs: Runs, asked: tuple[Asked, Asked], device: str, kind: Kind) -> list[Any]:
    """Draws a toggle and, while it is on, what patching found. Returns the map of the chosen place, and the run with it.

    Args:
        runs: both, by tokens.
        asked: what each side is.
        device: where they run.
        kind: the one in focus.
    """
    of = (*asked, device)
    if not link.asking_toggle(say("Patch A into B"), key="patching", of=of, help=glossary.sentence("patching")):
        return []
    a, b = asked
    try:
        if a.file is not None or b.file is not None:
            raise OptionError(say("patching reads both runs again, and a file has no model; choose runs on both sides"))
        if (a.checkpoint, a.snapshot) != (b.checkpoint, b.snapshot):
            names = [
                one.checkpoint
                if one.snapshot is None
                else say("{model} at step {step:,}", model=one.checkpoint, step=one.snapshot)
                for one in asked
            ]
            raise OptionError(
                say(
                    "A is of {a} and B of {b}: patching puts what a model computed into the same model; choose one",
                    a=names[0],
                    b=names[1],
                )
            )
        parting(*runs)
        model = load_any(a.checkpoint, device)
        if a.snapshot is not None and isinstance(model, Checkpoint):
            model = call(checkpoints.load_snapshot, model, a.snapshot)
        return _patch(runs, model, kind)
    except TransformerVizError as error:
        reason = literal(f"{error}".removesuffix("."))
        st.info(say("**Patching A into B** is not possible here: {said}.", said=reason), icon=":material/move_down:")
        return []


def _patch(runs: Runs, model: LoadedModel, kind: Kind) -> list[Any]:
    # Of a deep model all heads at once are more than a page has room for, and its layers say which heads to look at.
    by = (
        "layer"
        if max(attention.n_layers * attention.n_heads for attention in runs[0].attentions.values()) > _MOST_ROWS
        else "head"
    )
    controls = st.container(horizontal=True, vertical_alignment="bottom", key="patch-controls")
    with controls:
        by = link.segmented_control(say("What is put"), _BY_WORDS, key="patch_by", default=by, label_visibility="collapsed")
        some = _part(model, partial(patches.extent, model, *runs, by=by), kind, by)
    extent = patches.extent(model, *runs, by=by, **some)
    # `1,350 places, each a pass over 5 tokens; of SmolLM2 at most 1,486 at once`
    n = count_words(extent.n_places, "place")
    passes = say("{places}, each a pass over {tokens} tokens", places=n, tokens=extent.n_tokens)
    size = say("{passes}; of {name} at most {most:,} at once", passes=passes, name=literal(model.name), most=extent.most)
    place = st.empty()
    place.caption(size)
    cost = float(extent.n_places * extent.n_tokens) * model.n_parameters
    patching = compute(say("Putting each place of A into B"), cost, patches.patch, model, *runs, by=by, **some)
    addresses = {
        f"{row}:{column + 1}": patching.at(row, column)
        for kind, effects in patching.effects.items()
        for row in places_of(patching, kind)
        for column in range(effects.shape[-1])
    }
    about = say("Kind, layer, head and position of A, all from 1. A click on a cell below chooses it too.")
    with controls:
        address = link.selectbox(say("Place of A"), [_LARGEST, *addresses], key="patch_place", help=about, width=240)
    chosen = addresses.get(address) or patching.largest(1)[0]
    # Where the runs part, and which places bring back most.
    ours, other = (f"**{of_run(token)}**" for token in patching.tokens)
    best = []
    for effect in patching.largest(3):
        at = f"{place_words(effect.query)} {of_run(runs[0].labels(effect.place.kind)[0][effect.query])}"
        value = signed_words(effect.value, 2)
        best.append(say("**{value}** ({head}, {place})", value=value, head=_name(effect.place), place=at))
    place.markdown(
        say(
            "At step {step} A writes {ours} and B {other}. Of the difference between their logits one place "
            "of A, put into B alone, brings back at most {best}. 0: nothing changes. 1: B finds {ours} "
            "as probable as A.",
            step=patching.step + 1,
            ours=ours,
            other=other,
            best=enumerated(best),
        )
    )
    effects = _maps(runs, patching, chosen)
    st.caption(
        say(
            "{size} · **blue**: B comes nearer to what A wrote · **orange**: farther away · framed: the "
            "place whose run is below; a click or the box *Place of A* chooses another",
            size=size,
        )
    )
    n_tokens = max(len(run.source_tokens) + run.n_steps for run in runs)
    cost = float(n_tokens * n_tokens) * model.n_parameters
    words = say("Writing B with this place of A")
    changed = compute(words, cost, patches.patched_run, model, *runs, chosen.place, chosen.query)
    with st.container(key="patched-run"):
        shown.show(_content(runs, patching, chosen, changed), key="compare-patched")
    return [effects, changed]


def _part(model: LoadedModel, extent: Callable[..., PatchingSize], kind: Kind, by: str) -> dict[str, Any]:
    """Chooses the kind and the layers to patch, as keywords: all where that is not too much for one page, else some layers of
    the kind in focus, chosen in a box."""
    state, sizes = st.session_state, model.network.sizes
    heads = sizes.heads if by == "head" else dict.fromkeys(sizes.kinds, 1)
    whole, n_rows = extent(), max(len(sizes.layers[each]) * heads[each] for each in sizes.kinds)
    if whole.n_places <= whole.most and n_rows <= _MOST_ROWS:
        return {"where": None}
    n = max(1, min(extent(where=kind).most_layers, _MOST_ROWS // heads[kind]))
    numbers = sizes.layers[kind]
    pages = {numbers[first]: tuple(numbers[first : first + n]) for first in range(0, len(numbers), n)}
    if len(pages) == 1:
        return {"where": kind}
    if "patch_layers" in state:
        state.patch_layers = next((first for first, page in pages.items() if state.patch_layers in page), next(iter(pages)))

    def words(first: int) -> str:
        last = pages[first][-1]
        return (
            say("layer {first}", first=first + 1)
            if first == last
            else say("layers {first} to {last}", first=first + 1, last=last + 1)
        )

    looks: Any = {"words": words, "width": 170, "label_visibility": "collapsed"}
    chosen = pages[link.selectbox("Layers to patch", [*pages], key="patch_layers", **looks)]
    return {"where": [str(AttentionAddress(kind, layer)) for layer in chosen]}


# ---- what was found


def _maps(runs: Runs, found: Patching, chosen: PatchEffect) -> Any:
    """Draws a map for each kind; that of the place that is chosen is returned."""
    of_place = None
    at = (chosen.place, chosen.query)
    for kind, column in zip(found.effects, st.columns(len(found.effects)), strict=True):
        # For who does not see the map.
        [best] = replace(found, effects={kind: found.effects[kind]}).largest(1)
        read = display_token(runs[0].labels(kind)[0][best.query])
        largest = say(
            "{value}, of {place} at {query} {read}",
            value=signed_words(best.value, 2),
            place=_name(best.place),
            query=place_words(best.query),
            read=read,
        )
        is_chosen = kind == chosen.place.kind
        looks: Any = {"limit": strongest(found), "clicks": ("cell", partial(_go, kind, found))}
        looks |= {"key": f"patch-chart-{kind}", "file": "patching" if is_chosen else ""}
        looks["words"] = say(
            "{kind}: how much each place of A brings back. The largest effect is {largest}.",
            kind=kind_words(kind),
            largest=largest,
        )
        with column, st.container(key=f"patch-map-{kind}"):
            figure = chart.draw(plain(patching), found, *runs, kind, at, **looks)
        of_place = figure if is_chosen else of_place
    return of_place


def _go(kind: Kind, found: Patching, row: int | None, column: int | None) -> None:
    """Goes to the run of a clicked cell; what is none is passed over."""
    places = places_of(found, kind)
    if row is not None and column is not None and row < len(places) and column < found.effects[kind].shape[-1]:
        st.session_state.patch_place = f"{places[row]}:{column + 1}"


def _name(place: AttentionAddress) -> str:
    """`layer 2 head 3 of cross-attention`."""
    assert place.layer is not None
    title = say("layer {layer}", layer=place.layer + 1) if place.head is None else head_title(place.layer, place.head)
    return say("{title} of {kind}", title=title, kind=kind_words(place.kind))


def _content(runs: Runs, patching: Patching, chosen: PatchEffect, changed: PatchedRun) -> dict[str, Any]:
    """The content that `shown.show` draws: strips of A, of B and of what came of it, and the probabilities of both tokens."""
    a, b = runs
    # As `output_strip`; what both runs wrote before is given.
    patched = []
    for t, (token, p) in enumerate(zip(changed.tokens, changed.probabilities, strict=True)):
        is_given, text = t < patching.step, display_token(token)
        fields: dict[str, Any] = {"step": t + 1, "token": text, "p": probability_words(p, 2)}
        title = (
            say("step {step}: {token}, probability {p}, as in both", **fields)
            if is_given
            else say("step {step}: {token}, probability {p}", **fields)
        )
        cell = {"text": text, "title": title, "class": "special" if token in SPECIAL_TOKENS else "given" if is_given else ""}
        patched.append(cell if is_given else {**cell, "tint": round(p, 4)})
    sides = [output_strip(a), output_strip(b), patched]
    texts = [[token["text"] for token in side] for side in sides]
    apart = [place for place, (_, before, after) in enumerate(zip_longest(*texts)) if before != after]
    strip = {
        "name": "patched",
        "label": say("writes, tinted by probability; outlined: other than B"),
        "sides": [{"name": name, "tokens": tokens} for name, tokens in zip(("A", "B", "B′"), sides, strict=True)],
        "apart": apart,
        "hint": say("what A, B and B with one place of A write, step by step"),
    }
    ours, other = map(display_token, patching.tokens)
    of_a, of_b = patching.differences
    leads = (of_a, of_b, of_b + chosen.value * (of_a - of_b))
    cells = {
        say("probability of {token}", token=ours): [probability_words(p, 2) for p, _ in changed.of_both],
        say("probability of {token}", token=other): [probability_words(p, 2) for _, p in changed.of_both],
        say("logit of {ours} less that of {other}", ours=ours, other=other): [signed_words(lead, 2) for lead in leads],
    }
    rows = [{"what": what, "cells": row, "kind": None, "is_text": False} for what, row in cells.items()]
    read, wrote = a.labels(chosen.place.kind)[0][chosen.query], changed.tokens[patching.step]
    of = next((name for name, token in zip("AB", patching.tokens, strict=True) if token == wrote), None)
    most_probable = say("which neither wrote") if of is None else say("as in {run}", run=of)
    sentence = say_sentence(
        "{run} is B with {place} of A at {token_place} {token}: it brings back {value}, and at that step {wrote} is most "
        "probable, {which}.",
        run=("strong", "B′"),
        place=_name(chosen.place),
        token_place=place_words(chosen.query),
        token=("code", display_token(read)),
        value=("strong", signed_words(chosen.value, 2)),
        wrote=("code", display_token(wrote)),
        which=most_probable,
    )
    return {
        "sentence": sentence,
        "strips": [strip],
        "caption": say("How probable both tokens are at step {step}", step=patching.step + 1),
        "columns": [say("at step {step}", step=patching.step + 1), "A", "B", "B′"],
        "rows": rows,
    }
