"""The viewer of a page: one component that shows a run and is the only master of what it shows, and the box for its text.

The browser tells its whole state as one value; the server never writes it back. Only another run, or what the page itself has
changed (a button, a link, another page's focus), is sent, with a number that says which request it answers and one that says up
to which press the server had heard. The run's numbers are fetched by the browser from their own address (`sent_runs`).
"""

import json
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

import streamlit as st
from markupsafe import Markup

from transformer_viz import language
from transformer_viz.addresses import HeadAddress
from transformer_viz.errors import OptionError, join_names
from transformer_viz.export import assets
from transformer_viz.export.content import content
from transformer_viz.export.packed_heads import exact_part
from transformer_viz.export.strips import legend
from transformer_viz.figures.figure_data import typed
from transformer_viz.figures.player import scale_words
from transformer_viz.language import say, spoken
from transformer_viz.sentences.run_sentences import Sentence
from transformer_viz.terms import COMBINED, KIND_TITLES, Kind, kind_words
from transformer_viz.trace.attribution import Attribution
from transformer_viz.trace.trace import Trace
from transformer_viz.viewer import modules, plotly_js
from transformer_viz.views.cache import sent_runs
from transformer_viz.views.components import presses, screen, style, term_tips, viewer_script
from transformer_viz.views.state import focus, lesson_place, levels, link, own_text, visits
from transformer_viz.views.state.display_options import DisplayOptions

OF_ADDRESS = ("text", "kind", "layer", "head", "step", "pin", "lines", "measure", "moment", "position", "row")
"""The words of the address that the viewer writes itself."""
KEY, TEXT_KEY = "viewer", "typed"
_LINES, _MOST_PRESSES = ("step", "all", "none"), 2**53
_OLD_LINES = {"on": "step", "off": "none"}
_HEARD, _VIEW, _REQUEST = "viewer_heard", "viewer_view", "viewer_request"
"""In the session: the newest press that was heard; what the browser shows, as far as it is known; and how often the page itself
has set it."""
_TEXT_HEARD, _TEXT, _TEXT_REQUEST = "typed_heard", "typed_text", "typed_request"
"""The same of the text, apart: what the page sets in the picture takes nothing away that is half typed."""
_TEXT_RUN = "typed_run"
"""In the session: the run of a page in which the box of the text was drawn last."""
_WAY, _CELLS = "viewer_way", "viewer_cells"
"""In the session: the newest press of a button beside a step's sentence, and of a cell of a mask."""
_MASK = '<div class="focus" data-part="mask"></div>'
_TILES = '<div class="mosaics" data-part="mosaics"></div>'
_MISSING = '<p class="missing" data-part="missing" role="alert" hidden></p>'
_MOST_KEPT = 8
"""Ways to show a run that are kept."""
_SOON_S = 0.3
"""The seconds in which a model answers whose next text is shown as it is typed."""
_IN_PARTS_FROM = 1_500_000
"""Bytes of weights from which on a run is sent a head at a time."""


@dataclass(frozen=True)
class View:
    """The part of a run that the viewer shows; numbers count from 0."""

    kind: Kind
    layer: int
    head: int | str
    step: int
    pin: tuple[int | None, ...] = ()
    lines: str = "auto"
    measure: str = "weights"

    @classmethod
    def of_session(cls) -> "View":
        """Reads what the page has decided."""
        state, at = st.session_state, focus.current()
        lines, measure = state.get("lines") or "auto", state.get("measure") or "weights"
        return cls(at.kind, at.layer, at.head, focus.step(), tuple(focus.pinned()), lines, measure)

    def to_browser(self) -> dict[str, Any]:
        """The fields as the browser has them."""
        return {**vars(self), "pin": list(self.pin)}


@dataclass(frozen=True)
class Looks:
    """The words of a page on the run beside its numbers, by the names that the viewer has for them; see `viewer.js`."""

    parts: Mapping[str, Any] = field(default_factory=dict)
    measure: str = ""
    measures: Mapping[Kind, Attribution] = field(default_factory=dict)
    maps: Mapping[Kind, Any] | None = None
    maps_key: Any = None
    is_grey: bool = False
    with_candidates: bool = True


@dataclass(frozen=True)
class Beside:
    """Another run that is shown beside, and the difference of both.

    Attributes:
        trace: the run.
        run: tells it from others.
        kinds: those that both have.
        parts: what the page says of it, as of `Looks`.
        difference: makes what is fetched of the difference: `kinds`, `mosaics`, `words`, `dark`.
        key: tells this difference from others of the first run.
        is_change: whether the first run is what this one has become by a change; then this one stands before it.
    """

    trace: Trace
    run: str
    kinds: tuple[Kind, ...]
    parts: Mapping[str, Any]
    difference: Callable[[], Mapping[str, Any]]
    key: Any
    is_change: bool = False


# ---- the text


def text_box(default: str, *, is_long: bool, most: int) -> None:
    """The box of the text, in the link; the browser alone writes into it.

    Args:
        default: what a link leaves out.
        is_long: whether it has several lines, and is sent by Ctrl and Enter.
        most: characters.
    """
    state = st.session_state
    link.text("text", default, most=most)
    if state.get(_TEXT, state.text) != state.text:
        state[_TEXT_REQUEST] = state.get(_TEXT_REQUEST, 0) + 1
    state[_TEXT], state[_TEXT_RUN] = state.text, link.run()
    data = {
        "text": state.text,
        "heard": state.get(_TEXT_HEARD, 0),
        "request": state.get(_TEXT_REQUEST, 0),
        "isLong": is_long,
        "most": most,
        "longest": link.LONGEST,
        "default": default,
    }
    with st.container(key="text"):
        _component("textBox")(key=TEXT_KEY, data=data, on_at_change=_hear_text)


def _hear_text() -> None:
    state, report = st.session_state, (st.session_state.get(TEXT_KEY) or {}).get("at")
    if not isinstance(report, Mapping) or not _is_new(report.get("n"), _TEXT_HEARD) or not isinstance(report.get("text"), str):
        return
    state.text = state[_TEXT] = report["text"]
    state[_TEXT_HEARD] = report["n"]
    own_text.chosen(is_followed=report.get("isEntered") is False)


def _follows(trace: Trace) -> bool:
    """Tells whether the next text is shown as it is typed: where the model answers soon, for few visitors, and no lesson waits
    for a whole word."""
    seconds = trace.made_by.get("seconds")
    is_soon = isinstance(seconds, float) and seconds <= _SOON_S
    return is_soon and visits.few() and lesson_place.current() is None


# ---- the picture


def show(
    trace: Trace,
    chosen: DisplayOptions,
    looks: Looks,
    *,
    said: Callable[..., Sentence],
    on_way: Callable[[str], None],
    covered: bool = False,
    beside: Beside | None = None,
    masks: Mapping[Kind, int] | None = None,
    on_cell: Callable[[Any], None] = lambda _: None,
    page: str = "",
) -> None:
    """Draws the viewer of a run, for which `focus.start` has been called.

    Args:
        trace: the run as it may be seen.
        chosen: how it looks.
        looks: what the page says of it.
        said: what a measure says of a step: run, kind, layer, head, step.
        on_way: is called with the button beside a step's sentence that was pressed.
        covered: whether something of it may not be seen yet.
        beside: another run, whose viewer follows this one's.
        masks: the height in pixels of each kind's mask, where masks are to be seen too.
        on_cell: is called with a pressed cell of a mask, as the browser says it: `query` and `key` (None where a label was
            pressed), `kind`, `layer` and `head`. It is for the masks of two runs.
        page: the path of the page, nothing for the first.
    """
    link.hidden("lines", _LINES.__contains__, join_names(_LINES), before=_OLD_LINES)
    at, sent = focus.current(), _sent(trace, chosen, looks, said)
    kinds = trace.kinds if beside is None else beside.kinds
    data = {
        **_told(sent, at.run, View.of_session().to_browser(), chosen),
        "isGrey": looks.is_grey,
        "follows": _follows(trace),
        "parts": {
            "unfolds": trace.writes and chosen.unfolds and not covered,
            "isBrief": trace.writes and not levels.is_all(),
            "plays": own_text.plays(at.run),
            **({} if masks is None else {"masks": masks}),
            **looks.parts,
        },
        "address": {"page": page, "defaults": _defaults(page), "kinds": {kind: KIND_TITLES[kind] for kind in kinds}},
        "beside": None if beside is None else _beside(trace, chosen, beside, said),
    }
    with st.container(key="picture"):
        about = None if beside is None else beside.is_change, masks is not None
        _picture(*about)(key=KEY, data=data, on_at_change=partial(_hear, on_way, on_cell))


def show_heads(
    kinds: Mapping[Kind, Mapping[str, Any]], at: HeadAddress, run: str, chosen: DisplayOptions, *, page: str
) -> None:
    """Draws a table of heads; the browser is master of which is in focus.

    Args:
        kinds: of each its `title`, `numbers` (of its layers), how many `heads` it has, and `figure`, a grid of tiles in the
            page's style, or None, with its `words`.
        at: the head with which it begins.
        run: tells the model from others.
        chosen: how it looks.
        page: the path of the page.
    """
    content = {"kinds": kinds, "accent": style.figure_style().colours.accent}
    html = f'<div class="heads">{_kinds()}</div>{_MISSING}{_TILES}</div>'
    place = {"kind": at.kind, "layer": at.layer, "head": at.head}
    _show_other(_other("heads", html), sent_runs.packed(content), kinds, place, run, chosen, page)


def show_one_head(
    kinds: Mapping[Kind, Mapping[str, Any]],
    figure: Callable[[Kind, int, int], Any],
    place: Mapping[str, Any],
    run: str,
    chosen: DisplayOptions,
    *,
    page: str,
    n_bytes: int,
) -> None:
    """Draws a figure of one head; the browser is master of which is in focus, and fetches the figure of each.

    Args:
        kinds: of each its `title`, `numbers` (of its layers), how many `heads` it has, its `rows` in the words of a link, and
            `words` about the figure.
        figure: makes the figure of a kind, layer and head, in the page's style; the row is framed in the browser.
        place: kind, layer, head and row with which it begins.
        run: tells what the figures are made of from all else.
        chosen: how it looks.
        page: the path of the page.
        n_bytes: of what is held for the figures.
    """

    def part(kind: Kind, layer: int, head: int) -> dict[str, Any]:
        made = figure(kind, layer, head)
        return json.loads(json.dumps({"data": made.data, "layout": {**made.layout, "shapes": []}}, default=typed))

    content = {"kinds": kinds, "accent": style.figure_style().colours.accent, "of": [run, repr(style.figure_style())]}
    row = f'<select data-box="row" aria-label="{say("Row")}"></select>'
    room = f'<div class="focus" data-part="maps"></div>{_MISSING}'
    component = _other("one-head", f'<div class="one-head">{_kinds()}{row}</div>{room}</div>')
    rows = {kind: about["rows"] for kind, about in kinds.items()}
    _show_other(component, sent_runs.packed(content), kinds, place, run, chosen, page, spoken(part), n_bytes, rows=rows)


def show_learned(
    of: Trace,
    key: Any,
    place: Mapping[str, Any],
    run: str,
    content: Callable[[], Mapping[str, Any]],
    chosen: DisplayOptions,
    *,
    page: str,
) -> None:
    """Draws the moments of a training; the browser is master of which are in focus.

    Args:
        of: the run of the first moment; while it is held, what was made of the moments is kept.
        key: tells these moments, and their looks, from others of the same first one.
        place: kind, layer, head, moment and position with which it begins.
        run: tells the training and the text from others.
        content: makes what the browser fetches, as of `views/train/picture.py`.
        chosen: how it looks.
        page: the path of the page.
    """
    kept = _packed.setdefault(of, {})
    if key not in kept:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = sent_runs.packed(content())
    position = f'<select data-box="position" aria-label="{say("Candidates of position")}"></select>'
    room = f'<div class="focus" data-part="maps"></div>{_MISSING}<p class="when" data-part="when"></p>{_TILES}'
    component = _other(
        "learned",
        f'<div class="learned">{assets.templates().get_template("player.html").render()}{_kinds()}{position}</div>{room}</div>',
    )
    titles = {kind: {"title": kind_words(kind)} for kind in of.kinds}
    _show_other(component, kept[key], titles, place, run, chosen, page, positions=link.words_of("position"))


def _show_other(
    component: Any,
    content: bytes,
    kinds: Mapping[Kind, Mapping[str, Any]],
    place: Mapping[str, Any],
    run: str,
    chosen: DisplayOptions,
    page: str,
    part: Callable[..., dict[str, Any]] | None = None,
    n_bytes: int = 0,
    **words: Any,
) -> None:
    """Draws what is to its page what a viewer is, beginning at a place; `words` are those of the address for what is neither
    kind, layer nor head."""
    defaults, titles = {name: link.default_of(name) for name in place}, {kind: KIND_TITLES[kind] for kind in kinds}
    data = {
        **_told(sent_runs.send(content, part or _no_part, n_bytes), run, place, chosen),
        "isGrey": False,
        "parts": {},
        "address": {"page": page, "defaults": defaults, "kinds": titles, **words},
        "beside": None,
    }
    with st.container(key="picture"):
        component(key=KEY, data=data, on_at_change=partial(_hear, lambda _: None, lambda _: None))


def _told(content: str, run: str, start: Mapping[str, Any], chosen: DisplayOptions) -> dict[str, Any]:
    """The data that the browser gets with whatever it shows: where the numbers are, where it begins, which presses are known,
    and how all looks."""
    state = st.session_state
    if state.get(_VIEW) not in (None, (run, start)):
        state[_REQUEST] = state.get(_REQUEST, 0) + 1
    state[_VIEW] = (run, start)
    return {
        "content": content,
        "run": run,
        "start": start,
        "heard": newest_heard(),
        "textHeard": state.get(_TEXT_HEARD, 0),
        "request": state.get(_REQUEST, 0),
        "plotly": plotly_js.name(),
        "dark": style.theme() == "dark",
        "large": chosen.is_large,
        "narrow": screen.is_narrow(),
        "isAll": levels.is_all(),
    }


def _beside(trace: Trace, chosen: DisplayOptions, beside: Beside, said: Callable[..., Sentence]) -> dict[str, Any]:
    """The data that the browser gets of the other run."""
    key, kept = ("difference", beside.key, chosen.is_large, language.current()), _packed.setdefault(trace, {})
    if key not in kept:
        kept[key] = sent_runs.packed(beside.difference())
    content, parts = (
        _sent(beside.trace, chosen, Looks(with_candidates=False, maps={}, maps_key="none"), said),
        {"ways": {}, **beside.parts},
    )
    return {"content": content, "run": beside.run, "parts": parts, "difference": sent_runs.send(kept[key], _no_part, 0)}


def _no_part(*_: Any) -> dict[str, Any]:
    raise OptionError("a difference comes whole")


def keep_address(page: str, *, has_viewer: bool) -> None:
    """Tells the browser the page's part of its address, which the browser writes; at the end of the page.

    Args:
        page: its path, nothing for the first page.
        has_viewer: whether the viewer itself says `OF_ADDRESS`, as long as there is one.
    """
    # Where there is no box of the viewer's for the text, it is the page's, as on Compare.
    has_text = st.session_state.get(_TEXT_RUN) == link.run()
    own = [name for name in OF_ADDRESS if has_viewer and (has_text or name != "text")]
    others = {key: word for key, word in link.address().items() if key in own}
    words = link.boxes_of_address(own)
    data = {"page": page, "words": words, "others": others, "hasViewer": has_viewer, "run": link.run()}
    with st.container(key="in-link-address"):
        _component("address")(key="address", data=data, height=1)


def _defaults(page: str) -> dict[str, Any]:
    """The part of the view that the address leaves out; of the first page never all: a bare address opens at the first step."""
    state, is_bare = st.session_state, not page and (link.opened_bare() or link.address().keys() <= {"step"})
    first = {"kind": link.default_of("kind"), "layer": link.default_of("layer"), "head": link.default_of("head")}
    return {**first, "step": None if is_bare else state.get("first_step"), "lines": "auto", "measure": "weights"}


_packed: weakref.WeakKeyDictionary[Trace, dict[Any, bytes]] = weakref.WeakKeyDictionary()
"""The packed content of a run, as long as somebody holds it, by what is said beside its numbers."""


def _sent(trace: Trace, chosen: DisplayOptions, looks: Looks, said: Callable[..., Sentence]) -> str:
    """The name by which the browser fetches the run's numbers."""
    n_bytes = sum(attention.weights.nbytes for attention in trace.attentions.values())
    in_parts, mark = n_bytes > _IN_PARTS_FROM, term_tips.mark
    measured = (looks.measure, tuple((kind, id(each)) for kind, each in looks.measures.items()))
    key = (measured, looks.maps_key, chosen.is_large, screen.is_narrow(), looks.with_candidates, language.current())
    kept = _packed.setdefault(trace, {})
    if key not in kept:
        options: dict[str, Any] = {"measures": looks.measures, "measure": looks.measure, "said": said, "maps": looks.maps}
        options |= {"theme": "auto", "large": chosen.is_large, "with_answer": True, "with_candidates": looks.with_candidates}
        data = content(trace, mark=mark, in_parts=in_parts, **options)
        for kind, each in data["kinds"].items():
            hint = each["legend"]
            if screen.is_narrow():
                # There is no room for a colour bar.
                first = trace.attentions[kind].layers[0]
                scale = scale_words(trace, kind, first, 0, "fixed", looks.measures.get(kind))
                hint = say("{attention}: {legend}", attention=kind_words(kind), legend=legend(trace, kind, colour=scale))
            each["hint"] = mark(hint, told=("token",))
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = sent_runs.packed({**data, "terms": term_tips.meanings()})
    part = spoken(partial(exact_part, trace, with_answer=True, mark=mark))
    return sent_runs.send(kept[key], part, n_bytes if in_parts else 0)


def newest_heard() -> int:
    """The number of the newest press that was heard, 0 for none."""
    return cast(int, st.session_state.get(_HEARD, 0))


def _hear(on_way: Callable[[str], None], on_cell: Callable[[Any], None]) -> None:
    """Takes what the browser shows now; nonsense is passed over, and the page brings the rest into range."""
    state, report = st.session_state, (st.session_state.get(KEY) or {}).get("at")
    if not isinstance(report, Mapping) or not _is_new(report.get("n"), _HEARD):
        return
    state[_HEARD] = report["n"]
    if type(heard := report.get("heard")) is int:
        link.set_again(heard)
    kind, layer, head = report.get("kind"), report.get("layer"), report.get("head")
    if kind in KIND_TITLES and type(layer) is int and (head in COMBINED or type(head) is int):
        focus.choose(kind, layer, head)
    # What there is not, of another training or text, the page brings into range.
    for name in ("moment", "position", "row"):
        if type(number := report.get(name)) is int and 0 <= number < _MOST_PRESSES:
            state[name] = number
    # A table of heads has none.
    if "lines" in report:
        state.lines = lines if (lines := report["lines"]) in _LINES else ""
    if isinstance(measure := report.get("measure"), str):
        state.measure = "" if measure == "weights" else measure
    if report.get("run") == state.get("run") and type(step := report.get("step")) is int and 0 <= step < _MOST_PRESSES:
        state.step, pin = str(step + 1), report.get("pin")
        if isinstance(pin, list) and len(pin) in (0, 2) and all(place is None or type(place) is int for place in pin):
            focus.set_pin(tuple(pin))
            state.pinned_in = (state.run, state.kind)
        state[_VIEW] = (state.run, _view_of(report).to_browser())
    else:
        state.pop(_VIEW, None)
    for cell in presses.fresh(report.get("cells"), _CELLS):
        on_cell(cell)
    way = report.get("way")
    if isinstance(way, Mapping) and isinstance(way.get("name"), str) and _is_new(way.get("n"), _WAY):
        state[_WAY] = way["n"]
        on_way(way["name"])


def _view_of(report: Mapping[str, Any]) -> View:
    """Reads the view that the browser says it shows."""
    names = ("kind", "layer", "head", "step", "lines", "measure")
    pin, values = report.get("pin"), cast(dict[str, Any], {name: report.get(name) for name in names})
    return View(**values, pin=tuple(pin) if isinstance(pin, list) else ())


def _is_new(n: Any, key: str) -> bool:
    return type(n) is int and st.session_state.get(key, 0) < n < _MOST_PRESSES


# ---- the scripts


def _kinds() -> str:
    box = '<select data-box="{name}" aria-label="{label}"></select>'
    boxes = "".join(box.format(name=name, label=label) for name, label in (("layer", say("Layer")), ("head", say("Head"))))
    kind = f'<div class="kinds" data-box="kind" role="group" aria-label="{say("Attention")}"></div>'
    return f'<div class="boxes" role="group" aria-label="{say("focus")}">{kind}{boxes}'


def _component(name: str) -> Any:
    return _component_of(name, language.current())


@cache
def _component_of(name: str, _language: str) -> Any:
    html, css = {"textBox": ('<div class="typed"></div>', modules.text("text_box.css"))}.get(name, ("<i></i>", None))
    return _of_module(name.lower(), name, html=html, css=css)


def _other(name: str, html: str) -> Any:
    return _other_of(name, html, language.current())


@cache
def _other_of(name: str, html: str, _language: str) -> Any:
    return _of_module(name, "picture", html=html, css=_styles(), isolate_styles=False)


def _picture(is_change: bool | None, with_mask: bool) -> Any:
    """The picture of one run, or of two where it is known whether one of them is the other after a change."""
    return _picture_of(is_change, with_mask, language.current())


@cache
def _picture_of(is_change: bool | None, with_mask: bool, _language: str) -> Any:
    html = _viewer() if is_change is None else _two_viewers(is_change, with_mask)
    if is_change is None and with_mask:
        html = f'<div class="masked">{_MASK}{html}</div>'
    name = {None: "picture", False: "pair", True: "changes"}[is_change] + ("-masked" if with_mask else "")
    return _of_module(name, "picture", html=html, css=_styles(), isolate_styles=False)


def _of_module(name: str, exported: str, **looks: Any) -> Any:
    # One address, so that all are of one module, and one state.
    load = f'const {{ {exported} }} = await import(new URL("{viewer_script.name()}", document.baseURI));'
    name = f"transformer-viz-{name}{language.suffix()}"
    return st.components.v2.component(name, js=f"{load}\nexport default {exported};", **looks)


def _viewer() -> str:
    remark = Markup('<p class="told" data-part="remark"></p>')
    ideas = Markup('<div class="ideas" data-part="ideas" role="group" aria-label="{}" hidden></div>').format(say("Other texts"))
    return assets.templates().get_template("viewer.html").render(kinds_as_buttons=True, beside_boxes=remark, above_maps=ideas)


def _two_viewers(is_change: bool, with_mask: bool) -> str:
    names = {"A": say("after"), "B": say("before")} if is_change else {"A": "A", "B": "B"}
    # What stands above each side.
    shown = {side: f""" style='--name: "{name}"'""" if is_change else "" for side, name in names.items()}
    sides = "".join(
        f'<section data-side="{side}" aria-label="{name}"{shown[side]}>{_viewer()}</section>' for side, name in names.items()
    )
    classes = "pair" + " changes" * is_change + " with-mask" * with_mask
    return f'<div class="{classes}">{_MASK * with_mask}{sides}<div class="chart" data-part="difference"></div></div>'


def _styles() -> str:
    """Rules for what is in a viewer alone: its charts cannot stand in a shadow. The scope is what it stands in, since its rules
    are of the viewer itself too."""
    names = (
        "charts",
        "player",
        "lines",
        "measures",
        "guess",
        "curtain",
        "viewer",
        "share",
        "app",
        "pair",
        "masked",
        "heads",
        "learned",
    )
    # What a term means is drawn by the page's own rules.
    return f"@scope (.st-key-picture) {{\n{modules.styles(*(f'{name}.css' for name in names))}\n}}"
