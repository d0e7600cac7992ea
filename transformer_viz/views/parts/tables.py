"""Below the pictures: the masks in force, the numbers as a table and CSV, and what made the run."""

import streamlit as st

from transformer_viz import figures
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES
from transformer_viz.trace.trace import Trace
from transformer_viz.views.parts import export, what_if

TABS = ("This run", "What if", "Masks in force", "Numbers", "Export")
_MOST_ROWS = 20_000


def show(trace: Trace, checkpoint: Checkpoint, device: str, theme: ThemeName, *, with_what_if: bool = True) -> None:
    """Tabs; only the open one is made. What if goes on from a decoding, not from a branch of a search."""
    # With on_change="rerun" only the open tab is made. The masks' three charts would add 200 ms to every text.
    names = [name for name in TABS if with_what_if or name != "What if"]
    tabs = dict(zip(names, st.tabs(names, key="tables" if with_what_if else "search_tables", on_change="rerun"), strict=True))
    run, masks, numbers, files = (tabs[name] for name in TABS if name != "What if")
    with run:
        if run.open:
            _run(trace)
            _model(checkpoint)
    if with_what_if:
        with tabs["What if"]:
            if tabs["What if"].open:
                what_if.show(trace, checkpoint, device, theme)
    with masks:
        if masks.open:
            _masks(trace, theme)
    with numbers:
        if numbers.open:
            _numbers(trace)
    with files:
        if files.open:
            export.show(trace, checkpoint, device, theme)


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
            f"on {metrics['samples']:,} fresh strings: {metrics['exact_match']:.2%} exact; "
            f"its best head has {metrics['best_head_mass']:.1%} of its weight on the true letter"
        )
    st.text(_preference(checkpoint))


def _preference(checkpoint: Checkpoint) -> str:
    """Said wherever training preferred sharp attention: without it a reader would take the sharpness for the model's own."""
    if not checkpoint.recipe.get("sharpness"):
        return "Attention was left alone in training: where to look, and how sharply, is all the model's own."
    return "Towards the end of training, cross-attention was made to prefer sharp rows. Where to look was never trained."
