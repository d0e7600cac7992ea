"""Streamlit forgets what a widget said as soon as a page does not draw it; these are held on to across pages."""

import streamlit as st

from transformer_viz.views.parts.training.form import FIELDS

KEYS = (
    *("text", "checkpoint", "device", "projector", "hide_answer", "kind", "layer", "head", "tables"),
    *("lab_sources", "lab_targets", "sentence", "mistake", "lab_edits", "lab_tab", "lab_view"),
    *("lab_fill", "lab_precision", "lab_row", "lab_reach", "lab_click"),
    *("beam", "alpha", "stop", "what_if_how", "what_if_begin", "what_if_ban", "what_if_target"),
    *("train_task", "train_variant", "train_name", "train_job", "train_probe"),
    *(f"train_{name}" for name in FIELDS),
    *("tint", "by_length_samples", "by_length_asked"),
    *("position",),
    *("b_text", "b_checkpoint", "b_layer", "b_head", "scale"),
    *(f"{side}_{name}" for side in "ab" for name in ("file", "snapshot", "strategy", "beam", "temperature", "seed")),
    *("open_name", "open_tables"),
)


def keep() -> None:
    """Once a run, before any widget is drawn."""
    for key in KEYS:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
