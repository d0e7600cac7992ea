"""Streamlit's widgets in the page's link.

The address is read where a session opens and where somebody goes Back or Forward, and never otherwise. Each function here
decides a value before its box is drawn: the session's, brought into range, or the address's, or the default; a page may ask for
it (`option`). What was wrong is said in one sentence above the page. One hand writes the address, the browser's
(`viewer/address.js`): what the page says of it goes there as data (`boxes_of_address`). Streamlit's own `bind` would be a
second hand, which erases the words of the first.
"""

import math
import re
from collections.abc import Callable, Container, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from transformer_viz.errors import join_names
from transformer_viz.language import known, say
from transformer_viz.text_display import shorten
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import visit_language
from transformer_viz.views.state.early_end import EarlyEnd

Options = Sequence[Any] | Mapping[Any, str]
LONGEST = 1_500
"""Characters of a text that a link holds."""
UNKNOWN_PAGE = "page"
"""In the address of whoever asked for a page that there is not: what was asked for."""
_WRONG, _CUT, _PLACE = "link_wrong", "link_cut", "link_place"
"""In the session: what was not possible, by key; texts that are too long; and where both are said."""
_BARE, _SEEN, _RESET, _SWITCHED = "link_bare", "link_seen", "link_reset", "link_switched"
"""In the session: whether the first address said nothing; the page of the run before; what is to have its default; and, until
a page to which one has come is whole, the keys that it has decided."""
_OPENED_BARE, _SAID, _BACK = "link_opened_bare", "link_said", "link_back"
"""In the session: whether it was opened by an address that said nothing; in the first run, of which keys it said something; and
whether this run is of a page that somebody went Back or Forward to: then the address has the last word."""
_DECIDED = "link_decided"
"""In the session: the value of each key in the last run, and its words."""
_OPENED, _TIMES = "link_opened", "link_times_opened"
"""In the session: what a link that was opened says of keys that have not been drawn since, None stands for the default; and
how often one was."""
_PAGE, _HERE = "link_page", "link_here"
"""In the session: the page that is open; and what the address of each page says, by its title."""
_RUN, _SET = "link_run", "link_set"
"""In the session: the number of this run of a page; and what a button has set in boxes, before which run."""
_BOXES = "link_boxes"
"""In the session: what is possible in each box of options, its default, its words and what takes the place of what is not
possible; and of what no widget has, which words are possible, and these in words."""
_SAYS = "link_says"
"""In the session: how the words of a box of options are said in the language of the visit."""
_MOST_LISTED = 40
"""Options that a sentence names one by one."""
_ON = {"true": True, "false": False, "True": True, "False": False}
_written = {True: "true", False: "false"}.__getitem__
"""A toggle as a link has it, and as a link may have it."""


@contextmanager
def sentence(page: str, pages: Sequence[str] = ()) -> Generator[None]:
    """Around a page: above it stands what of its link is not possible, until something else is looked at.

    Args:
        page: its title.
        pages: the titles of all.
    """
    # One press of Back leaves a page: see the script.
    with st.container(key="in-link-history"):
        _history()(key="history", data={"to": None}, height=1)
    state, context = st.session_state, get_script_run_ctx()
    state[_PLACE] = st.empty()
    state[_RUN] = run() + 1
    state[_PAGE], state[_BACK] = page, context is not None and context.is_history_navigation
    is_first = _OPENED_BARE not in state
    is_same, here = state.get(_SEEN) == page, state.setdefault(_HERE, {})
    # All that the next run is to find is set before the page, which Streamlit may end for another run.
    state[_SEEN] = page
    if not is_same or state[_BACK]:
        state.pop(_WRONG, None)
    if not is_same:
        state[_SWITCHED] = set()
    # Where one comes back to a page by its link, what it said last, of boxes too that are not to be seen now.
    here.setdefault(page, {})
    before = address()
    if is_first or state[_BACK]:
        state[_TIMES] = times_opened() + 1
        here[page] = {} if context is None else visit_language.parsed(context.query_string)
        # That of the visit, which is decided already.
        here[page].pop(visit_language.KEY, None)
        if (unknown := here[page].pop(UNKNOWN_PAGE, None)) is not None:
            _say_wrong(UNKNOWN_PAGE, str(unknown), join_names(pages))
    if is_first:
        state[_OPENED_BARE] = state[_BARE] = not here[page]
        state[_SAID] = {*here[page]}
    wrong, to, end = dict(state.get(_WRONG, {})), None, None
    _say()
    state[_CUT] = {}
    try:
        yield
    except _GoTo as asked:
        to = asked.title
    except EarlyEnd as early:
        end = early
    finally:
        if is_same and address() != before and state.get(_WRONG) == wrong:
            state.pop(_WRONG, None)
        state[_SWITCHED], state[_BACK] = None, False
    _say()
    if to is not None:
        _history()(key="history-go", data={"to": say(to)}, height=1)
    if end is not None:
        raise end


def boxes_of_address(others: Iterable[str] = ()) -> dict[str, Any]:
    """The page's part of its address, for the browser, which writes it; without what these others say themselves."""
    left_out = set(others)
    return {key: word for key, word in _query().items() if key not in left_out} | visit_language.in_address()


def _query() -> dict[str, Any]:
    """The query of the address of the page that is open; a list where a key has several words."""
    return st.session_state.get(_HERE, {}).get(st.session_state.get(_PAGE), {})


def go_to(page: str) -> None:
    """To another page, by its title: this run ends, and the browser presses the page's link; not from a callback, which has no
    page to leave."""
    raise _GoTo(page)


class _GoTo(BaseException):
    """A way to end a run, like Streamlit's own: not for anybody on the way to catch."""

    def __init__(self, title: str) -> None:
        self.title = title


def _say() -> None:
    state = st.session_state
    place = state[_PLACE]
    if words := [*state.get(_WRONG, {}).values()]:
        place.warning(
            say("Not possible here, and left out of the link: {what}.", what="; ".join(words)), icon=":material/link_off:"
        )
    elif cut := [say("{key} ({n:,} characters)", key=key, n=n) for key, n in state.get(_CUT, {}).items()]:
        what = literal(", ".join(cut))
        place.caption(say("A link holds {most:,} characters of a text. Too long for it: {what}.", most=LONGEST, what=what))
    else:
        place.empty()


def address() -> dict[str, Any]:
    """The address's query."""
    return dict(_query())


def is_bare() -> bool:
    """Tells whether the session was opened by an address that says nothing that is possible; once."""
    opened_bare()
    st.session_state[_SAID] = set()
    return st.session_state.pop(_BARE, False)


def opened_bare() -> bool:
    """Tells whether the session was opened by an address that said nothing that is possible."""
    state = st.session_state
    if (said := state.get(_SAID)) and said <= state.get(_WRONG, {}).keys():
        state[_OPENED_BARE] = state[_BARE] = True
        state[_SAID] = set()
    return state.get(_OPENED_BARE, False)


def option(
    key: str,
    options: Options,
    default: Any = None,
    words: Callable[[Any], str] = str,
    *,
    fallback: Any = None,
    is_drawn: bool = True,
    said: Callable[[Any], str] | None = None,
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
        said: an option as its box says it, in the language of the visit; without it, what its words are there. `str` is for
            names that somebody gave.
    """
    if said is not None:
        st.session_state.setdefault(_SAYS, {})[key] = said
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
    """Counts how often a link was opened in this session, or gone back to: then it says too what a script knows better."""
    return st.session_state.get(_TIMES, 0)


def all_words() -> dict[str, str]:
    """The words that a link would have for everything drawn so far, defaults and all."""
    return {key: words for key, (_, words) in st.session_state.get(_DECIDED, {}).items()}


def reset(*keys: str) -> None:
    """Gives these their defaults, whatever the session and the address have; for a callback, or before they are drawn."""
    st.session_state.setdefault(_RESET, set()).update(keys)


def run() -> int:
    """The number of this run of a page in the session."""
    return st.session_state.get(_RUN, 0)


def set_boxes(values: Mapping[str, Any], defaults: Iterable[str] = ()) -> None:
    """Sets boxes of Streamlit's, for a callback: some to values, some to their defaults.

    A message of the browser has the value of each box as the browser knows it, and until the answer is there the next press
    would take back what is set: see `set_again`.
    """
    state, defaults = st.session_state, [*defaults]
    state[_SET] = run() + 1, {key: state.get(key) for key in (*values, *defaults)}, values
    state.update(values)
    reset(*defaults)


def set_again(heard: int) -> None:
    """Sets what `set_boxes` has set where a message takes it back that was sent before the browser heard of it.

    Args:
        heard: the run of which the browser had heard last.
    """
    state = st.session_state
    n, before, values = state.get(_SET, (0, {}, {}))
    if heard >= n:
        return
    # What is another value now was typed or chosen since.
    taken_back = [key for key, value in before.items() if state.get(key) == value]
    state.update({key: values[key] for key in taken_back if key in values})
    reset(*(key for key in taken_back if key not in values))


def _some_of(options: Sequence[Any], words: Callable[[Any], str]) -> str:
    """Lists what is possible, in words; of very many the first and the last."""
    some = options if len(options) <= _MOST_LISTED else [*options[:3], options[-1]]
    return join_names(map(words, some)) if some is options else f"{join_names(map(words, some[:-1]))} … {words(some[-1])}"


def selectbox(label: str, options: Options | None = None, *, key: str, **looks: Any) -> Any:
    """`st.selectbox` in the link, with `default`, `words`, `fallback` and `said` of `option`; without options it has
    those of the last `option` of this key."""
    options, default, words = _of_box(key, options, looks)
    return st.selectbox(label, options, [*options].index(default), key=key, format_func=words, **_kept(key), **looks)


def segmented_control(label: str, options: Options | None = None, *, key: str, **looks: Any) -> Any:
    """`st.segmented_control` of one option in the link, else as `selectbox`."""
    options, first, words = _of_box(key, options, looks)
    return st.segmented_control(label, options, default=first, required=True, key=key, format_func=words, **_kept(key), **looks)


def _of_box(key: str, options: Options | None, looks: dict[str, Any]) -> tuple[Sequence[Any], Any, Callable[[Any], str]]:
    """Options, default and words of a box as it says them, whose value is decided; what belongs to these is taken out of
    `looks`."""
    about = {name: looks.pop(name) for name in ("default", "words", "fallback", "said") if name in looks}
    if options is None:
        options, *others = st.session_state[_BOXES][key]
        about |= dict(zip(("default", "words", "fallback"), others, strict=True))
    option(key, options, **about)
    options, default, words, _ = st.session_state[_BOXES][key]
    says = st.session_state.get(_SAYS, {}).get(key)
    return options, default, says or (lambda each: known(words(each)))


def options_of(key: str) -> Sequence[Any]:
    """The options of the last `option` of this key."""
    return st.session_state[_BOXES][key][0]


def words_of(key: str) -> list[str]:
    """The options of the last `option` of this key, in the words of a link."""
    options, _, words, _ = st.session_state[_BOXES][key]
    return [words(each) for each in options]


def default_of(key: str) -> Any:
    """The value that a link leaves out, of the last `option` of this key."""
    return st.session_state[_BOXES][key][1]


def multiselect(label: str, options: Sequence[Any], *, key: str, words: Callable[[Any], str] = str, **looks: Any) -> list[Any]:
    """`st.multiselect`, in the link; what is not possible any more is left out."""
    chosen(key, options, words)
    return st.multiselect(label, options, key=key, format_func=words, **_kept(key), **looks)


def chosen(key: str, options: Sequence[Any], words: Callable[[Any], str] = str) -> list[Any]:
    """The value of a box of several options, before it is drawn."""
    state, query = st.session_state, _query()
    given = query.get(key, [])
    given = given if isinstance(given, list) else [given]
    if key not in state or state.get(_BACK):
        named = {words(option): option for option in options} if given else {}
        for word in given:
            if word not in named:
                _say_wrong(key, word, say("tokens of this model"))
        state[key] = [named[word] for word in given if word in named]
    elif (possible := [option for option in state[key] if option in options]) != state[key] or [*map(words, possible)] != given:
        state[key] = possible
    query.pop(key, None)
    if state[key]:
        query[key] = list(map(words, state[key]))
    return state[key]


def is_on(key: str, default: bool = False) -> bool:
    """The value of a toggle, before it is drawn."""
    return _value(key, default, (True, False), _ON.get, _written, lambda: "true, false")


def toggle(label: str, *, key: str, default: bool = False, **looks: Any) -> bool:
    """`st.toggle`, in the link."""
    is_on(key, default)
    return st.toggle(label, default, key=key, **_kept(key), **looks)


def number(key: str, least: Any, most: Any, default: Any) -> Any:
    """The value of a box for a number, before it is drawn."""

    def read(word: str) -> Any:
        try:
            value = float(word)
        except ValueError:
            return None
        return type(least)(value) if math.isfinite(value) and least <= value <= most else None

    possible = range(least, most + 1) if isinstance(least, int) else _Where(lambda value: least <= value <= most)
    return _value(key, default, possible, read, str, lambda: say("{least:,} to {most:,}", least=least, most=most))


def number_input(label: str, least: Any, most: Any, default: Any, *, key: str, **looks: Any) -> Any:
    """`st.number_input`, in the link."""
    number(key, least, most, default)
    return st.number_input(label, least, most, default, key=key, **_kept(key), **looks)


def text(key: str, default: str = "", *, most: int = LONGEST) -> str:
    """The value of a box for text, before it is drawn; of a longer one the beginning."""
    state, query = st.session_state, _query()
    word = query.get(key, "")
    if key not in state and len(word) > min(most, LONGEST):
        state[key] = word
        del query[key]
        if len(word) > most:
            _say_wrong(key, word, say("a text of at most {most:,} characters; it is cut there", most=most))
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
    return st.text_input(label, default, key=key, **_kept(key), **looks)


def text_input_pressed(label: str, *, key: str, most: int = LONGEST, **looks: Any) -> str:
    """`text_input`, of a text that presses elsewhere on the page change too."""
    value = text(key, most=most)
    return _pressed(key, value, partial(st.text_input, label, value), **looks)


def selectbox_pressed(label: str, options: Options | None = None, *, key: str, **looks: Any) -> Any:
    """`selectbox`, of an option that presses elsewhere on the page change too."""
    options, _, words = _of_box(key, options, looks)
    value = st.session_state[key]
    return _pressed(key, value, partial(st.selectbox, label, options, [*options].index(value), format_func=words), **looks)


def _pressed(key: str, value: Any, draw: Callable[..., Any], *, width: Any = "stretch", **looks: Any) -> Any:
    """Draws a box that is another one after each change from elsewhere. A message of the browser has the value of each box as
    the browser knows it, and until the answer is there the next press would take back what was set."""
    state, of_box = st.session_state, f"{key}_box"
    before, n = state.get(of_box, (value, 0))
    n += before != value
    state[of_box] = value, n
    box = f"{of_box}_{n}"

    def changed() -> None:
        # Of a box that has gone Streamlit also calls this, where a press brings its last value.
        if state[of_box][1] == n:
            state[key] = state[box]
            state[of_box] = state[box], n

    with st.container(key=key, width=width):
        draw(key=box, on_change=changed, **looks)
    return value


def text_area(label: str, default: str = "", *, key: str, most: int = LONGEST, **looks: Any) -> str:
    """`st.text_area`, in the link as far as a link holds it."""
    text(key, default, most=most)
    return st.text_area(label, default, key=key, **_kept(key), **looks)


def hidden(
    key: str, is_possible: Callable[[str], bool], allowed: str, *, before: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The value of what no widget of Streamlit's has, such as a place in a picture: a text in the link, "" is the default.

    Args:
        key: its name in the link.
        is_possible: whether the session or the link may have this value now.
        allowed: what may be, in words.
        before: words of older links, and what stands for each now.
    """

    def read(word: str) -> str | None:
        now = before.get(word, word)
        return now if is_possible(now) else None

    return _value(key, "", _Where(is_possible), read, allowed=lambda: allowed)


def tabs(titles: Sequence[str], *, key: str) -> tuple[str, Any]:
    """`st.tabs`, in the link: the title of the one that is open, and its container."""
    option(key, titles)
    shown, state = [say(title) for title in titles], st.session_state
    if shown == [*titles]:
        containers = st.tabs(titles, key=key, on_change="rerun")
    else:
        # Streamlit keeps the title that is seen.
        of_widget = f"{key}_seen"
        state[of_widget] = shown[[*titles].index(state[key])]

        def pressed() -> None:
            state[key] = titles[shown.index(state[of_widget])]

        containers = st.tabs(shown, key=of_widget, on_change=pressed)
    place = next((place for place, tab in enumerate(containers) if tab.open), 0)
    return titles[place], containers[place]


def expander(label: str, *, key: str, default: bool = False, **looks: Any) -> Any:
    """`st.expander`, in the link; it has `open`."""
    is_on(key, default)
    return st.expander(label, default, key=key, on_change="rerun", **looks)


def asked(key: str, of: Hashable) -> bool:
    """The value of `asking_toggle`, before it is drawn."""
    state = st.session_state
    if state.setdefault(f"{key}_of", of) != of:
        state[key], state[f"{key}_of"] = False, of
    return is_on(key)


def asking_toggle(label: str, *, key: str, of: Hashable, **looks: Any) -> bool:
    """A toggle that asks for what takes long; of anything else than `of` it has not been asked for, and is off again."""
    asked(key, of)
    return toggle(label, key=key, **looks)


@dataclass(frozen=True)
class _Where:
    """The values of which this is true, and the empty text."""

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
        value = default if opened is None or (reading := read(opened)) is None else reading
    elif key in state.get(_RESET, ()):
        state[_RESET].discard(key)
        value = default
    elif key not in state and word is None and key in state.get(_DECIDED, {}):
        # Streamlit forgets the tab of a page that was left.
        kept = state[_DECIDED][key][0]
        value = kept if kept in possible else default
    elif key not in state or state.get(_BACK):
        if in_address is None and word is not None:
            _say_wrong(key, word, allowed())
        value = default if in_address is None else in_address
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
    # And where the same option has other words now, the browser would go on showing the old ones.
    written, before = words(value), state.setdefault(_DECIDED, {}).get(key)
    is_renamed = before is not None and before[0] == value and before[1] != written
    # Only then: what is set here goes to the browser, over what may have been typed there since.
    if key not in state or state[key] != value or is_new_here or is_renamed:
        state[key] = value
    if is_new_here:
        decided.add(key)
    if value == default or len(written) > LONGEST:
        query.pop(key, None)
    else:
        query[key] = written
    state[_DECIDED][key] = (value, written)
    return value


def _say_wrong(key: str, word: str, allowed: str) -> None:
    given, possible = literal(shorten(f"{key}={word}", 60)), literal(shorten(allowed, 200))
    words = say("{given} (possible: {possible})", given=given, possible=possible)
    st.session_state.setdefault(_WRONG, {})[key] = words
    _say()


def _kept(key: str) -> dict[str, Any]:
    """The keywords of a box whose value is decided: the session keeps it while another page is open."""
    _note_cut(key, st.session_state.get(key))
    return {"persist_state": "session"}


def _note_cut(key: str, value: Any) -> None:
    """A text that is too long for a link is said to be."""
    if isinstance(value, str) and len(value) > LONGEST:
        st.session_state.setdefault(_CUT, {})[key] = len(value)


@cache
def _history() -> Any:
    script = Path(__file__).with_name("history.js").read_text(encoding="utf-8")
    return st.components.v2.component("transformer-viz-history", js=script)
