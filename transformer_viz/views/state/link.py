"""Streamlit's widgets, bound to the page's link, and the little that `bind` leaves to a page.

Streamlit writes a bound widget's value into the address, and reads it from there where a session opens and where somebody goes
Back or Forward. It drops what is not possible without a word, knows no length, and gives a widget its value where it is drawn.
So each function here decides the value first: the session's, brought into range, or the address's, or the default; a page may
ask for it before the box is drawn (`option`). What was wrong is said in one sentence above the page.

A page with a viewer has one hand that writes its address, the browser's (`viewer/address.js`): two would erase each other's
words. There nothing is bound: the address is read where a session opens and where somebody goes Back, and what the page's boxes
say of it goes to the browser as data (`boxes_of_address`).
"""

import math
import re
from collections.abc import Callable, Container, Generator, Hashable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from transformer_viz.errors import join_names
from transformer_viz.text_display import shorten
from transformer_viz.views.components.markdown import literal

Options = Sequence[Any] | Mapping[Any, str]
LONGEST = 1_500
"""Characters of a text that a link holds."""
UNKNOWN_PAGE = "page"
"""In the address of whoever asked for a page that there is not: what was asked for."""
_WRONG, _NOW, _CUT = "link_wrong", "link_wrong_now", "link_cut"
"""In the session: what was not possible, by key; that of this run alone; and texts that are too long."""
_BARE, _SEEN, _RESET, _SWITCHED = "link_bare", "link_seen", "link_reset", "link_switched"
"""In the session: whether the first address said nothing; the page and the address of the run before; what is to have its
default; and, where this is another page than that of the run before, the keys that it has decided."""
_OPENED_BARE, _BACK = "link_opened_bare", "link_back"
"""In the session: whether it was opened by an address that said nothing; and whether this run is of a page that somebody went
Back or Forward to: then the address has the last word."""
_DECIDED = "link_decided"
"""In the session: the value of each key in the last run, and what writes it as a link has it."""
_OPENED, _TIMES = "link_opened", "link_times_opened"
"""In the session: what a link that was opened says of keys that have not been drawn since, None stands for the default; and
how often one was."""
_OWN, _HERE = "link_own", "link_here"
"""In the session: whether the browser alone writes the address of this page; and what the address says, as far as the server
knows."""
_BOXES = "link_boxes"
"""In the session: what is possible in each box of options, its default, its words and what takes the place of what is not
possible; and of what no widget has, which words are possible, and these in words."""
_MOST_LISTED = 40
"""Options that a sentence names one by one."""
_ON = {"true": True, "false": False, "True": True, "False": False}
_written = {True: "true", False: "false"}.__getitem__
"""A toggle as a link has it, and as a link may have it."""


@contextmanager
def sentence(page: str, *, is_own: bool = False) -> Generator[None]:
    """Around a page: above it stands what of its link is not possible, until something else is looked at.

    Args:
        page: its title.
        is_own: whether the browser alone writes its address.
    """
    # One press of Back leaves a page: see the script.
    with st.container(key="in-link-history"):
        _history()(key="history", data={"to": None}, height=1)
    state, context = st.session_state, get_script_run_ctx()
    state[_BACK] = context is not None and context.is_history_navigation
    state[_OWN] = is_own
    if is_own and (state[_BACK] or _OPENED_BARE not in state):
        state[_TIMES] = times_opened() + 1
        asked = {} if context is None else _parsed(context.query_string)
        state[_HERE] = {key: word for key, word in asked.items() if key != UNKNOWN_PAGE}
    elif is_own:
        # Where one comes back to it, what it said last, of boxes too that are not to be seen now.
        state.setdefault(_HERE, {})
    elif context is not None and state[_BACK]:
        # What somebody went Back or Forward to, as the browser has it. Streamlit has taken out of it what a box of the page
        # before has in a popover that was not opened: the browser does not report that box, and Streamlit takes it for one that
        # has gone.
        state[_TIMES] = times_opened() + 1
        for key, words in parse_qs(context.query_string, keep_blank_values=True).items():
            if key not in st.query_params and key != UNKNOWN_PAGE:
                # Words that Streamlit keeps for itself, as `embed`, cannot be set.
                with suppress(StreamlitAPIException):
                    st.query_params[key] = words
    place, here, to = st.empty(), address(), None
    before = state.get(_SEEN, (page, here))
    if before != (page, here):
        state.pop(_WRONG, None)
    if _OPENED_BARE not in state:
        state[_OPENED_BARE] = state[_BARE] = not here
    state[_NOW], state[_SWITCHED] = set(), None if before[0] == page else set()
    # Before the page, which may end at any place; and below it, with what it has found.
    _say(place)
    state[_CUT] = {}
    try:
        yield
    except _GoTo as asked:
        to = asked.title
    finally:
        state[_SEEN], state[_SWITCHED], state[_BACK] = (page, address()), None, False
    _say(place)
    if to is not None:
        _history()(key="history-go", data={"to": to}, height=1)


def _parsed(query: str) -> dict[str, Any]:
    """The words of a query; a list where one has several."""
    return {key: words[0] if len(words) == 1 else words for key, words in parse_qs(query, keep_blank_values=True).items()}


def boxes_of_address(others: Iterable[str]) -> dict[str, Any]:
    """What the page's boxes say of its address, for the browser, which writes it; without what these others say themselves."""
    left_out = set(others)
    return {key: word for key, word in st.session_state.get(_HERE, {}).items() if key not in left_out}


def _query() -> MutableMapping[str, Any]:
    """The address's query, as it is read and written here."""
    return st.session_state[_HERE] if st.session_state.get(_OWN) else st.query_params


def _words_of(key: str) -> list[str]:
    """All words that the address has of a key."""
    if not st.session_state.get(_OWN):
        return st.query_params.get_all(key)
    said = st.session_state[_HERE].get(key, [])
    return said if isinstance(said, list) else [said]


def say_unknown_page(titles: Sequence[str]) -> None:
    """Before `sentence`: takes a page that there is not out of the address, and says which there are."""
    if (asked := st.query_params.get(UNKNOWN_PAGE)) is not None:
        del st.query_params[UNKNOWN_PAGE]
        _say_wrong(UNKNOWN_PAGE, asked, join_names(titles))


def go_to(page: str) -> None:
    """To another page, by its title: this run ends, and the browser presses the page's link; not from a callback, which has no
    page to leave. `st.switch_page` would have to clear the address, which it may not while widgets are bound to it."""
    raise _GoTo(page)


class _GoTo(BaseException):
    """As Streamlit's own way to end a run, not for anybody on the way to catch."""

    def __init__(self, title: str) -> None:
        self.title = title


def _say(place: Any) -> None:
    state = st.session_state
    if words := [*state.get(_WRONG, {}).values()]:
        place.warning(f"Not possible here, and left out of the link: {'; '.join(words)}.", icon=":material/link_off:")
    elif cut := [f"{key} ({n:,} characters)" for key, n in state.get(_CUT, {}).items()]:
        place.caption(f"A link holds {LONGEST:,} characters of a text. Too long for it: {literal(', '.join(cut))}.")
    else:
        place.empty()


def address() -> dict[str, Any]:
    """The address's query."""
    return dict(st.session_state[_HERE]) if st.session_state.get(_OWN) else st.query_params.to_dict()


def is_bare() -> bool:
    """Whether the session was opened by an address that says nothing; once."""
    return st.session_state.pop(_BARE, False)


def opened_bare() -> bool:
    """Whether the session was opened by an address that said nothing."""
    return st.session_state.get(_OPENED_BARE, False)


def option(
    key: str,
    options: Options,
    default: Any = None,
    words: Callable[[Any], str] = str,
    *,
    fallback: Any = None,
    is_drawn: bool = True,
) -> Any:
    """The value of a box of options, before it is drawn; the box may be drawn without saying all this again.

    Args:
        key: of the box, and its name in the link.
        options: what is possible now; perhaps with its words.
        default: what the link leaves out; the first option where there is none.
        words: an option as the box and the link have it. A link that somebody writes may have the option itself, where that is
            a text, and the number alone, where its words have one.
        fallback: takes the place of a session's value that is not possible any more; the default where None.
        is_drawn: False where its box may be drawn later, and not in this run: the address does not say then that it has its
            default.
    """
    if isinstance(options, Mapping):
        options, words = [*options], options.__getitem__
    state, default = st.session_state, options[0] if default is None else default
    state.setdefault(_BOXES, {})[key] = options, default, words, fallback
    if not is_drawn and key in state and key not in _query() and key not in state.get(_OPENED, ()):
        return state[key] if state[key] in options else default
    read, allowed = partial(_option, options, words), partial(_some_of, options, words)
    return _value(key, default, options, read, words, allowed, fallback)


def _option(options: Sequence[Any], words: Callable[[Any], str], word: str) -> Any:
    named = {words(each): each for each in options}
    if word not in named:
        named = {each: each for each in options if isinstance(each, str)}
        named |= {number[0]: each for each in options if len(number := re.findall(r"\d+", words(each))) == 1}
    return named.get(word)


def open_values(values: Mapping[str, str], keys: Iterable[str]) -> None:
    """Opens a link in this session, for a callback: as soon as these keys are drawn, each has its value or its default."""
    state = st.session_state
    state[_OPENED], state[_TIMES] = {key: values.get(key) for key in keys}, times_opened() + 1


def times_opened() -> int:
    """How often a link was opened in this session, or gone back to: then it says too what a script of the page knows better."""
    return st.session_state.get(_TIMES, 0)


def all_words() -> dict[str, str]:
    """What a link would say of everything that was drawn so far, defaults and all."""
    return {key: words(value) for key, (value, words) in st.session_state.get(_DECIDED, {}).items()}


def reset(*keys: str) -> None:
    """Gives these their defaults, whatever the session and the address have; for a callback, or before they are drawn."""
    st.session_state.setdefault(_RESET, set()).update(keys)


def _some_of(options: Sequence[Any], words: Callable[[Any], str]) -> str:
    """What is possible, in words; of very many the first and the last."""
    some = options if len(options) <= _MOST_LISTED else [*options[:3], options[-1]]
    return join_names(map(words, some)) if some is options else f"{join_names(map(words, some[:-1]))} … {words(some[-1])}"


def selectbox(label: str, options: Options | None = None, *, key: str, **looks: Any) -> Any:
    """`st.selectbox` in the link, with `default`, `words` and `fallback` of `option`; without options it has those of the last
    `option` of this key."""
    options, default, words = _of_box(key, options, looks)
    return st.selectbox(label, options, [*options].index(default), key=key, format_func=words, **_bind(key), **looks)


def segmented_control(label: str, options: Options | None = None, *, key: str, **looks: Any) -> Any:
    """`st.segmented_control` of one option in the link, else as `selectbox`."""
    options, first, words = _of_box(key, options, looks)
    return st.segmented_control(label, options, default=first, required=True, key=key, format_func=words, **_bind(key), **looks)


def _of_box(key: str, options: Options | None, looks: dict[str, Any]) -> tuple[Sequence[Any], Any, Callable[[Any], str]]:
    """Options, default and words of a box, whose value is decided; what belongs to these is taken out of `looks`."""
    about = {name: looks.pop(name) for name in ("default", "words", "fallback") if name in looks}
    if options is None:
        options, *others = st.session_state[_BOXES][key]
        about = dict(zip(("default", "words", "fallback"), others, strict=True))
    option(key, options, **about)
    return st.session_state[_BOXES][key][:3]


def options_of(key: str) -> Sequence[Any]:
    """What is possible, of the last `option` of this key."""
    return st.session_state[_BOXES][key][0]


def default_of(key: str) -> Any:
    """What a link leaves out, of the last `option` of this key."""
    return st.session_state[_BOXES][key][1]


def multiselect(label: str, options: Sequence[Any], *, key: str, words: Callable[[Any], str] = str, **looks: Any) -> list[Any]:
    """`st.multiselect`, in the link; what is not possible any more is left out."""
    chosen(key, options, words)
    return st.multiselect(label, options, key=key, format_func=words, **_bind(key), **looks)


def chosen(key: str, options: Sequence[Any], words: Callable[[Any], str] = str) -> list[Any]:
    """The value of a box of several options, before it is drawn."""
    state, said = st.session_state, _words_of(key)
    if key not in state or state.get(_BACK):
        named = {words(each): each for each in options} if said else {}
        for word in said:
            if word not in named:
                _say_wrong(key, word, "tokens of this model")
        state[key] = [named[word] for word in said if word in named]
    elif (possible := [each for each in state[key] if each in options]) != state[key] or list(map(words, possible)) != said:
        state[key] = possible
    if state.get(_OWN):
        state[_HERE].pop(key, None)
        if state[key]:
            state[_HERE][key] = list(map(words, state[key]))
    return state[key]


def is_on(key: str, default: bool = False) -> bool:
    """The value of a toggle, before it is drawn."""
    return _value(key, default, (True, False), _ON.get, _written, lambda: "true, false")


def toggle(label: str, *, key: str, default: bool = False, **looks: Any) -> bool:
    """`st.toggle`, in the link."""
    is_on(key, default)
    return st.toggle(label, default, key=key, **_bind(key), **looks)


def number(key: str, least: Any, most: Any, default: Any) -> Any:
    """The value of a box for a number, before it is drawn."""

    def read(word: str) -> Any:
        try:
            value = float(word)
        except ValueError:
            return None
        return type(least)(value) if math.isfinite(value) and least <= value <= most else None

    possible = range(least, most + 1) if isinstance(least, int) else _Where(lambda value: least <= value <= most)
    return _value(key, default, possible, read, str, lambda: f"{least:,} to {most:,}")


def number_input(label: str, least: Any, most: Any, default: Any, *, key: str, **looks: Any) -> Any:
    """`st.number_input`, in the link."""
    number(key, least, most, default)
    return st.number_input(label, least, most, default, key=key, **_bind(key), **looks)


def text(key: str, default: str = "", *, most: int = LONGEST) -> str:
    """The value of a box for text, before it is drawn; of a longer one the beginning."""
    state, query = st.session_state, _query()
    word = query.get(key, "")
    if key not in state and len(word) > min(most, LONGEST):
        state[key] = word
        del query[key]
        if len(word) > most:
            _say_wrong(key, word, f"a text of at most {most:,} characters; it is cut there")
    is_kept = not any(key in others for others in (state.get(_RESET, ()), state.get(_OPENED, ()), query))
    if is_kept and len(state.get(key, "")) > min(most, LONGEST):
        # What is too long for the address is not in it: here nothing does not stand for the default.
        if len(state[key]) > most:
            state[key] = state[key][:most]
        value = state[key]
    else:
        value = _value(key, default, _Where(lambda value: len(value) <= most), lambda word: word[:most], most=most)
    _note_cut(key, value)
    return value


def text_input(label: str, default: str = "", *, key: str, most: int = LONGEST, **looks: Any) -> str:
    """`st.text_input`, in the link as far as a link holds it."""
    text(key, default, most=most)
    return st.text_input(label, default, key=key, **_bind(key), **looks)


def text_area(label: str, default: str = "", *, key: str, most: int = LONGEST, **looks: Any) -> str:
    """`st.text_area`, in the link as far as a link holds it."""
    text(key, default, most=most)
    return st.text_area(label, default, key=key, **_bind(key), **looks)


def hidden(key: str, is_possible: Callable[[str], bool] | None = None, allowed: str = "") -> str:
    """The value of what no widget of Streamlit's has, such as the step of the player: a text in the link, "" is the default.

    A box that nobody sees has it: so the address follows it, and Back brings it back, as with any other.

    Args:
        key: its name in the link.
        is_possible: whether the session or the link may have this value now; without it as `hidden_value` had it last.
        allowed: what may be, in words.
    """
    value = hidden_value(key, *((is_possible, allowed) if is_possible else st.session_state[_BOXES][key]))
    if st.session_state.get(_OWN):
        return value
    with st.container(key=f"in-link-{key}"):
        st.text_input(key, key=key, label_visibility="collapsed", **_bind(key))
    return value


def hidden_value(key: str, is_possible: Callable[[str], bool], allowed: str) -> str:
    """The value of `hidden`, before it is drawn."""
    st.session_state.setdefault(_BOXES, {})[key] = is_possible, allowed
    return _value(key, "", _Where(is_possible), lambda word: word if is_possible(word) else None, allowed=lambda: allowed)


def tabs(titles: Sequence[str], *, key: str) -> tuple[str, Any]:
    """`st.tabs`, in the link: the title of the one that is open, and its container."""
    option(key, titles)
    containers = st.tabs(titles, key=key, on_change="rerun", bind=_bind(key).get("bind"))
    place = next((place for place, tab in enumerate(containers) if tab.open), 0)
    return titles[place], containers[place]


def expander(label: str, *, key: str, default: bool = False, **looks: Any) -> Any:
    """`st.expander`, in the link; it has `open`."""
    is_on(key, default)
    return st.expander(label, default, key=key, on_change="rerun", bind=_bind(key).get("bind"), **looks)


def asked(key: str, of: Hashable) -> bool:
    """Whether the toggle of this key is on, and was switched on for this."""
    state = st.session_state
    return bool(state.get(key)) and state.get(f"{key}_of", of) == of


def asking_toggle(label: str, *, key: str, of: Hashable, **looks: Any) -> bool:
    """A toggle that asks for what takes long; of anything else than `of` it has not been asked for, and is off again."""
    state = st.session_state
    if state.setdefault(f"{key}_of", of) != of:
        state[key], state[f"{key}_of"] = False, of
    return toggle(label, key=key, **looks)


@dataclass(frozen=True)
class _Where:
    """All values of which this is true, and nothing."""

    is_true: Callable[[Any], bool]

    def __contains__(self, value: object) -> bool:
        return value == "" or self.is_true(value)


def _value(
    key: str,
    default: Any,
    possible: Container[Any],
    read: Callable[[str], Any],
    words: Callable[[Any], str] = str,
    allowed: Callable[[], str] = str,
    fallback: Any = None,
    *,
    most: int | None = None,
) -> Any:
    """Decides a value, and gives it to the session and the address where these have another one."""
    state, query = st.session_state, _query()
    word = query.get(key)
    # Of several words the last one counts, as in Streamlit.
    word = word[-1] if isinstance(word, list) else word
    in_address = default if word is None else read(word)
    if key in state.get(_OPENED, ()):
        opened = state[_OPENED].pop(key)
        value = default if opened is None or (found := read(opened)) is None else found
    elif key in state.get(_RESET, ()):
        state[_RESET].discard(key)
        value = default
    elif key not in state and state.get(_OWN) and word is None and key in state.get(_DECIDED, {}):
        # Streamlit forgets the tab of a page that was left.
        kept = state[_DECIDED][key][0]
        value = kept if kept in possible else default
    elif key not in state or state.get(_BACK):
        if in_address is None and word is not None:
            _say_wrong(key, word, allowed())
        value = default if in_address is None else in_address
        if word is not None and (in_address is None or words(value) != word):
            state.setdefault(_NOW, set()).add(key)
    elif state[key] in possible:
        value = state[key]
    elif most is not None:
        value = state[key][:most]
    else:
        value = default if fallback is None else fallback
    # A box that two pages have stands elsewhere on the second one, where it is mounted anew and may have lost its value. Once
    # it is drawn, its value cannot be set any more.
    decided = state.get(_SWITCHED)
    is_new_here = decided is not None and key not in decided
    if key not in state or state[key] != value or in_address != value or is_new_here:
        state[key] = value
    if is_new_here:
        decided.add(key)
    # Streamlit keeps the address of a bound box, but not before that is drawn for the first time.
    said = None if value == default or len(words(value)) > LONGEST else words(value)
    if said != word and (state.get(_OWN) or word is None or key in state.get(_NOW, ()) or said is None):
        with suppress(StreamlitAPIException, KeyError):
            if said is None:
                del query[key]
            else:
                query[key] = said
    state.setdefault(_DECIDED, {})[key] = (value, words)
    return value


def settle(*own: str) -> None:
    """First in the fragment of a player, which reports by itself, with the keys that its report changes.

    A report may leave the browser before the answer to the page's last run came there, as when a step is reported while a click
    moves the focus. Its address and its boxes are then the old ones: they get what was decided in that run, and the whole page
    runs.
    """
    context, state = get_script_run_ctx(), st.session_state
    if context is None or not context.fragment_ids_this_run:
        return
    (_, before), here = state.get(_SEEN, ("", {})), address()
    if any(before.get(each) != here.get(each) for each in {*before, *here}.difference(own)):
        for other, (value, _) in state.get(_DECIDED, {}).items():
            if other not in own and other in state and state[other] != value:
                state[other] = value
        st.rerun()


def _say_wrong(key: str, word: str, allowed: str) -> None:
    words = f"{literal(shorten(f'{key}={word}', 60))} (possible: {literal(shorten(allowed, 200))})"
    st.session_state.setdefault(_WRONG, {})[key] = words
    st.session_state.setdefault(_NOW, set()).add(key)


def _bind(key: str) -> dict[str, Any]:
    """What is too long for a link is the session's alone. So is, for a run, what the address says otherwise or what is not
    possible: Streamlit believes the address where a box is drawn for the first time."""
    state = st.session_state
    is_cut = _note_cut(key, state.get(key))
    if state.get(_OWN):
        return {"persist_state": "session"}
    if is_cut or key in state.get(_NOW, ()):
        state.setdefault(_NOW, set()).discard(key)
        return {"persist_state": "session"}
    return {"bind": "query-params", "persist_state": "session"}


def _note_cut(key: str, value: Any) -> bool:
    """Whether a value is a text that is too long for a link; then it is said."""
    is_cut = isinstance(value, str) and len(value) > LONGEST
    if is_cut:
        st.session_state.setdefault(_CUT, {})[key] = len(value)
    return is_cut


@cache
def _history() -> Any:
    script = Path(__file__).with_name("history.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-history", js=script)
