"""The fold *How it learned* of the page Train: one text's attention at each snapshot of a model's training."""

import hashlib
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

import streamlit as st

from transformer_viz.addresses import map_address
from transformer_viz.errors import InputError, TransformerVizError, join_names
from transformer_viz.export.strips import answer_mark, output_strip, source_strip
from transformer_viz.figures.figure_data import plain
from transformer_viz.learn.covers import Cover
from transformer_viz.terms import KIND_TITLES, row_labels
from transformer_viz.text_display import display_text
from transformer_viz.trace.hidden_answer import COVERED
from transformer_viz.training.figures import training_playback
from transformer_viz.training.result import TrainingSnapshot, certainty, course, snapshot_sentence, when
from transformer_viz.views.cache import model_list, runs
from transformer_viz.views.components import (
    bar,
    chart,
    code,
    lesson_card,
    pictures,
    player,
    screen,
    style,
    term_tips,
)
from transformer_viz.views.components.lesson_card import Covered
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import display_options, focus, link

Moments = tuple[TrainingSnapshot, ...]
_MOST_OFFERED = 4
_FIXED = {
    "answer": "Every moment reads the right answer, so the rows stay the same.",
    "final output": "The right answer is not known, so every moment reads what the finished model writes.",
}


def show(*, is_open: bool) -> None:
    """Draws the fold with a training's snapshots; closed, it computes nothing, so that the page above need not wait.

    Args:
        is_open: whether the fold is open where the link says nothing.
    """
    with link.expander("How it learned", key="learned", default=is_open, icon=":material/history:") as fold:
        if fold.open:
            _show()


def _show() -> None:
    chosen, state = bar.show("train"), st.session_state
    checkpoint = chosen.checkpoint
    if checkpoint is None:
        if state.checkpoint in model_list.models():
            _offer_others(state.checkpoint)
        return
    if display_options.is_hidden("The moments of a training"):
        return
    if not model_list.has_snapshots(checkpoint):
        _offer_others(checkpoint.name, checkpoint.task.name)
        return
    found = bar.made(chosen, checkpoint, lambda: runs.replay(checkpoint, chosen.text))
    if found is None:
        return
    last = found[-1].forced
    # Kind, layer, head, moment and position from the link or by default, each brought into range.
    focus.start_place(last, checkpoint, combined=False)
    steps = [str(moment.step) for moment in found]
    link.hidden("moment", steps.__contains__, join_names(steps))
    rows = row_labels(last.target_tokens, last.output_tokens)
    link.option("position", {t: f"candidates at {rows[t]}" for t in range(len(last.steps))})
    # Differs from replay to replay, in the session and in the browser.
    seconds = [(moment.step, moment.forced.made_by.get("seconds")) for moment in found]
    replay = repr((found[0].forced.source, checkpoint.name, found[0].forced.made_by.get("device"), seconds))
    state.replay_run = hashlib.sha256(replay.encode()).hexdigest()[:12]
    begins = lesson_card.at_start("moment")
    asked = next((moment for moment in found if str(moment.step) == begins), found[_place(found)])
    covered = lesson_card.ask(asked.forced, checkpoint, written=asked.written)
    if covered is not None:
        found = _under(covered.cover, found, asked)
        state.replay_run += "-covered"
    now, position = focus.Focus(state.replay_run, state.kind, state.layer, state.head, _place(found)), state.position
    with st.container(key="player-area"):
        player.show(_player_data(found, now, position, large=chosen.is_large, covered=covered), partial(_heard, found))
    # Kind, layer, head, and the row whose candidates are shown; on a phone the latter has a line of its own.
    with st.container(horizontal=not screen.is_narrow(), vertical_alignment="center", key="replay-boxes"):
        focus.controls(last, combined=False)
        link.selectbox("Candidates of position", key="position", width=230, label_visibility="collapsed")
    with st.container(key=player.FOCUS_KEY):
        # The player shows its own moment of it: another one is drawn in the browser, and nothing is sent.
        at = map_address(now.kind, now.layer, now.head)
        looks: Any = {"style": style.figure_style(), **({} if covered is None else {"with_answer": False})}
        last_of_all = Call(plain(training_playback), found, at, len(found) - 1, position, **looks)
        words = (
            f"{KIND_TITLES[now.kind]} of the focus head at this moment of training, every head's way through the training, "
            "and the candidates of one position. The sentence above describes it."
        )
        figure = last_of_all()
        chart.show(figure, "film-chart", words, run=now.run, file="film")
    st.caption(f"All heads. {when(found[now.step].step)}, reading the same target:")
    trace = record(found[now.step].forced, Call("trace = {}.forced", found[now.step]))
    pictures.mosaics(trace, chosen, now, partial(_go_to_tile, found))
    if not chosen.is_large and covered is None:
        playback = Call(plain(training_playback), found, at, now.step, position, style=style.figure_style())
        code.show(playback, *pictures.mosaic_calls(trace, chosen, now).values(), key="code_of_moments")


def _place(found: Moments) -> int:
    """The index of the moment in focus; the last one where the link names none."""
    said = st.session_state.moment
    return next((place for place, moment in enumerate(found) if str(moment.step) == said), len(found) - 1)


def _under(cover: Cover, moments: Moments, asked: TrainingSnapshot) -> Moments:
    """The moments up to the one that is asked about, of which a part is covered; later ones would tell."""
    before = tuple(takewhile(lambda one: one is not asked, moments))
    # Which token is right is told; where it is looked at is not.
    forced = replace(cover.of(asked.forced), alignment=asked.forced.alignment)
    return (*before, replace(asked, written=cover.of(asked.written), forced=forced))


def _player_data(
    moments: Moments, at: focus.Focus, position: int, *, large: bool, covered: Covered | None = None
) -> dict[str, Any]:
    """The player's data: for each moment a button, a sentence and what the model writes; what is covered is the last one's."""
    kind, layer, head = at.kind, at.layer, at.head
    assert isinstance(head, int)
    found = course(moments, kind)
    looks = "the source token that looks" if kind == "encoder" else "the token to be written"
    ring = " · ring = the right token" if found.measure == "mass" else ""
    buttons = []
    for one in moments:
        sure, is_right = certainty(one), one.written.is_right
        goal, verdict = "right" if one.target == "answer" else "final", {None: "", False: ", wrong", True: ", right"}[is_right]
        writes = f"step {one.step:,} of training: writes {display_text(one.written.text) or 'nothing'}{verdict}"
        title = f"{writes}; mean probability of the {goal} tokens {sure:.3f}"
        class_ = "wrong" if is_right is False else ""
        buttons.append({"text": f"{one.step:,}", "title": title, "class": class_, "tint": round(sure, 4)})
    sentences = [term_tips.mark(snapshot_sentence(one, i, found, kind, layer, head)) for i, one in enumerate(moments)]
    answers: list[Any] = [answer_mark(one.written, step_name="row") for one in moments]
    if covered is not None:
        step, answers[-1] = moments[-1].step, {"class": "", "words": ()}
        buttons[-1] = {"text": f"{step:,}", "title": COVERED, "class": "covered", "tint": 0}
        sentences[-1] = [("strong", f"{when(step)}: "), ("plain", covered.words)]
    # The source position with the most weight in the row whose candidates are shown.
    rows = [one.forced.attentions[kind].head(layer, head)[position] for one in moments] if kind == "cross" else []
    return {
        "run": at.run,
        "step": at.step,
        "moved": link.times_opened(),
        "hint": term_tips.mark(f"row = {looks} · column = the token looked at{ring}. {_FIXED[moments[0].target]}"),
        "terms": term_tips.meanings(),
        "labels": {"output": "steps of training, one button a moment", "slider": "Moment of training"},
        "large": large,
        "dark": style.theme() == "dark",
        "source": source_strip(moments[0].forced),
        "output": buttons,
        # "step" is a step of training here, so a step of the output is called a row.
        "answers": answers,
        "written": [output_strip(one.written) for one in moments],
        "sentences": sentences,
        "looked": [int(row.argmax()) if row.any() else None for row in rows] or [None] * len(moments),
    }


def _heard(found: Moments, report: dict[str, Any]) -> None:
    """Moves to the moment that the player reports."""
    if report.get("run") == st.session_state.get("replay_run"):
        _go_to(report.get("step"), found)


def _go_to_tile(found: Moments, tile: dict[str, Any]) -> None:
    """A clicked tile becomes the focus, at the moment that the player has reached."""
    focus.go_to_tile({**tile, "step": None}, found[-1].forced)
    _go_to(tile.get("step"), found)


def _go_to(place: object, found: Moments) -> None:
    """Moves to a moment that the browser reports, if this replay has it."""
    if isinstance(place, int) and place in range(len(found)):
        st.session_state.moment = str(found[place].step)


# ---- without snapshots


def _offer_others(checkpoint: str, task: str = "reverse") -> None:
    names = runs.replayable()
    words = f"**{literal(checkpoint)}** has no snapshots of its training, so its learning cannot be replayed."
    st.info(words + (" These models have some:" if names else ""), icon=":material/history:")
    with st.container(horizontal=True, key="replay-offer"):
        for name in names[:_MOST_OFFERED]:
            st.button(literal(name), key=f"replay-{name}", on_click=_switch, args=(name,), icon=":material/play_arrow:")
    st.markdown("This command trains a model and keeps 12 snapshots:")
    st.code(f"python -m transformer_viz train {task} --snapshots 12", language="bash")


def _switch(name: str) -> None:
    """Changes to another checkpoint; a text that it cannot read is replaced by its first example."""
    state = st.session_state
    state.checkpoint = name
    try:
        task = model_list.load(name, state.get("device", "auto")).task
    except TransformerVizError:
        return  # the bar says why
    try:
        task.read(state.get("text", bar.DEFAULT_TEXT))
    except InputError:
        state.text = task.examples()[0].text
