"""The widget itself, for whoever has anywidget. `viewer/widget.js` is its other half."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import anywidget
import numpy as np
import traitlets

from transformer_viz.addresses import find_map, map_address
from transformer_viz.errors import OptionError, TransformerVizError, join_names, short_repr
from transformer_viz.export.assets import templates
from transformer_viz.export.content import View, content, view
from transformer_viz.export.packed_heads import exact_bytes
from transformer_viz.figures.figure_data import typed
from transformer_viz.language import current, speaking
from transformer_viz.schema import whole_number
from transformer_viz.trace import limits
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import modules, plotly_js, script_words

LONGEST = 2000
"""The most characters of the box, as on a live page."""
_FOCUS = ("kind", "layer", "head", "step", "cell")
_STYLES = ("charts", "player", "lines", "viewer", "share", "widget")


class RunWidget(anywidget.AnyWidget):
    """A run in a notebook's cell, in the viewer of all pages.

    Attributes:
        focus: what is looked at: `kind`, `layer`, `head` (a number, `mean` or `max`), `step`, and `cell`, the row and the
            column that are pinned (None for a whole row or column), or None. Numbers count from 0. It can be read, set (also
            a part of it: `widget.focus = {"head": 2}`) and observed: `widget.observe(f, "focus")`.
        trace: the run that is shown; it can be observed.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    focus = traitlets.Dict().tag(sync=True)
    trace = traitlets.Instance(Trace)
    longest = traitlets.Int(0, read_only=True).tag(sync=True)

    def __init__(self, trace: Trace, at: View, run: Callable[[str], Trace] | None = None, language: str | None = None) -> None:
        """The attributes of the run at this view; `run` makes one of another text, where there is a model."""
        _check_size(trace)
        self._run, self._name, self._packed = run, 0, b""
        with speaking(language):
            # What a browser asks later is answered in it too.
            self._language = current()
            super().__init__(_esm=_script(self._language), _css=_styles(), trace=trace)
        self.set_trait("longest", LONGEST if run else 0)
        self.focus = {**vars(at), "cell": None}
        self.on_msg(self._answer)

    def __repr__(self) -> str:
        return f"<RunWidget of {self.trace!r}>"

    @property
    def address(self) -> str:
        """The head in focus, as other functions take it: `cross.2.3`, or `cross.2.mean`."""
        return map_address(self.focus["kind"], self.focus["layer"], self.focus["head"])

    def decode(self, text: str) -> Trace:
        """Shows what the model does with another text. Kind, layer and head stay; the step is the last letter's.

        Raises:
            OptionError: the widget is of a run and not of a model.
            TransformerVizError: as of `decode`.
        """
        if self._run is None:
            raise OptionError("this widget shows one run; one that reads other texts is made by tv.widget(model, text)")
        trace = self._run(text)
        _check_size(trace)
        focus = _focus_in(trace, self.focus)
        self._name, self._packed = self._name + 1, b""
        with self.hold_trait_notifications():
            self.trace, self.focus = trace, focus
        with speaking(self._language):
            self.send({"run": self._name}, [self._content()])
        return trace

    @traitlets.validate("focus")
    def _checked(self, proposal: Any) -> dict[str, Any]:
        """The whole focus, of which a part was given."""
        return _focus_of(self.trace, self.focus, proposal["value"])

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Reads what a browser says. Of a run that was shown before it may say what this one has not: that is passed over."""
        if "focus" in sync_data:
            try:
                _focus_of(self.trace, self.focus, sync_data["focus"])
            except TransformerVizError:
                sync_data = {name: value for name, value in sync_data.items() if name != "focus"}
        super().set_state(sync_data)

    def _answer(self, _: Any, asked: Any, __: Any) -> None:
        """Answers what a browser asks, with the number of its question."""
        if not isinstance(asked, Mapping) or not isinstance(asked.get("id"), str):
            return
        about = {"id": asked["id"]}
        try:
            with speaking(self._language):
                more, buffers = self._found(asked)
        except TransformerVizError as error:
            self.send({**about, "error": str(error)})
        else:
            self.send({**about, **more}, buffers)

    def _found(self, asked: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        match asked.get("ask"):
            case "run":
                return {"run": self._name}, [self._content()]
            case "head":
                if asked.get("run") != self._name:
                    raise OptionError("another text is shown by now")
                kind, layer, head = find_map(str(asked.get("head")), self.trace.grid)
                return {}, list(exact_bytes(self.trace, kind, layer, head, with_answer=True).values())
            case "decode":
                text = asked.get("text")
                if not isinstance(text, str) or len(text) > LONGEST:
                    raise OptionError(f"a text has at most {LONGEST:,} characters here; tv.decode takes longer ones")
                self.decode(text)
                return {}, []
            case "plotly":
                return {}, [_plotly()]
        raise OptionError("that cannot be asked")

    def _content(self) -> bytes:
        """The run without the numbers of its heads, packed."""
        if not self._packed:
            data = content(self.trace, theme="auto", large=False, with_answer=True, in_parts=True)
            about = {**data, "text": self.trace.source, "saved": data["title"]}
            text = json.dumps(about, separators=(",", ":"), default=typed, allow_nan=False)
            self._packed = gzip.compress(text.encode(), mtime=0)
        return self._packed


def _focus_in(trace: Trace, before: Mapping[str, Any]) -> dict[str, Any]:
    """The focus in another run: of the same head where there is one, at the last letter."""
    at = view(trace)
    same = {name: before[name] for name in ("kind", "layer", "head")}
    try:
        return _focus_of(trace, {}, {**same, "step": at.step, "cell": None})
    except OptionError:
        return {**vars(at), "cell": None}


def _focus_of(trace: Trace, now: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """The focus that is meant by a part of it.

    Raises:
        OptionError: the run has no such place, or there is no such name.
    """
    if not isinstance(given, Mapping) or (unknown := [name for name in given if name not in _FOCUS]):
        words = short_repr(given) if not isinstance(given, Mapping) else join_names(map(str, unknown))
        raise OptionError(f"focus has {join_names(_FOCUS)}; {words} is not possible")
    wanted = {"step": 0, "cell": None, **now, **given}
    # A pin belongs to its map.
    if "cell" not in given and wanted.get("kind") != now.get("kind"):
        wanted["cell"] = None
    if not (isinstance(wanted.get("head"), str) or _is_number(wanted.get("head"))) or not _is_number(wanted.get("layer")):
        raise OptionError("focus: layer is a number from 0, and head such a number, 'mean' or 'max'")
    kind, layer, head = find_map(_address(wanted), trace.grid)
    step = whole_number("step", wanted["step"], 0, len(trace.rows) - 1)
    return {"kind": kind, "layer": layer, "head": head, "step": int(step), "cell": _cell_of(trace, kind, wanted["cell"])}


def _address(wanted: Mapping[str, Any]) -> str:
    head = wanted["head"] if isinstance(wanted["head"], str) else int(wanted["head"]) + 1
    return f"{wanted['kind']}.{int(wanted['layer']) + 1}.{head}"


def _cell_of(trace: Trace, kind: Any, cell: Any) -> list[int | None] | None:
    if cell is None:
        return None
    if not isinstance(cell, Sequence) or isinstance(cell, str) or len(cell) != 2 or all(place is None for place in cell):
        raise OptionError(
            f"cell={short_repr(cell)} is not possible; it is a row and a column, of which one may be None, or None"
        )
    sizes = trace.attentions[kind].weights.shape[-2:]
    named = zip(("row", "column"), cell, sizes, strict=True)
    return [None if place is None else int(whole_number(f"cell's {name}", place, 0, size - 1)) for name, place, size in named]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0


def _check_size(trace: Trace) -> None:
    if not 0 < limits.n_weights(trace) <= limits.MOST_IN_PAGE:
        raise OptionError(
            f"a widget shows a run with 1 to {limits.MOST_IN_PAGE:,} weights; this one has {limits.n_weights(trace):,}. "
            "tv.decode(…, layers=…, kinds=…) keeps fewer"
        )


@cache
def _script(now: str) -> str:
    """The viewer and its adapter as one ES module, in the language of now."""
    html = json.dumps(templates().get_template("widget.html").render(language=now), ensure_ascii=False)
    show = f"const html = {html};\nexport default () => shownInCells(html);\n"
    return f"{script_words.spoken(modules.script('widget.js'))}\n{show}"


@cache
def _styles() -> str:
    """Rules for what is in such a cell alone."""
    return f"@scope (.transformer-viz) {{\n{modules.styles(*(f'{name}.css' for name in _STYLES))}\n}}"


@cache
def _plotly() -> bytes:
    return gzip.compress(plotly_js.path().read_bytes(), mtime=0)
