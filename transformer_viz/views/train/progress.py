"""The progress of a training on the page Train: its curves, how one head's attention forms, its buttons, and the trash."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pandas as pd
import streamlit as st

from transformer_viz import checkpoints, figures, server_settings
from transformer_viz.addresses import map_address
from transformer_viz.errors import TransformerVizError
from transformer_viz.language import later, say
from transformer_viz.numbers_in_words import duration_words, percent_words
from transformer_viz.terms import head_title
from transformer_viz.text_display import display_text
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode import decode
from transformer_viz.training.reporter import Request, State
from transformer_viz.training.result import Row, best_head
from transformer_viz.views.cache import model_list
from transformer_viz.views.components import chart, screen
from transformer_viz.views.components.markdown import literal, of_run
from transformer_viz.views.server import jobs, trash, visitors
from transformer_viz.views.server.jobs import Job, Visitor
from transformer_viz.views.state import link

_MOST_MOMENTS = 12
Badge = tuple[str, str, Literal["gray", "blue", "orange", "green", "red"]]
"""Its words, icon and colour."""
_STATE_WORDS: dict[State, Badge] = {
    "starting": (later("starting"), ":material/hourglass_top:", "gray"),
    "running": (later("training"), ":material/play_arrow:", "blue"),
    "paused": (later("paused"), ":material/pause:", "orange"),
    "finished": (later("finished"), ":material/check:", "green"),
    "failed": (later("did not finish"), ":material/error:", "red"),
}
_REQUESTED: dict[Request, Badge] = {
    "pause": (later("pausing after this step …"), ":material/hourglass_bottom:", "orange"),
    "stop": (later("stopping: the model is evaluated and kept …"), ":material/hourglass_bottom:", "orange"),
}
"""The badge from a click until the training's process has obeyed."""


def visitor() -> Visitor:
    """The browser of this session. One that keeps no cookies is the same for as long as its page stays open."""
    context = st.context
    token = visitors.token_in(context.cookies)
    if token is None:
        token = st.session_state.setdefault("visitor_token", visitors.new_token())
    return Visitor(token, visitors.is_owner(context.cookies, context.headers, context.ip_address))


def show(job: Job) -> None:
    """Draws one training; call it in a fragment that runs again while the training does."""
    state, rows = job.state, job.events()
    _header(job, state, rows)
    who = visitor()
    may_manage = who.may_manage(job.mark)
    with st.container(horizontal=True, vertical_alignment="center"):
        # `jobs` checks who may do this again when one is pressed.
        if may_manage and state in jobs.AT_WORK:
            for label, icon, request, words in (
                (say("Pause"), "pause", "pause", say("Stops for now and keeps everything; you can go on later")),
                (say("Stop and keep"), "stop", "stop", say("Ends the training at this step; the model is evaluated and kept")),
            ):
                ask: Any = {"on_click": _do, "args": (job.request, request), "disabled": job.requested is not None}
                st.button(label, icon=f":material/{icon}:", help=words, **ask)
        if may_manage and state in ("paused", "failed") and server_settings.trains():
            st.button(say("Go on"), icon=":material/play_arrow:", on_click=_do, args=(jobs.resume, job), type="primary")
        if state == "finished":
            st.button(say("Open in Explore"), icon=":material/grid_on:", on_click=_open, args=(job,), type="primary")
        if may_manage:
            # Always at the other end, so that no click meant for another button lands on it.
            st.space("stretch")
            icon, name = ":material/delete:", literal(job.name)
            if state in jobs.AT_WORK:
                st.button(
                    say("Discard …"), icon=icon, disabled=True, help=say("Stop the training first"), key="discard-not-yet"
                )
            else:
                with st.popover(say("Discard …"), icon=icon, key=f"discard-{job.name}"):
                    st.markdown(
                        say("Discard **{name}** and its checkpoint? Both stay in the trash below for a day.", name=name)
                    )
                    st.button(say("Discard {name}", name=name), on_click=_do, args=(trash.discard, job), key="discard-yes")
    if not may_manage:
        st.caption(
            say("Started in another browser. Only there, or as the owner of this server, can one pause, stop or discard it.")
        )
    elif job.mark != who.mark:
        st.caption(say("Started in another browser. You may manage it as the owner of this server."))
    if said := st.session_state.pop("train_said", None):
        st.error(literal(said), icon=":material/error:")
    if rows:
        words = say("Loss, and the share of held-out texts that come out right, at each step; the table below has the numbers")
        chart.draw(figures.training, rows, job.recipe.steps, key="training-chart", words=words, file="training")
        with st.expander(say("The numbers")):
            st.dataframe(pd.DataFrame(rows).drop(columns="at", errors="ignore"), height=240, hide_index=True)
    _attention(job, rows)
    if state == "failed" and (words := job.log()):
        st.error(say("The training ended with an error. Its last lines:"))
        st.code(words[-800:], language=None)


def _header(job: Job, state: State, rows: Sequence[Row]) -> None:
    words, icon, colour = _STATE_WORDS[state]
    step = rows[-1]["step"] if rows else 0
    if state in jobs.AT_WORK and (requested := job.requested):
        words, icon, colour = _REQUESTED[requested]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{literal(job.name)}**")
        st.badge(say(words), icon=icon, color=colour)
        st.caption(literal(f"{job.recipe.task}, {job.recipe.variant}"))
    text = say("step {step:,} of {steps:,}", step=step, steps=job.recipe.steps)
    recent = rows[-6:]
    if state == "running" and len(recent) > 1 and "at" in recent[0]:
        # At the pace of the last rows.
        pace = (recent[-1]["at"] - recent[0]["at"]) / max(1, step - recent[0]["step"])
        left = pace * (job.recipe.steps - step) - (time.time() - recent[-1]["at"])
        text = say("{done} · about {time} left", done=text, time=duration_words(max(1.0, left)))
    held_out = [row["held_out"] for row in rows if row.get("held_out") is not None]
    if held_out:
        text = say("{done} · {share} of held-out texts right", done=text, share=percent_words(held_out[-1], 1))
    st.progress(min(1.0, step / job.recipe.steps), text=text)


def show_trash() -> None:
    """Lists what this visitor discarded in the last day, with buttons that put it back."""
    entries = [entry for entry in trash.discarded() if visitor().may_manage(entry.job.mark)]
    if not entries:
        return
    with st.expander(say("Trash: {count} discarded", count=len(entries)), icon=":material/delete:"):
        for entry in entries:
            with st.container(horizontal=True, vertical_alignment="center"):
                hours = max(1, math.ceil(entry.seconds_left / 3600))
                st.markdown(
                    say("**{name}**, removed for good in {hours} h", name=literal(entry.job.name), hours=hours), width="stretch"
                )
                key = str(entry.since)
                st.button(say("Put back"), icon=":material/undo:", on_click=_do, args=(entry.put_back,), key=f"back-{key}")
                st.button(say("Remove for good"), on_click=_do, args=(entry.remove,), key=f"remove-{key}", type="tertiary")


def _attention(job: Job, rows: Sequence[Row]) -> None:
    """Draws one head's map at several steps of the training, on a text of the visitor's choice."""
    known = checkpoints.snapshots(job.checkpoint)
    if not known:
        st.caption(say("The first maps appear as soon as the model has been made."))
        return
    steps = list(known)
    if len(steps) > _MOST_MOMENTS:
        # Evenly by the root of the step, with the first and the last: by the step itself the beginning is missed, by its
        # logarithm the end.
        roots = [math.sqrt(steps[-1]) * i / (_MOST_MOMENTS - 1) for i in range(_MOST_MOMENTS)]
        steps = sorted({min(steps, key=lambda step: abs(math.sqrt(step) - root)) for root in roots})
    try:
        trained = model_list.load(job.name, "cpu")
        state = st.session_state
        probe = (state.get("train_probe") or "").strip() or trained.task.examples()[0].text
        moments = [(step, _moment(job.name, step, probe)) for step in steps]
    except TransformerVizError as error:
        st.info(literal(str(error)), icon=":material/keyboard:")
        return
    layer, head = best_head(rows)
    st.markdown(
        say(
            "**Cross-attention, {layer}**, reading **{probe}**, as it forms:",
            layer=head_title(layer, head),
            probe=of_run(probe),
        )
    )
    said = [
        (say("step {step:,}: {text}", step=step, text=display_text(run.text) or say("(nothing)")), forced)
        for step, (run, forced) in moments
    ]
    per_row = 2 if screen.is_narrow() else 6
    words = say("One head's cross-attention at several steps of the training; rows are the output, columns the source")
    chart.draw(figures.snapshot_maps, said, map_address("cross", layer, head), per_row=per_row, key="filmstrip", words=words)
    st.caption(
        say(
            "Above each map: the step, and what the model writes by itself then. Rows are the right answer, columns the source."
        )
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def _moment(name: str, step: int, text: str) -> tuple[Trace, Trace]:
    """The run that the model of one step writes, and its run on the right answer; the first for both where there is none."""
    then = checkpoints.load_snapshot(model_list.load(name, "cpu"), step)
    run = decode(then, text, max_length=min(64, then.task.max_target_length + 1))
    known = run.expected_tokens
    return run, run if known is None else decode(then, text, target=known[:-1])


def _do(act: Callable[..., None], *arguments: object) -> None:
    """Calls `act` for this visitor; an error is shown in the next run of the page."""
    try:
        act(*arguments, visitor())
    except TransformerVizError as error:
        st.session_state.train_said = str(error)
    model_list.entries.clear()


def _open(job: Job) -> None:
    link.reset("text")
    st.session_state.update(checkpoint=job.name, text_checkpoint=job.name, train_open=True)
    model_list.entries.clear()
