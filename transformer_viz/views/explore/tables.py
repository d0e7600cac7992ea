"""Below the pictures: what made the run, its heads graded, how far the model goes, masks, and all numbers."""

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from transformer_viz import figures
from transformer_viz.analysis.heads import n_layers_heads
from transformer_viz.figures.theme import ThemeName
from transformer_viz.terms import KIND_TITLES, Kind, head_title
from transformer_viz.trace.frame import to_frame
from transformer_viz.trace.limits import n_weights
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import limits
from transformer_viz.views.components import chart, code
from transformer_viz.views.explore import export, heads
from transformer_viz.views.snippets import explore as programs
from transformer_viz.views.snippets.runs import AnyRun, File
from transformer_viz.views.state import controls, display_options, link, on_demand, persist_widgets

if TYPE_CHECKING:
    from transformer_viz.checkpoints import Checkpoint

TABS = ("This run", "What if", "Heads", "By length", "Masks in force", "Numbers", "Export")
_NEED_THE_MODEL = ("What if", "By length")
OF_A_FILE = tuple(name for name in TABS if name not in _NEED_THE_MODEL)
_OF_A_FILE_KEY = "open_tables"
KEYS = tuple(control.key for control in controls.TABS)
"""The tabs and what is in them."""
_IN_TABS = {"code_of_tab", *KEYS} - {"tables", "search_tables", _OF_A_FILE_KEY, "what_if_prefix"}
_MOST_ROWS, _MOST_AT_ONCE = 20_000, 200_000
"""Rows of a head that are shown, and rows of the whole run up to which a table of it is ready to download."""
_MOST_OF_A_LAYER = 300_000
_MOST_NOTES, _LONGEST_NOTE = 100, 300

Tabs = dict[str, Callable[[], None]]


def start(trace: Trace, checkpoint: "Checkpoint", device: str, *, of_a_decoding: bool = True) -> None:
    """The open tab and every tab's controls, from the link or by default; before the link is written."""
    # Here, as all that needs the model: a file is looked at without it.
    from transformer_viz.views.explore import by_length, what_if

    names = TABS if of_a_decoding else OF_A_FILE
    _start(trace, _key(of_a_decoding), names, "What if" if of_a_decoding and what_if.is_linked() else None)
    if of_a_decoding:
        what_if.start(trace, checkpoint, device)
        on_demand.start(by_length.made_of(checkpoint, device))


def start_of_file(trace: Trace) -> None:
    """As `start`, for `show_of_file`."""
    _start(trace, _OF_A_FILE_KEY, OF_A_FILE, None)


def _start(trace: Trace, key: str, names: tuple[str, ...], asked: str | None) -> None:
    """`asked` is the tab that the rest of the link asks for."""
    link.start(key, names, asked or ("Heads" if link.is_waiting("tint") else TABS[0]))
    link.leave_out(key, TABS[0])
    heads.start(trace)


def show(trace: Trace, checkpoint: "Checkpoint", device: str, theme: ThemeName, *, search: Trace | None = None) -> None:
    """Tabs; only the open one is made. A branch of a search has none that go on from a decoding, or speak of the model."""
    from transformer_viz.views.explore import by_length, what_if

    run = code.run_of(trace, checkpoint, device)

    def this_run() -> None:
        if trace.made_by.get("strategy") != "beam":  # of a search, one branch is shown here; the page says its size
            limits.caption(trace)
        _run(trace)
        _model(checkpoint)
        code.show(programs.this_run(run), "code_of_tab")

    tabs: Tabs = {
        **_tabs(trace, checkpoint, device, theme, run, search),
        "This run": this_run,
        "What if": lambda: what_if.show(trace, checkpoint, device, theme),
        "By length": lambda: by_length.show(checkpoint, device, theme),
    }
    names = TABS if search is None else OF_A_FILE
    _draw({name: tabs[name] for name in names}, _key(search is None))


def show_of_file(trace: Trace, theme: ThemeName, run: File, search: Trace | None = None) -> None:
    """The tabs that need no model."""

    def this_run() -> None:
        _notes(trace)
        code.show(programs.this_run(run), "code_of_tab")

    tabs = {**_tabs(trace, None, "", theme, run, search), "This run": this_run}
    _draw({name: tabs[name] for name in OF_A_FILE}, _OF_A_FILE_KEY)


def _key(of_a_decoding: bool) -> str:
    return "tables" if of_a_decoding else "search_tables"


def _tabs(
    trace: Trace, checkpoint: "Checkpoint | None", device: str, theme: ThemeName, run: AnyRun, search: Trace | None
) -> Tabs:
    """What every run has."""

    def masks() -> None:
        _masks(trace, theme)
        is_by_head = any(trace.mask_reasons[kind].ndim == 4 for kind in trace.kinds)
        places = {kind: _mask_place(trace, kind) for kind in trace.kinds} if is_by_head else {}
        code.show(programs.masks_in_force(run, code.looks(), places), "code_of_tab")

    def numbers() -> None:
        _numbers(trace)
        state = st.session_state
        code.show(programs.numbers(run, state.kind, state.layer, state.head), "code_of_tab")

    return {
        "Heads": lambda: heads.show(trace, checkpoint, device, theme, run),
        "Masks in force": masks,
        "Numbers": numbers,
        "Export": lambda: export.show(trace, run, theme, search),
    }


def _draw(tabs: Tabs, key: str) -> None:
    # A fragment alone is a run too, in which a closed tab's boxes would be forgotten.
    persist_widgets.keep(_IN_TABS)
    # With on_change="rerun" only the open tab is made. The masks' three charts would add 200 ms to every text.
    for name, tab in zip(tabs, st.tabs(list(tabs), key=key, on_change="rerun"), strict=True):
        with tab:
            if tab.open:
                tabs[name]()


def _masks(trace: Trace, theme: ThemeName) -> None:
    st.caption("What each query (row) may look at (column), and why not. Taken from the run, not drawn from the rule.")
    for column, kind in zip(st.columns(len(trace.kinds)), trace.kinds, strict=True):
        layer, head = _mask_place(trace, kind)
        figure = figures.mask(trace, kind, layer, head, theme=theme)
        with column:
            chart.show(figure, f"mask-{kind}", f"Mask of the {KIND_TITLES[kind]}")
        if trace.mask_reasons[kind].ndim == 4:
            column.caption(f"Heads differ in their masks here; this is {head_title(layer, head)}.")


def _mask_place(trace: Trace, kind: Kind) -> tuple[int, int]:
    """The focus, as far as this kind has such a layer and head."""
    (_, n_heads), state, layers = n_layers_heads(trace, kind), st.session_state, trace.layer_numbers(kind)
    head = state.head if isinstance(state.head, int) else 0
    return state.layer if state.layer in layers else layers[-1], min(head, n_heads - 1)


def _numbers(trace: Trace) -> None:
    state = st.session_state
    if not isinstance(state.head, int) and math.prod(_shape(trace, state.kind)[1:]) > _MOST_OF_A_LAYER:
        st.caption("All heads of this layer are too many numbers for a table; choose one head above.")
        return
    here = to_frame(trace, state.kind, state.layer, state.head if isinstance(state.head, int) else None)
    st.caption(
        "The focus, one row a weight. Layers, heads and tokens count from 1, as everywhere on the page; from 0 in the CSV."
    )
    st.dataframe(_from_one(here.head(_MOST_ROWS)), height=320, hide_index=True)
    left, right, _ = st.columns([1, 1, 2])
    left.download_button(
        "CSV of the focus", here.to_csv(index=False).encode(), "attention-focus.csv", "text/csv", width="stretch"
    )
    if n_weights(trace) > _MOST_AT_ONCE:
        right.caption(f"All {n_weights(trace):,} weights: in the tab Export.")
        return
    everything = trace.to_frame().to_csv(index=False).encode()
    right.download_button("CSV of everything", everything, "attention.csv", "text/csv", width="stretch")


def _from_one(frame: pd.DataFrame) -> pd.DataFrame:
    """The numbers of layers, heads and tokens as a person counts."""
    return frame.assign(**{name: frame[name] + 1 for name in ("layer", "head", "query", "key")})


def _run(trace: Trace) -> None:
    made_by = trace.made_by
    seconds = made_by.get("seconds")
    st.text(
        f"checkpoint {made_by.get('checkpoint')} ({made_by.get('variant')}), task {made_by.get('task')}, "
        f"{made_by.get('strategy')} decoding on {made_by.get('device')}"
        + (f", {1000 * seconds:.0f} ms for {trace.n_steps} steps" if isinstance(seconds, int | float) else "")
    )


def _notes(trace: Trace) -> None:
    """What a file says of its run, as text: nobody has checked it."""
    sizes = {KIND_TITLES[kind]: "{} × {} heads, {} × {} tokens".format(*_shape(trace, kind)) for kind in trace.kinds}
    facts: dict[str, Any] = {
        "source": trace.source,
        "written": trace.text,
        "right answer": trace.expected if display_options.current().with_answer else None,
        "ended": _ENDED[trace.finished],
        **sizes,
        "scores before the mask": ", ".join(KIND_TITLES[kind] for kind in trace.scores) or None,
        "mistake": trace.mistake,
        "edits": ", ".join(trace.edits) or None,
    }
    said = {f"made by: {name}": value for name, value in trace.made_by.items()}
    rows = [(_note(name), _note(value)) for name, value in {**facts, **said}.items() if value is not None][:_MOST_NOTES]
    table = pd.DataFrame(rows, columns=["what", "as the file says"])
    st.dataframe(table, hide_index=True, height=min(420, 38 + 35 * len(rows)))


_ENDED = {"end": "with the end symbol", "length": "at the length limit", "given": "the tokens were given"}


def _shape(trace: Trace, kind: Kind) -> tuple[int, ...]:
    weights = trace.attentions(kind)
    assert weights is not None
    return weights.shape


def _note(value: Any) -> str:
    """A value of a file on one line; a long one is cut."""
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    words = " ".join(words[: 2 * _LONGEST_NOTE].split())
    return words if len(words) <= _LONGEST_NOTE else words[: _LONGEST_NOTE - 1] + "…"


def _model(checkpoint: "Checkpoint") -> None:
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


def _preference(checkpoint: "Checkpoint") -> str:
    """Said wherever training preferred sharp attention: without it a reader would take the sharpness for the model's own."""
    if not checkpoint.recipe.get("sharpness"):
        return "Attention was left alone in training: where to look, and how sharply, is all the model's own."
    return "Towards the end of training, cross-attention was made to prefer sharp rows. Where to look was never trained."
