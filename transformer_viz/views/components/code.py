"""“Show the code”: below each view, the few lines that make again what is on the screen.

What is behind a closed fold is not sent: the browser would load and evaluate what colours code, a quarter of a second of work,
before it shows a word of the page, and colour lines that nobody sees at every step.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from transformer_viz.analysis.words import is_by_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import screen, style
from transformer_viz.views.snippets.runs import Run
from transformer_viz.views.state import display_options, link, switches
from transformer_viz.views.state.controls import CODE

if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel


FOLDS = tuple(control.key for control in CODE)
"""Keys of the folds, here and in a link: that of the page, that of an open tab below a step player, that of a training."""


def show(program: str, key: str = "code", language: str = "python") -> None:
    """The lines, behind the fold of that key; a command is broken where the column ends, as a terminal does."""
    if (place := _fold(key)) is not None:
        place.code(program, language=language, wrap_lines=language != "python")


def place() -> Any | None:
    """The page's fold with an empty place inside; None, and nothing drawn, while it is closed (`closed` draws it then).

    For a page whose player is a fragment that moves on alone: it may write to a place outside of it only if that was there
    before it, and if it wrote there in the whole run too. So the page makes room above, then this place, then what goes above.
    """
    return _fold("code") if st.session_state.code else None


def closed() -> None:
    """The page's fold where `place` gave none: last, since nobody waits for it."""
    _fold("code")


def _fold(key: str) -> Any | None:
    with st.expander("Show the code", icon=":material/code:", key=key, on_change=_say) as fold:
        return st.empty() if fold.open else None


def _say() -> None:
    # Here, since a fold may stand in a fragment, which writes its own part of the link only.
    link.update(link.values(FOLDS))


def run_of(
    trace: Trace, model: "LoadedModel", device: str, how: Mapping[str, Any] | None = None, node: int | None = None
) -> Run:
    """How the run on the screen is made: with which keywords of `decode`; of a search, the branch that is shown."""
    kept = {name: trace.made_by[name] for name in ("kinds", "layers", "precision") if name in trace.made_by}
    how = {**(how or {}), **kept}
    return Run(trace.source, model.name, device, how, switches.of(model).calls(), node=node, by_words=is_by_words(trace))


def looks() -> dict[str, Any]:
    """How the page draws."""
    state = st.session_state
    return {
        "theme": style.theme(),
        "large": bool(state.get("projector")),
        "narrow": screen.is_narrow(),
        "scale": display_options.scale(),
    }
