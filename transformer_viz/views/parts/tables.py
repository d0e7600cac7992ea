"""Below the pictures: what made the run, its heads graded, how far the model goes, masks, and all numbers."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES
from transformer_viz.trace.frame import to_frame
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import by_length, export, heads, limits, link, what_if
from transformer_viz.views.parts.export import n_weights

TABS = ("This run", "What if", "Heads", "By length", "Masks in force", "Numbers", "Export")
_OF_A_DECODING = ("What if", "By length")
_MOST_ROWS = 20_000
_MOST_WEIGHTS = 200_000
"""Up to which a table of all is made without being asked for."""


def start(trace: Trace) -> None:
    """The open tab and the tint, from the link or by default; before the link is written."""
    state = st.session_state
    if "tables" not in state:
        asked = "What if" if what_if.is_linked() else "Heads" if "want_tint" in state else TABS[0]
        state.tables = link.choice("tables", link.take("tables"), TABS, asked)
    heads.start(trace)


def link_values(trace: Trace) -> dict[str, str | None]:
    """What the URL says of the open tab and its controls; None is a default."""
    tab = st.session_state.get("tables")
    return {"tables": None if tab == TABS[0] else tab, **heads.link_values(trace), **what_if.link_values()}


def show(trace: Trace, checkpoint: Checkpoint, device: str, theme: ThemeName, *, of_a_decoding: bool = True) -> None:
    """Tabs; only the open one is made. A branch of a search has none that go on from a decoding, or speak of the model."""
    # With on_change="rerun" only the open tab is made. The masks' three charts would add 200 ms to every text.
    names = [name for name in TABS if of_a_decoding or name not in _OF_A_DECODING]
    made = st.tabs(names, key="tables" if of_a_decoding else "search_tables", on_change="rerun")
    for name, tab in zip(names, made, strict=True):
        with tab:
            if tab.open:
                _tab(name, trace, checkpoint, device, theme)


def _tab(name: str, trace: Trace, checkpoint: Checkpoint, device: str, theme: ThemeName) -> None:
    if name == "What if":
        what_if.show(trace, checkpoint, device, theme)
    elif name == "Heads":
        heads.show(trace, checkpoint, device, theme)
    elif name == "By length":
        by_length.show(checkpoint, device, theme)
    elif name == "Masks in force":
        _masks(trace, theme)
    elif name == "Numbers":
        _numbers(trace)
    elif name == "Export":
        export.show(trace, checkpoint, device, theme)
    else:
        if trace.made_by.get("strategy") != "beam":  # of a search, one branch is shown here; the page says its size
            limits.caption(trace)
        _run(trace)
        _model(checkpoint)


def _masks(trace: Trace, theme: ThemeName) -> None:
    st.caption("What each query (row) may look at (column), and why not. Taken from the run, not drawn from the rule.")
    for column, kind in zip(st.columns(len(trace.kinds)), trace.kinds, strict=True):
        figure = figures.mask(trace, kind, theme=theme)
        column.plotly_chart(
            figure, key=f"mask-{kind}", theme=None, config={"displayModeBar": False}, alt=f"Mask of the {KIND_TITLES[kind]}"
        )


def _numbers(trace: Trace) -> None:
    state = st.session_state
    here = to_frame(trace, state.kind, state.layer, state.head if isinstance(state.head, int) else None)
    st.caption("The focus, one row a weight. Layers, heads and positions count from 0 here, as in the file.")
    st.dataframe(here.head(_MOST_ROWS), height=320, hide_index=True)
    left, right, _ = st.columns([1, 1, 2])
    left.download_button(
        "CSV of the focus", here.to_csv(index=False).encode(), "attention-focus.csv", "text/csv", width="stretch"
    )
    if n_weights(trace) <= _MOST_WEIGHTS:
        everything = trace.to_frame().to_csv(index=False).encode()
        right.download_button("CSV of everything", everything, "attention.csv", "text/csv", width="stretch")
    else:
        right.caption(f"All {n_weights(trace):,} weights: in the tab Export.")


def _run(trace: Trace) -> None:
    made_by = trace.made_by
    seconds = made_by.get("seconds")
    st.text(
        f"checkpoint {made_by.get('checkpoint')} ({made_by.get('variant')}), task {made_by.get('task')}, "
        f"{made_by.get('strategy')} decoding on {made_by.get('device')}"
        + (f", {1000 * seconds:.0f} ms for {trace.n_steps} steps" if isinstance(seconds, int | float) else "")
    )


def _model(checkpoint: Checkpoint) -> None:
    """How good the model is, and every preference that its training had about attention."""
    config, metrics = checkpoint.model.config, checkpoint.metrics
    st.text(
        f"model: {config.n_encoder_layers}+{config.n_decoder_layers} layers, {config.n_heads} heads, "
        f"d_model {config.d_model}, {checkpoint.n_parameters:,} parameters"
    )
    if "exact_match" in metrics:
        st.text(
            f"on {metrics.get('samples', 0):,} {_JUDGED_BY.get(metrics.get('judged_by'), 'fresh texts')}: "
            f"{metrics['exact_match']:.2%} exact" + _best_head(metrics)
        )
    st.text(_preference(checkpoint))


_JUDGED_BY = {"held-out": "texts that training never saw", "trained": "texts, the same that it was trained on"}


def _best_head(metrics: Mapping[str, Any]) -> str:
    mass = metrics.get("best_head_mass")
    return "" if mass is None else f"; its best head has {mass:.1%} of its weight on the true key"


def _preference(checkpoint: Checkpoint) -> str:
    """Said wherever training preferred sharp attention: without it a reader would take the sharpness for the model's own."""
    if not checkpoint.recipe.get("sharpness"):
        return "Attention was left alone in training: where to look, and how sharply, is all the model's own."
    return "Towards the end of training, cross-attention was made to prefer sharp rows. Where to look was never trained."
