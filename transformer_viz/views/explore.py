"""Explore: one run, step by step, with every layer's and head's attention and every mask."""

import hashlib

import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.alignment import best_head
from transformer_viz.analysis.heads import COMBINED, Head, n_layers_heads
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.errors import InputError, TransformerVizError
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES, Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import bar, charts, link, model, player, tables
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
    trace = _decoded(chosen)
    if trace is None:
        _write_link(chosen, chosen.checkpoint, None)
        return
    _start_focus(trace, chosen.checkpoint)
    _say_complaints()
    with st.container(key="player-area"):
        _player(trace, chosen)
    _focus_controls(trace)
    with st.container(key=player.FOCUS_KEY):
        _focus_map(trace, chosen)
    _mosaics(trace, chosen)
    charts.show(trace.kinds, on_tile=_tile_clicked)
    if not chosen.is_large:
        _tables(trace, chosen.checkpoint)
    _write_link(chosen, chosen.checkpoint, trace)


def _decoded(chosen: bar.Bar) -> Trace | None:
    """The run, or None after saying why there is none; what was typed stays in the box."""
    assert chosen.checkpoint is not None
    try:
        return model.run(chosen.checkpoint, chosen.device, chosen.text)
    except InputError as error:
        say = st.error if chosen.text else st.info
        say(f"{literal(str(error))} Or try one of these:", icon=":material/keyboard:")
        bar.offer_examples(chosen.checkpoint)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
    return None


# ---- focus: kind, layer, head, step


def _start_focus(trace: Trace, checkpoint: Checkpoint) -> None:
    """First values from the link, and values that this run does not have brought back into range."""
    state = st.session_state
    if "kind" not in state:
        state.kind = link.choice("kind", link.take("kind"), trace.kinds, "cross" if "cross" in trace.kinds else trace.kinds[0])
    if state.kind not in trace.kinds:
        state.kind = trace.kinds[-1]
    n_layers, n_heads = n_layers_heads(trace, state.kind)
    default_layer, default_head = _default_head(checkpoint, state.kind)
    if "layer" not in state:
        state.layer = link.number("layer", link.take("layer"), n_layers, default_layer)
        state.head = link.head(link.take("head"), n_heads, default_head)
    if state.layer >= n_layers or (isinstance(state.head, int) and state.head >= n_heads):
        state.layer, state.head = default_layer, default_head
    run = _fingerprint(trace)
    if "run" not in state:
        state.step = link.number("step", link.take("step"), len(trace.steps), _default_step(trace))
    elif state.run != run:
        state.step = _default_step(trace)
    state.run = run


def _default_head(checkpoint: Checkpoint, kind: Kind) -> tuple[int, Head]:
    """The head that the checkpoint's own evaluation found best, for cross-attention."""
    best = checkpoint.metrics.get("best_head") if kind == "cross" else None
    return (best["layer"], best["head"]) if best else (0, 0)


def _default_step(trace: Trace) -> int:
    """The last letter: the whole way is drawn, and the sentence still speaks of a letter."""
    return max(0, len(trace.steps) - (2 if trace.finished == "end" else 1))


def _fingerprint(trace: Trace) -> str:
    made_by = trace.made_by
    words = "\0".join([trace.source, str(made_by.get("checkpoint")), str(made_by.get("device")), str(made_by.get("seconds"))])
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def _focus() -> tuple[Kind, int, Head, int]:
    state = st.session_state
    return state.kind, state.layer, state.head, state.step


def _focus_controls(trace: Trace) -> None:
    n_layers, n_heads = n_layers_heads(trace, st.session_state.kind)
    with st.container(horizontal=True, vertical_alignment="center", key="focus-controls"):
        st.segmented_control(
            "Attention",
            trace.kinds,
            key="kind",
            format_func=lambda kind: KIND_TITLES[kind],
            label_visibility="collapsed",
            required=True,
        )
        st.selectbox(
            "Layer",
            range(n_layers),
            key="layer",
            format_func=lambda n: f"layer {n + 1}",
            label_visibility="collapsed",
            width=110,
        )
        st.selectbox(
            "Head", [*range(n_heads), *COMBINED], key="head", format_func=_head_words, label_visibility="collapsed", width=130
        )
        best = best_head(trace)
        if best is not None:
            layer, head, mass = best
            st.badge(
                f"best cross head: {layer + 1}·{head + 1}, {100 * mass:.0f} % on the true letter",
                icon=":material/target:",
                color="gray",
            )


def _head_words(head: Head) -> str:
    return f"head {head + 1}" if isinstance(head, int) else {"mean": "mean of heads", "max": "max of heads"}[head]


# ---- pictures


def _theme() -> ThemeName:
    return "dark" if st.context.theme.type == "dark" else "light"


@st.fragment
def _player(trace: Trace, chosen: bar.Bar) -> None:
    """A fragment, so that a rested step reruns these lines only, and redraws no chart."""
    kind, layer, head, step = _focus()
    content = player.data(
        trace,
        st.session_state.run,
        kind,
        layer,
        head,
        step,
        hint=_LEGEND[kind],
        large=chosen.is_large,
        dark=_theme() == "dark",
        with_answer=chosen.with_answer,
    )
    player.show(content, on_step=_step_rested)
    assert chosen.checkpoint is not None
    _write_link(chosen, chosen.checkpoint, trace)


def _step_rested() -> None:
    report = player.rested()
    if report.get("run") == st.session_state.get("run") and isinstance(report.get("step"), int):
        st.session_state.step = report["step"]


def _tile_clicked() -> None:
    tile = charts.clicked_tile()
    if tile:
        state = st.session_state
        state.kind, state.layer, state.head = tile["kind"], tile["layer"], tile["head"]
        state.step = tile["step"] if isinstance(tile.get("step"), int) else state.step


def _focus_map(trace: Trace, chosen: bar.Bar) -> None:
    kind, layer, head, step = _focus()
    narrow = charts.is_narrow()
    figure = figures.player(
        trace, kind, layer, head, step, theme=_theme(), large=chosen.is_large, with_answer=chosen.with_answer, narrow=narrow
    )
    looks = (kind, layer, head, _theme(), chosen.is_large, chosen.with_answer, narrow)
    identity = "-".join(map(str, (st.session_state.run, *looks)))
    figure.layout.meta = {**figure.layout.meta, "run": st.session_state.run, "id": identity}
    st.plotly_chart(figure, key="focus-chart", theme=None, config=_CONFIG, alt=_alt(trace, kind))


def _alt(trace: Trace, kind: Kind) -> str:
    size = f"{len(trace.queries(kind))} query rows by {len(trace.keys(kind))} key columns"
    return f"{KIND_TITLES[kind]} of the focus head, {size}, and the candidates of this step. The sentence above says it."


def _mosaics(trace: Trace, chosen: bar.Bar) -> None:
    kind, layer, head, _ = _focus()
    for column, shown in zip(st.columns(len(trace.kinds)), trace.kinds, strict=True):
        with column, st.container(key=f"{player.MOSAIC_KEY}-{shown}"):
            chosen_tile = (layer, head) if shown == kind else None
            figure = figures.mosaic(trace, shown, chosen_tile, theme=_theme(), large=chosen.is_large)
            figure.layout.meta = {**figure.layout.meta, "run": st.session_state.run}
            st.plotly_chart(
                figure,
                key=f"mosaic-chart-{shown}",
                theme=None,
                config=_CONFIG,
                alt=f"All layers and heads of the {KIND_TITLES[shown]}. Choose one with the layer and head boxes.",
            )


@st.fragment
def _tables(trace: Trace, checkpoint: Checkpoint) -> None:
    """A fragment, so that another tab redraws no picture above."""
    tables.show(trace, checkpoint, _theme())


# ---- link


def _say_complaints() -> None:
    """What was wrong with the link, until the person goes on to another run or focus."""
    seen = (st.session_state.run, *_focus()[:3])
    if st.session_state.setdefault("complained_at", seen) != seen:
        link.complaints().said.clear()
    for said in link.complaints().said:
        st.warning(literal(said), icon=":material/link_off:")


def _write_link(chosen: bar.Bar, checkpoint: Checkpoint, trace: Trace | None) -> None:
    state = st.session_state
    values: dict[str, str | None] = {
        "text": chosen.text if chosen.text != "reversethis" and len(chosen.text) <= link.LONGEST_TEXT else None,
        "checkpoint": checkpoint.name if checkpoint.name != bar.DEFAULT_CHECKPOINT else None,
    }
    if trace is not None:
        default_layer, default_head = _default_head(checkpoint, state.kind)
        values |= {
            "kind": state.kind if state.kind != "cross" else None,
            "layer": str(state.layer + 1) if (state.layer, state.head) != (default_layer, default_head) else None,
            "head": (state.head if isinstance(state.head, str) else str(state.head + 1))
            if (state.layer, state.head) != (default_layer, default_head)
            else None,
            "step": str(state.step + 1) if state.step != _default_step(trace) else None,
        }
    link.write(values)
