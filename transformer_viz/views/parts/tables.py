"""Below the pictures: what made the run, its heads graded, how far the model goes, masks, and all numbers."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from transformer_viz import figures
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.export.programs import explore as programs
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import by_length, code, export, heads, kept, link, what_if

TABS = ("This run", "What if", "Heads", "By length", "Masks in force", "Numbers", "Export")
_OF_A_DECODING = ("What if", "By length")
_KEPT = (
    *("what_if_how", "what_if_step", "what_if_begin", "what_if_ban", "what_if_target"),
    *("tint", "by_length_samples", "export_format"),
)
_MOST_ROWS = 20_000


def start(trace: Trace, checkpoint: Checkpoint, device: str, *, of_a_decoding: bool = True) -> None:
    """The open tab and every tab's controls, from the link or by default; before the link is written."""
    state, key = st.session_state, _key(of_a_decoding)
    if key not in state:
        asked = "What if" if of_a_decoding and what_if.is_linked() else "Heads" if "want_tint" in state else TABS[0]
        state[key] = link.choice("tables", link.take("tables"), _names(of_a_decoding), asked)
    heads.start(trace)
    export.start()
    if of_a_decoding:
        what_if.start(trace, checkpoint, device)
        by_length.start(checkpoint, device)


def link_values(trace: Trace, checkpoint: Checkpoint, device: str, *, of_a_decoding: bool = True) -> dict[str, str | None]:
    """What the URL says of the open tab and its controls; None is a default."""
    tab = st.session_state.get(_key(of_a_decoding), TABS[0])
    values = {**heads.link_values(trace), **export.link_values()}
    if of_a_decoding:
        is_open = tab == "What if"
        values |= {**what_if.link_values(is_open=is_open), **by_length.link_values(checkpoint, device)}
    # A tint or a change opens its tab, where the link does not say otherwise.
    opens_another = any(values.get(key) for key in ("tint", *what_if.KEYS))
    return {"tables": None if tab == TABS[0] and not opens_another else tab, **values}


def show(trace: Trace, checkpoint: Checkpoint, device: str, theme: ThemeName, *, of_a_decoding: bool = True) -> None:
    """Tabs; only the open one is made. A branch of a search has none that go on from a decoding, or speak of the model."""
    # A fragment alone is a run too, in which a closed tab's boxes would be forgotten.
    kept.keep(_KEPT)
    # With on_change="rerun" only the open tab is made. The masks' three charts would add 200 ms to every text.
    names = _names(of_a_decoding)
    made = st.tabs(names, key=_key(of_a_decoding), on_change="rerun")
    for name, tab in zip(names, made, strict=True):
        with tab:
            if tab.open:
                _tab(name, trace, checkpoint, device, theme)


def _names(of_a_decoding: bool) -> tuple[str, ...]:
    return tuple(name for name in TABS if of_a_decoding or name not in _OF_A_DECODING)


def _key(of_a_decoding: bool) -> str:
    return "tables" if of_a_decoding else "search_tables"


def _tab(name: str, trace: Trace, checkpoint: Checkpoint, device: str, theme: ThemeName) -> None:
    if name == "What if":
        what_if.show(trace, checkpoint, device, theme)
    elif name == "Heads":
        heads.show(trace, checkpoint, device, theme)
    elif name == "By length":
        by_length.show(checkpoint, device, theme)
    elif name == "Masks in force":
        _masks(trace, theme)
        code.show(programs.masks_in_force(code.run_of(trace, checkpoint, device), code.looks()))
    elif name == "Numbers":
        _numbers(trace)
        state = st.session_state
        code.show(programs.numbers(code.run_of(trace, checkpoint, device), state.kind, state.layer, state.head))
    elif name == "Export":
        export.show(trace, checkpoint, device, theme)
    else:
        _run(trace)
        _model(checkpoint)
        code.show(programs.this_run(code.run_of(trace, checkpoint, device)))


def _masks(trace: Trace, theme: ThemeName) -> None:
    st.caption("What each query (row) may look at (column), and why not. Taken from the run, not drawn from the rule.")
    for column, kind in zip(st.columns(len(trace.kinds)), trace.kinds, strict=True):
        figure = figures.mask(trace, kind, theme=theme)
        column.plotly_chart(
            figure, key=f"mask-{kind}", theme=None, config={"displayModeBar": False}, alt=f"Mask of the {KIND_TITLES[kind]}"
        )


def _numbers(trace: Trace) -> None:
    state = st.session_state
    frame = trace.to_frame()
    here = frame[(frame.kind == state.kind) & (frame.layer == state.layer)]
    if isinstance(state.head, int):
        here = here[here["head"] == state.head]
    st.caption("The focus, one row a weight. Layers, heads and positions count from 0 here, as in the file.")
    st.dataframe(here.head(_MOST_ROWS), height=320, hide_index=True)
    left, right, _ = st.columns([1, 1, 2])
    left.download_button(
        "CSV of the focus", here.to_csv(index=False).encode(), "attention-focus.csv", "text/csv", width="stretch"
    )
    right.download_button("CSV of everything", frame.to_csv(index=False).encode(), "attention.csv", "text/csv", width="stretch")


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
