"""Explore: one run, step by step, with every layer's and head's attention and every mask."""

from dataclasses import replace

import streamlit as st

from transformer_viz import figures
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, TransformerVizError
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import bar, charts, focus, link, model, player, style, tables
from transformer_viz.views.parts.markdown import literal

TITLE, ICON, ORDER = "Explore", ":material/grid_on:", 0

_LEGEND: dict[Kind, str] = {
    "encoder": "row = the source letter that looks · column = the letter looked at",
    "decoder": "row = the symbol being written · column = the symbol looked at",
    "cross": "row = the symbol being written · column = the symbol looked at · ring = the true letter",
}
_CONFIG = {"displayModeBar": False, "responsive": True, "doubleClick": False, "scrollZoom": False}


def show() -> None:
    """The page."""
    chosen = bar.show()
    if chosen.checkpoint is None:
        return
    trace = _decoded(chosen, chosen.checkpoint)
    if trace is None:
        link.write(bar.link_values(chosen))
        return
    focus.start(trace, chosen.checkpoint)
    _say_complaints()
    with st.container(key="player-area"):
        _player(trace, chosen, chosen.checkpoint, focus.current())
    focus.controls(trace)
    with st.container(key=player.FOCUS_KEY):
        _focus_map(trace, chosen)
    _mosaics(trace, chosen)
    charts.show(trace.kinds, on_tile=lambda: focus.go_to_tile(charts.clicked_tile(), trace))
    if not chosen.is_large:
        _tables(trace, chosen.checkpoint)


def _decoded(chosen: bar.Bar, checkpoint: Checkpoint) -> Trace | None:
    """The run, or None after saying why there is none; what was typed stays in the box."""
    try:
        return model.run(checkpoint, chosen.device, chosen.text)
    except InputError as error:
        say = st.error if chosen.text else st.info
        say(f"{literal(str(error))} Or try one of these:", icon=":material/keyboard:")
        bar.offer_examples(checkpoint)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
    return None


@st.fragment
def _player(trace: Trace, chosen: bar.Bar, checkpoint: Checkpoint, at: focus.Focus) -> None:
    """A fragment, so that a rested step reruns these lines only, and redraws no chart.

    Its kind, layer and head are those of the page's last whole run. A report that was on its way while
    a click moved the focus still carries the values of the boxes from before the click.
    """
    now = replace(at, step=st.session_state.step)
    looks = {"large": chosen.is_large, "dark": style.theme() == "dark", "with_answer": chosen.with_answer}
    content = player.data(trace, now.run, now.kind, now.layer, now.head, now.step, hint=_LEGEND[now.kind], **looks)
    player.show(content, on_step=lambda: _step_rested(trace))
    _write_link(trace, chosen, checkpoint, now)


def _step_rested(trace: Trace) -> None:
    report = player.rested()
    if report.get("run") == st.session_state.get("run"):
        focus.go_to_step(report.get("step"), trace)


def _focus_map(trace: Trace, chosen: bar.Bar) -> None:
    now, theme, narrow = focus.current(), style.theme(), charts.is_narrow()
    looks = {"large": chosen.is_large, "with_answer": chosen.with_answer, "narrow": narrow}
    figure = figures.player(trace, now.kind, now.layer, now.head, now.step, theme=theme, **looks)
    # By these the browser knows whether a redrawn figure is another one, and of which run.
    identity = "-".join(map(str, (now.run, now.kind, now.layer, now.head, theme, *looks.values())))
    figure.layout.meta = {**figure.layout.meta, "run": now.run, "id": identity}
    st.plotly_chart(figure, key="focus-chart", theme=None, config=_CONFIG, alt=_alt(trace, now.kind))


def _alt(trace: Trace, kind: Kind) -> str:
    size = f"{len(trace.queries(kind))} query rows by {len(trace.keys(kind))} key columns"
    return f"{KIND_TITLES[kind]} of the focus head, {size}, and the candidates of this step. The sentence above says it."


def _mosaics(trace: Trace, chosen: bar.Bar) -> None:
    now = focus.current()
    for column, kind in zip(st.columns(len(trace.kinds)), trace.kinds, strict=True):
        with column, st.container(key=f"{player.MOSAIC_KEY}-{kind}"):
            tile = (now.layer, now.head) if kind == now.kind else None
            figure = figures.mosaic(trace, kind, tile, theme=style.theme(), large=chosen.is_large)
            figure.layout.meta = {**figure.layout.meta, "run": now.run}
            words = f"All layers and heads of the {KIND_TITLES[kind]}. Choose one with the layer and head boxes."
            st.plotly_chart(figure, key=f"mosaic-chart-{kind}", theme=None, config=_CONFIG, alt=words)


@st.fragment
def _tables(trace: Trace, checkpoint: Checkpoint) -> None:
    """A fragment, so that another tab redraws no picture above."""
    tables.show(trace, checkpoint, style.theme())


def _say_complaints() -> None:
    """What was wrong with the link, until the person goes on to another run or focus."""
    now = focus.current()
    seen = (now.run, now.kind, now.layer, now.head)
    if st.session_state.setdefault("complained_at", seen) != seen:
        link.complaints().said.clear()
    for said in link.complaints().said:
        st.warning(literal(said), icon=":material/link_off:")


def _write_link(trace: Trace, chosen: bar.Bar, checkpoint: Checkpoint, now: focus.Focus) -> None:
    link.write({**bar.link_values(chosen), **focus.link_values(trace, checkpoint, now)})
