"""The fold *How it learned* of the page Train: one text's attention at each snapshot of a model's training."""

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import streamlit as st

from transformer_viz import language
from transformer_viz.addresses import map_address
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, TransformerVizError
from transformer_viz.figures.figure_data import plain
from transformer_viz.figures.training import training_playback
from transformer_viz.language import later, say, sentences
from transformer_viz.learn.covers import Cover
from transformer_viz.terms import Kind, row_labels
from transformer_viz.trace.trace import Trace
from transformer_viz.training.result import TrainingSnapshot
from transformer_viz.views.cache import model_list, runs
from transformer_viz.views.components import bar, code, lesson_card, pictures, style, term_tips, viewer
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call, record
from transformer_viz.views.state import display_options, focus, link
from transformer_viz.views.train.picture import content

Moments = tuple[TrainingSnapshot, ...]
PAGE = "train"
_MOST_OFFERED = 4


@dataclass(frozen=True)
class View:
    """The view of a training's moments that a link can say; `moment` is called by its step of training, all others count from
    0."""

    kind: Kind
    layer: int
    head: int
    moment: int
    position: int

    @classmethod
    def read(cls, found: Moments, checkpoint: Checkpoint) -> "View":
        """From the session, the link or by default, each brought into the range of these moments."""
        last = found[-1].forced
        focus.start_place(last, checkpoint, combined=False)
        moment = link.option("moment", {moment.step: str(moment.step) for moment in found}, found[-1].step)
        position, state = link.option("position", _in_link(last), said=lambda at: _positions(last)[at]), st.session_state
        return cls(state.kind, state.layer, state.head, moment, position)

    def place(self, found: Moments) -> int:
        """The index of the moment; the last one where it is not among these."""
        steps = [moment.step for moment in found]
        return steps.index(self.moment) if self.moment in steps else len(found) - 1


def show(*, is_open: bool) -> None:
    """Draws the fold with a training's snapshots; closed, it computes nothing, so that the page above need not wait.

    Args:
        is_open: whether the fold is open where the link says nothing.
    """
    with link.expander(say("How it learned"), key="learned", default=is_open, icon=":material/history:") as fold:
        if fold.open:
            _show()


def _show() -> None:
    chosen, state = bar.show("train"), st.session_state
    checkpoint = chosen.checkpoint
    if checkpoint is None:
        if state.checkpoint in model_list.models():
            _offer_others(state.checkpoint)
        return
    if display_options.is_hidden(later("The moments of a training")):
        return
    if not model_list.has_snapshots(checkpoint):
        _offer_others(checkpoint.name, checkpoint.task.name)
        return
    moments = bar.made(chosen, checkpoint, lambda: runs.replay(checkpoint, chosen.text))
    if moments is None:
        return
    positions = _positions(moments[-1].forced)
    view = View.read(moments, checkpoint)
    # Differs from replay to replay, in the session and in the browser.
    seconds = [(moment.step, moment.forced.made_by.get("seconds")) for moment in moments]
    replay = repr((moments[0].forced.source, checkpoint.name, moments[0].forced.made_by.get("device"), seconds))
    run = hashlib.sha256(replay.encode()).hexdigest()[:12]
    begins = lesson_card.at_start("moment")
    opened = next((moment for moment in moments if str(moment.step) == begins), moments[view.place(moments)])
    covered = lesson_card.ask(opened.forced, checkpoint, written=opened.written)
    if covered is not None:
        moments = _under(covered.cover, moments, opened)
        run += "-covered"
    looks, words = style.figure_style(), "" if covered is None else covered.words
    options: dict[str, Any] = {"covered": words, "terms": term_tips.meanings()}
    made = partial(content, moments, positions, looks, term_tips.mark, **options)
    viewer.show_learned(
        moments[0].forced, (run, looks, words, len(moments), language.current()), vars(view), run, made, chosen, page=PAGE
    )
    if not chosen.is_large and covered is None:
        now = focus.Focus(run, view.kind, view.layer, view.head, view.place(moments))
        trace = record(moments[now.step].forced, Call("trace = {}.forced", moments[now.step]))
        at = map_address(now.kind, now.layer, now.head)
        playback = Call(plain(training_playback), moments, at, now.step, view.position, style=looks)
        code.show(playback, *pictures.mosaic_calls(trace, chosen, now).values(), key="code_of_moments")


def _positions(last: Trace) -> list[str]:
    """Names each position."""
    rows = row_labels(last.target_tokens, last.output_tokens)
    return [say("candidates at {row}", row=rows[t]) for t in range(len(last.steps))]


def _in_link(last: Trace) -> dict[int, str]:
    """The same as a link has it."""
    rows = row_labels(last.target_tokens, last.output_tokens)
    return {t: f"candidates at {rows[t]}" for t in range(len(last.steps))}


def _under(cover: Cover, moments: Moments, asked: TrainingSnapshot) -> Moments:
    """The moments up to the one that is asked about, of which a part is covered; later ones would tell."""
    before = tuple(takewhile(lambda one: one is not asked, moments))
    # Which token is right is told; where it is looked at is not.
    forced = replace(cover.of(asked.forced), alignment=asked.forced.alignment)
    return (*before, replace(asked, written=cover.of(asked.written), forced=forced))


# ---- without snapshots


def _offer_others(checkpoint: str, task: str = "reverse") -> None:
    names = runs.replayable()
    none = say(
        "**{checkpoint}** has no snapshots of its training, so its learning cannot be replayed.", checkpoint=literal(checkpoint)
    )
    st.info(sentences([none, *([say("These models have some:")] if names else [])]), icon=":material/history:")
    with st.container(horizontal=True, key="replay-offer"):
        for name in names[:_MOST_OFFERED]:
            st.button(literal(name), key=f"replay-{name}", on_click=_switch, args=(name,), icon=":material/play_arrow:")
    st.markdown(say("This command trains a model and keeps 12 snapshots:"))
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
