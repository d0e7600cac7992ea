"""The step player as one component: token strips, sentence, controls, and the messages to the focus chart.

A slider of Streamlit's own would cost a round trip a step. This component finds the focus chart in its
keyed container, steps it in the browser, and tells Python which step has rested.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from transformer_viz.analysis.alignment_head import AlignmentHead
from transformer_viz.analysis.sentences import step_sentences
from transformer_viz.export import assets
from transformer_viz.export.strips import answer_mark, output_strip, source_strip, strip_labels
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import term_tips
from transformer_viz.views.state import link
from transformer_viz.views.state.focus import Focus

FOCUS_KEY = "focus"
MOSAIC_KEY = "mosaic"
"""Keys of the charts, by which the scripts find them; after the second comes the kind."""


def data(
    trace: Trace, at: Focus, *, hint: str, large: bool, dark: bool, aligner: AlignmentHead | None = None
) -> dict[str, Any]:
    """What the component is sent, once per focus: every step's sentence, and the strips. Without `linked` nothing is marked.

    The source token that is outlined at a step is that of the focus, or of the head that aligns, where one is chosen.
    """
    looks = trace.attentions[at.kind].head(at.layer, at.head) if at.kind == "cross" else None
    looks = looks if aligner is None else aligner.map_of(trace)
    return {
        "run": at.run,
        "step": at.step,
        "moved": link.times_opened(),
        "hint": term_tips.mark(hint, told=("token",)),
        "terms": term_tips.meanings(),
        "labels": strip_labels(trace),
        "grows": trace.writes,
        "large": large,
        "dark": dark,
        "source": source_strip(trace),
        "output": output_strip(trace),
        "answer": answer_mark(trace),
        "first": trace.n_given,
        "sentences": [term_tips.mark(sentence) for sentence in step_sentences(trace, at.kind, [(at.layer, at.head)])[0]],
        "looked": [None] * len(trace.rows) if looks is None else [_most(row) for row in looks],
    }


_REPORTS = ("step", "pin", "lines", "measure", "way")


def show(content: dict[str, Any], on_report: Callable[[str, Any], None]) -> None:
    """Mounts the component.

    Args:
        content: what `data` gives, and more.
        on_report: gets what the browser reports, or nonsense: `step`, the run and the step at which the player has rested;
            `pin`, the run, the kind and the place that are pinned; `lines`, on or off; `measure`, what the maps are to show;
            and `way`, which of the buttons beside a step's sentence.
    """
    callbacks = {f"on_{name}_change": partial(_report, name, on_report) for name in _REPORTS}
    _component()(key="player", data=content, **callbacks)


def _report(name: str, on_report: Callable[[str, Any], None]) -> None:
    report = (st.session_state.get("player") or {}).get(name)
    if isinstance(report, dict if name in ("step", "pin") else str):
        on_report(name, report)


@cache
def _component() -> Any:
    """Registered once a process: the files are ours, what a user typed comes as data only."""
    names = ("measures.css", "guess.css", "measures.js", "player.js")
    *styles, measures, player = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)
    css = "\n".join([assets.script("player.css", "lines.css"), term_tips.STYLE, *styles])
    js = "\n".join([assets.script(*assets.PLAYER_SCRIPTS), measures, player])
    return st.components.v2.component("transformer-viz-player", html=assets.asset("player.html"), css=css, js=js)


def _most(row: np.ndarray) -> int | None:
    """The key with the most weight; None for a row without weight or numbers."""
    return int(row.argmax()) if row.any() and not np.isnan(row).any() else None
