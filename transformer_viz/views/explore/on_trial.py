"""*On trial* in the tab Heads: three questions that test whether what the head in focus looks at matters.

Everything is computed on request, shared by all sessions, and queued where it takes long. Needs torch.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.addresses import HeadAddress, map_address
from transformer_viz.analysis.intervals import Mean
from transformer_viz.attribution.attribute import attribute
from transformer_viz.attribution.knock_out import all_heads, knock_out
from transformer_viz.attribution.methods import METHODS
from transformer_viz.attribution.result.knock_out import KnockOut
from transformer_viz.attribution.result.verdict import (
    FLOOR_WORDS,
    KS,
    LEAST,
    MAP_WORDS,
    MeanCurve,
    Verdicts,
    left_out_words,
    verdict_words,
)
from transformer_viz.attribution.verdict import N_RANDOM, faithfulness, judge_attention
from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.evaluation.evaluate import sample_texts
from transformer_viz.figures.experiments import TITLES
from transformer_viz.language import known, later, say
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.numbers_in_words import count_words, interval_words, percent_words, signed_words
from transformer_viz.terms import COMBINED, INSTEAD, Head, Kind, head_label, kind_words, layer_label
from transformer_viz.trace.attribution import KINDS_WITH_CAUSES
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.tracing.progress import OnProgress, part_of
from transformer_viz.views import glossary
from transformer_viz.views.cache.computing import compute, computed
from transformer_viz.views.cache.limits import MAX_TRACE_BYTES
from transformer_viz.views.components import chart, code, table
from transformer_viz.views.components.bar import MOST_TYPED
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, call, record
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import display_options, link

QUESTIONS = (later("Does it point at the cause?"), later("Is it needed?"), later("Is its order faithful?"))
VERDICT, KNOCK_OUT, CURVES = "verdict", "knock_out", "curves"
"""The keys of the toggles that ask the questions."""
SAMPLES, FIRST_SAMPLES, _MOST_LINES = (20, 50, 100, 200), 50, 200
_MOST_WRITTEN = 20
"""Tokens for each of a person's lines, of a model that may not end by itself."""
_BESIDE = ("gradient", "rollout", "alti")
"""Measures beside the weights in the curves; those that the model cannot give are left out."""


def show(shown: Shown) -> None:
    """Draws the questions, and the answer to the one that is chosen; or why there is none."""
    model, trace = shown.model, shown.tokens
    assert model is not None
    if not model.network.kind.writes:
        words = say("{name} is an encoder alone: it writes nothing, so there is no output to explain.", name=model.name)
        st.info(literal(words), icon=":material/info:")
        return
    if not trace.output_tokens:
        st.info(say("Nothing was written in this run, so there is no output to explain."), icon=":material/info:")
        return
    place = QUESTIONS.index(
        link.segmented_control(say("The question"), QUESTIONS, key="question", label_visibility="collapsed")
    )
    try:
        (_show_verdict, _show_knock_out, _show_curves)[place](trace, model)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")


# ---- what is asked for


Texts = tuple[str, ...] | int | Trace
"""Over which heads are ablated: a person's lines, so many drawn ones of the task, or the run alone."""


def _made_of(trace: Trace, model: LoadedModel) -> dict[str, Hashable]:
    """For each question, everything that its answer depends on: the toggle is off again when one of these changes."""
    state = st.session_state
    how, every = link.option("trial_how", INSTEAD), link.is_on("trial_every")
    name = (model.name, model.options, str(model.device))
    run = (*name, trace.source, trace.output_tokens, state.kind)
    place = (state.kind, state.layer, state.head)
    texts = (link.text("trial_texts", most=MOST_TYPED), trace.source if model.task is None else _samples())
    return {
        VERDICT: run,
        CURVES: (*run, *place),
        KNOCK_OUT: (*name, texts, how, None if every else place),
    }


def _is_asked(name: str, trace: Trace, model: LoadedModel, words: str) -> bool:
    """Draws the toggle of a question. Returns whether it is on."""
    return link.asking_toggle(words, key=name, of=_made_of(trace, model)[name])


def _has_causes() -> bool:
    """Tells whether the kind in focus has queries that each stand for one written token; where it has none, says so."""
    if st.session_state.kind in KINDS_WITH_CAUSES:
        return True
    words = say(
        "No single step depends on one row of the encoder, which reads the whole source first. Choose "
        "another kind of attention above, or ask whether a head is needed."
    )
    st.info(words, icon=":material/info:")
    return False


def name_of(layer: int, head: Head) -> str:
    """The name of a map in the table of `tv.judge_attention`: `L2 H3`, `L2 mean`."""
    return head_label(layer, head) if isinstance(head, int) else f"{layer_label(layer)} {head}"


def _modes(model: LoadedModel) -> tuple[str, ...]:
    """The ways in which this model's tokens can be taken away: by word only where there is an unknown token."""
    return ("word", "position") if model.tokenizer.unknown_id is not None else ("position",)


def _texts_of(trace: Trace, model: LoadedModel) -> Texts:
    """The texts over which heads are ablated, from the boxes.

    Raises:
        OptionError: too many lines.
    """
    lines = tuple(line for line in st.session_state.trial_texts.splitlines() if line.strip())
    if len(lines) > _MOST_LINES:
        raise OptionError(f"{len(lines)} lines are too many; at most {_MOST_LINES} texts are possible here. Leave some out.")
    return lines or (trace if model.task is None else _samples())


def _samples() -> int:
    return link.option("trial_samples", SAMPLES, FIRST_SAMPLES)


def _sentence(trace: Trace, model: LoadedModel) -> str:
    """Says what is known of the head in focus by now: where it points, and, apart from that, whether it is needed."""
    state, of = st.session_state, _made_of(trace, model)
    name, points, need = name_of(state.layer, state.head), "", ""
    if link.asked(VERDICT, of[VERDICT]):
        verdicts = {mode: computed(judge_attention, model, trace, mode=mode, kind=state.kind) for mode in _modes(model)}
        known = ((mode, verdict) for mode, verdict in verdicts.items() if verdict is not None)
        points = say("; ").join(
            say("by {mode}, {name}", mode=say(mode), name=verdict_words(verdict.at(name), verdict)) for mode, verdict in known
        )
    if isinstance(state.head, int) and link.asked(KNOCK_OUT, of[KNOCK_OUT]):
        place = HeadAddress(state.kind, state.layer, state.head)
        head = None if state.trial_every else place
        result = computed(_knock_out, model, _texts_of(trace, model), state.trial_how, head)
        if result is not None:
            effect, right = result.at(place), round(result.exact_before.value * result.n_texts)
            if result.n_texts == 1:
                need = (
                    say("without this head the answer stays")
                    if effect.exact.value
                    else say("without this head the answer does not stay")
                )
            elif not right:
                need = say(
                    "none of {n_texts} answers is right with all heads, so none can stay without this one",
                    n_texts=result.n_texts,
                )
            else:
                stay = say(
                    "{value} of {right} right answers stay{stays}",
                    value=percent_words(effect.stays.value),
                    right=right,
                    stays=_with_interval(effect.stays),
                )
                need = say("without this head {stay}", stay=stay)
    if points and need:
        return say("{name}, {points}; {need}.", name=name, points=points, need=need)
    if points:
        return say("{name}, {points}. Whether it is needed is a separate question.", name=name, points=points)
    return say("{name}: {need}. Whether it points at the cause is a separate question.", name=name, need=need) if need else ""


def _with_interval(mean: Mean) -> str:
    """` (95 % interval 93 % to 100 %)`; nothing where there is none."""
    return "" if mean.ends is None else say(" (95 % interval {interval})", interval=interval_words(mean.ends, percent_words))


def _cost(trace: Trace, model: LoadedModel, n_passes: float) -> float:
    """Multiplications of so many passes over the run."""
    return (len(trace.source_tokens) + trace.n_steps) * n_passes * model.n_parameters


# ---- does it point at the cause?


def _show_verdict(trace: Trace, model: LoadedModel) -> None:
    """Draws a toggle and, while it is on, what was found of the head in focus, and the table of all maps."""
    state = st.session_state
    if not _has_causes():
        return
    st.markdown(
        say(
            "A token is removed; its cause is how much less probable the written token becomes. *By word* it "
            "is replaced by the unknown token, *by position* it is hidden. A map points at the cause if its "
            "largest weight is at the token that matters most."
        )
    )
    modes = _modes(model)
    if "word" not in modes:
        st.caption(literal(say("{name} has no unknown token, so tokens can be removed by position only.", name=model.name)))
    if not _is_asked(VERDICT, trace, model, say("Judge this run")):
        return
    cost = _cost(trace, model, len(trace.labels(state.kind)[1]) + 4.0 * trace.n_steps)
    verdicts = {
        mode: compute(
            say("Taking tokens away by {mode}", mode=say(mode)), cost, judge_attention, model, trace, mode=mode, kind=state.kind
        )
        for mode in modes
    }
    st.markdown(f"**{literal(_sentence(trace, model))}**")
    if display_options.current().is_large or not any(verdict.n_judged for verdict in verdicts.values()):
        return
    _draw_maps(verdicts, trace)
    first = next(iter(verdicts.values()))
    judged = say("; ").join(
        say(
            "by {mode}, {n_judged} are judged and {each}",
            mode=say(mode),
            n_judged=verdict.n_judged,
            each=left_out_words(verdict),
        )
        for mode, verdict in verdicts.items()
    )
    missing = "".join(
        say(" {measure}: {why}", measure=say(METHODS[name].title), why=why) for name, why in first.missing.items()
    )
    words = say(
        "Judged are steps in which a token matters by {least} nats or more, among tokens that are "
        "content: {judged}. {map_words}. ρ is Spearman's rank correlation; {floor_words}. A single run "
        "has no interval: its steps depend on each other.{missing}",
        least=LEAST,
        judged=judged,
        map_words=say(MAP_WORDS),
        floor_words=say(FLOOR_WORDS),
        missing=missing,
    )
    st.caption(literal(words))
    name, template = map_address(state.kind, state.layer, state.head), "print({0}.at({1}), {0}.n_judged, {0}.n_left_out)"
    code.show(
        *(Call(template, verdict, name) for verdict in verdicts.values()), call(Verdicts.to_frame, first), key="code_of_tab"
    )


def _draw_maps(found: Mapping[str, Verdicts], trace: Trace) -> None:
    """Draws one row a map; choosing one makes its head the focus, if the boxes above have it."""
    state = st.session_state
    frames = {mode: each.to_frame() for mode, each in found.items()}
    names = list(next(iter(frames.values()))["map"])
    attention = trace.attentions[next(iter(found.values())).kind]
    heads: list[Head] = [*range(attention.n_heads), *COMBINED]
    places = {name_of(layer, head): (layer, head) for layer in attention.layers for head in heads}
    # A measure's name may stand before the map's: `value_weighted L2 H3`.
    parts = [(method, rest) if method in METHODS else ("", name) for name in names for method, _, rest in [name.partition(" ")]]
    titles = [f"{say(METHODS[method].title)} {rest}".strip() if method else rest for method, rest in parts]
    columns: dict[str, list[Any]] = {"map": titles}
    for mode, frame in frames.items():
        columns[f"at the cause, {mode}"] = list(frame["top"])
        columns[f"ρ, {mode}"] = list(frame["rho"])

    def go(row: int) -> None:
        if (place := places.get(parts[row][1])) is not None:
            state.layer, state.head = place

    here = name_of(state.layer, state.head)
    row = names.index(here) if here in names else None
    shares = [f"at the cause, {mode}" for mode in frames]
    table.choose(columns, say("Every map beside the cause"), "verdict_table", row, go, percents=shares)


# ---- is it needed?


def _show_knock_out(trace: Trace, model: LoadedModel) -> None:
    """Draws the boxes for texts and what stands in a head's place, a toggle and, while it is on, what is lost."""
    state, is_large = st.session_state, display_options.current().is_large
    if not link.is_on("trial_every") and not isinstance(state.head, int):
        st.info(say("Mean and maximum are not heads and cannot be removed. Choose a head above."), icon=":material/info:")
        return
    if not is_large:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if model.task is not None:
                link.selectbox(say("Fresh texts"), SAMPLES, key="trial_samples", default=FIRST_SAMPLES, width=130)
            link.segmented_control(say("In its place"), INSTEAD, key="trial_how", help=glossary.sentence("In its place"))
            link.toggle(say("Every head"), key="trial_every")
        link.text_area(
            say("Texts of your own, one a line"),
            key="trial_texts",
            height=68,
            most=MOST_TYPED,
            placeholder=say("Empty: fresh texts of the task") if model.task is not None else say("Empty: this run"),
        )
    link.option("trial_how", INSTEAD)
    texts = _texts_of(trace, model)
    if not _is_asked(KNOCK_OUT, trace, model, say("Take it away")):
        words = say("Measured on this run alone: its one answer stays, or it does not.")
        if isinstance(texts, tuple):
            words = say("Over {texts} of your own.", texts=count_words(len(texts), "text"))
        elif isinstance(texts, int):
            drawn = count_words(texts, "fresh text")
            words = say("Over {drawn} of the task, of all lengths, against their right answers. A result is kept.", drawn=drawn)
        st.caption(literal(words))
        return
    head = None if state.trial_every else HeadAddress(state.kind, state.layer, state.head)
    n_texts = len(texts) if isinstance(texts, tuple) else texts if isinstance(texts, int) else 1
    read = (trace.source, *(texts if isinstance(texts, tuple) else ()))
    longest = max(map(len, read)) if model.task is None else max(model.task.evaluated_lengths)
    n_heads = 1 if head else len(all_heads(model.network.sizes))
    cost = 2.0 * longest * n_texts * (2 + n_heads) * model.n_parameters
    result = compute(say("Taking heads away"), cost, _knock_out, model, texts, state.trial_how, head)
    traces: list[Trace] | Call = [trace]
    if not isinstance(texts, Trace):
        lines = Call("texts = {}", [*texts]) if isinstance(texts, tuple) else Call(sample_texts, model, texts, 0)
        limit = "" if (most := _longest(model)) is None else f", max_length={most}"
        traces = Call(f"traces = [tv.decode({{}}, text{limit}) for text in {{}}]", model, lines)
    record(result, Call(knock_out, model, traces, how=state.trial_how, heads=None if head is None else [head]))
    if words := _sentence(trace, model):
        st.markdown(f"**{literal(words)}**")
    if head is None:
        _every(result, is_large=is_large)
    else:
        [effect] = result.heads
        answers = (
            say("right answers")
            if result.n_known == result.n_texts
            else say("what was written")
            if not result.n_known
            else say("answers")
        )
        before, without = percent_words(result.exact_before.value), percent_words(effect.exact.value)
        words = say(
            "{texts}, {answers}: {before} are written with all heads, {without} without this one{interval}; log p of each "
            "token of the answer changes by {change} nats on average.",
            texts=count_words(result.n_texts, "text"),
            answers=answers,
            before=before,
            without=without,
            interval=_with_interval(effect.exact),
            change=signed_words(effect.log_p.value),
        )
        st.markdown(literal(words))
    if not is_large:
        code.show(Call("print({0}.exact_before, {0}.heads)", result), key="code_of_tab")


def _every(result: KnockOut, *, is_large: bool) -> None:
    """Draws two heatmaps of the kind in focus, and a table of all heads."""
    state = st.session_state
    at = (state.layer, state.head)
    for column, (number, title) in zip(st.columns(2), TITLES.items(), strict=True):
        words = say(
            "Layers and heads of the {kind} by {title}; the table below has the same numbers",
            kind=kind_words(state.kind),
            title=say(title),
        )
        key, file = f"trial-{number}", f"knock-out-{number}"
        with column:
            chart.draw(figures.knock_out, result, state.kind, number, at, key=key, words=words, file=file)
    if is_large:
        return
    stays, lost = [effect.stays.ends for effect in result.heads], [effect.log_p.ends for effect in result.heads]
    columns = {
        "head": [head_label(effect.place.layer, effect.place.head) for effect in result.heads],
        "attention": [known(effect.place.kind) for effect in result.heads],
        "answers that stay": [effect.stays.value for effect in result.heads],
        "answers that stay, 95 %": ["" if ends is None else interval_words(ends, percent_words) for ends in stays],
        "log p lost": [-effect.log_p.value for effect in result.heads],
        # `0.0 -`, since a `-` alone makes -0.000 of 0.
        "log p lost, 95 %": [
            "" if ends is None else say("{ends:.3f} to {ends2:.3f}", ends=0.0 - ends[1], ends2=0.0 - ends[0]) for ends in lost
        ],
    }
    table.show(columns, say("What is lost without each head"), percents=("answers that stay",), places=3)


def _knock_out(
    model: LoadedModel, texts: Texts, how: str, head: HeadAddress | None, *, on_progress: OnProgress | None = None
) -> KnockOut:
    """Measures what the answers to the texts lose without one head or, where none is named, without each."""
    traces = [texts] if isinstance(texts, Trace) else []
    if not isinstance(texts, Trace):
        sources = texts if isinstance(texts, tuple) else sample_texts(model, texts, 0)
        while_decoding = part_of(on_progress, 0, 2)
        for n_done, text in enumerate(sources):
            while_decoding(n_done / len(sources))
            traces.append(decode(model, text, max_length=_longest(model), max_trace_bytes=MAX_TRACE_BYTES))
    heads = None if head is None else [head]
    return knock_out(model, traces, how=how, heads=heads, on_progress=part_of(on_progress, 1, 2))


def _longest(model: LoadedModel) -> int | None:
    """The most tokens that are written for each text; None stands for the task's own limit."""
    return None if model.task is not None else min(_MOST_WRITTEN, model.default_max_length)


# ---- is its order faithful?


def _show_curves(trace: Trace, model: LoadedModel) -> None:
    """Draws a toggle and, while it is on, two small curves."""
    state = st.session_state
    if not _has_causes():
        return
    mode = _modes(model)[0]
    st.markdown(
        say(
            "Tokens are removed in the order of each step's weights. If a map puts first what matters, "
            "removing its first tokens loses much probability, and keeping only these loses little."
        )
    )
    if not _is_asked(CURVES, trace, model, say("Take tokens away")):
        return
    maps = tuple(dict.fromkeys(name_of(state.layer, head) for head in (state.head, "mean")))
    maps = (*maps, *_BESIDE)
    cost = _cost(trace, model, 2.0 * len(KS) * trace.n_steps * (len(maps) + 1 + N_RANDOM))
    curves = compute(say("Taking tokens away"), cost, _curves, model, trace, state.kind, mode, maps)
    record(curves, Call(faithfulness, model, trace, [curve.name for curve in curves[:-2]], mode=mode, kind=state.kind))
    if math.isnan(curves[0].comprehensiveness[0].value):
        st.info(say("No step can be judged: none has two tokens to choose from, one of which matters."), icon=":material/info:")
        return
    own, (cause, random) = curves[0], curves[-2:]
    without_own, without_cause, without_random = (curve.comprehensiveness[0].value for curve in (own, cause, random))
    words = say(
        "Without the token that {name} looks at most, {without_own} of the probability of what was "
        "written is lost; without the one that matters most {without_cause}, without a random one "
        "{without_random}. With that token alone {value} is lost, with a random one alone "
        "{value2}.",
        name=own.name,
        without_own=percent_words(without_own),
        without_cause=percent_words(without_cause),
        without_random=percent_words(without_random),
        value=percent_words(own.sufficiency[0].value),
        value2=percent_words(random.sufficiency[0].value),
    )
    st.markdown(literal(words))
    alt = say("Probability lost by k. {words}", words=words)
    figure = chart.draw(figures.faithfulness, curves, key="trial-curves", words=alt, file="faithfulness")
    if display_options.current().is_large:
        return
    rows = [
        {
            say("order"): curve.name,
            "k": k,
            say("lost without them"): without.value,
            say("lost with them alone"): alone.value,
        }
        for curve in curves
        for k, without, alone in zip(KS, curve.comprehensiveness, curve.sufficiency, strict=True)
    ]
    with st.expander(say("The numbers")):
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    st.caption(
        say(
            "Of this run, tokens taken away by {mode}; special tokens always stay. A single run has no interval.",
            mode=say(mode),
        )
    )
    code.show(figure, key="code_of_tab")


def _curves(
    model: LoadedModel, trace: Trace, kind: Kind, mode: str, maps: tuple[str, ...], *, on_progress: OnProgress | None = None
) -> tuple[MeanCurve, ...]:
    """The curves of these maps of the run, of the cause's own order and of a random one."""
    given = list(maps)
    for name in (name for name in maps if name in METHODS):
        try:
            attribute(model, trace, name, kind=kind)
        except OptionError:  # the model cannot give this measure
            given.remove(name)
    return faithfulness(model, trace, given, mode=mode, kind=kind, on_progress=on_progress)
