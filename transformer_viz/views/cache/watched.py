"""Long runs on a page: while one waits or writes, the page ends with how far it is; then it is drawn with what came of it.

The work is done in the thread of the line (`line.py`), so the page answers meanwhile. A fragment asks how it is until it is
done, and then makes the whole page anew. A session has one long run at a time: a page ends at the first that is not there yet,
and another text in the box asks for another run, for which the former is given up.
"""

import time
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import streamlit as st

from transformer_viz import serving
from transformer_viz.analysis.sentences import percent_words
from transformer_viz.errors import BusyError
from transformer_viz.views.cache.line import Line, Run, State
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.server.page_slots import release_slot
from transformer_viz.views.state import visitor

if TYPE_CHECKING:
    from transformer_viz.tracing.watching import Written
    from transformer_viz.views.cache.run_cache import Held

QUICK = 1e9
"""Multiplications of a run that nobody waits for: a tenth of a second and less. It is made in the page's own run."""
AT_FIRST, EVERY, _IN_LINE = 0.3, 0.25, 1.0
"""Seconds that a page waits for the first word of a run before it shows that there is none yet; between two looks at one that
is at work; and at one that waits, since thirty who look four times a second take a third of a processor."""
_FOR_SMALL = 20.0
"""Seconds that a page waits for a small model."""
_MOST_STOPPED = 16
"""Of the runs that somebody has stopped, so many are remembered in a session."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Writing:
    """What a decoding has written so far, and in how many seconds since its first token."""

    written: "Written"
    seconds: float

    @property
    def words(self) -> str:
        """`12 tokens · 9.8 a second`."""
        n = self.written.n_steps
        rate = f" · {(n - 1) / self.seconds:.3g} a second" if n > 1 and self.seconds > 0 else ""
        return f"{n} token{'s' * (n > 1)}{rate}"


@dataclass(frozen=True)
class Progress:
    """How far a run is that writes nothing: in words, and as a share where that is known."""

    words: str
    share: float | None


@dataclass(frozen=True)
class Ended:
    """Where a decoding was ended before it ended by itself: by somebody, or since it took too long."""

    n_steps: int
    is_late: bool

    @property
    def words(self) -> str:
        """For the person."""
        tokens = f"{self.n_steps} token{'s' * (self.n_steps != 1)}"
        late = f", since a run may take {limit_words()}" if self.is_late else ""
        return f"Stopped after {tokens}{late}."


@cache
def line() -> Line:
    """The one of the server."""
    return Line(serving.limits())


@cache
def loadings() -> Line:
    """The one of the models that are to be loaded: transformers loads one at a time, and nobody waits for another's run."""
    return Line(serving.limits())


def limit_words() -> str:
    """How long a run may take here, and by which variable."""
    return f"{line().limits.run_seconds} s here ({serving.variable('run_seconds')})"


def decoded(make: "Held[P, T]", cost: float, *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function of the store makes with `decode`: held, made at once where that is quick, or watched.

    Args:
        make: takes beside its own arguments `max_length` and `_on_token`, as `decode` has them.
        cost: multiplications that it takes, at the most.
        args: what it is made of.
        kwargs: likewise.
    """
    key = make.key(*args, **kwargs)
    ended = _ended().get(key)
    limit: Any = {} if ended is None else {"max_length": ended.n_steps}
    found = make.found(*args, **kwargs, **limit)
    if found is None and cost < QUICK:
        found = make(*args, **kwargs, **limit)
    elif found is None:
        found, ended_now = made(
            key,
            "Reading the text",
            lambda run: _written(run, make, *args, **kwargs, **limit),
            lambda: make.found(*args, **kwargs, **limit) is not None,
        )
        ended = ended_now or ended
        _remember(key, ended)
    if ended is not None:
        _offer_to_write_again(key, ended)
    return found


def at_once(make: "Held[P, T]", cost: float, *args: P.args, **kwargs: P.kwargs) -> T | None:
    """The same where nobody has to wait for it; otherwise None."""
    ended = _ended().get(make.key(*args, **kwargs))
    limit: Any = {} if ended is None else {"max_length": ended.n_steps}
    return make(*args, **kwargs, **limit) if cost < QUICK else make.found(*args, **kwargs, **limit)


def computed(words: str, make: "Held[P, T]", cost: float, *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function of the store makes in one go: held, made at once where that is quick, or at its turn.

    Args:
        words: what it does.
        make: of the store. One with an argument `_on_progress` calls it with the share that is done, from 0 to 1.
        cost: multiplications that it takes, at the most.
        args: what it is made of.
        kwargs: likewise.
    """
    if (found := make.found(*args, **kwargs)) is not None:
        return found
    if cost < QUICK:
        return make(*args, **kwargs)

    def work(run: Run) -> T:
        own: Any = {"_on_progress": partial(_say_share, run)} if make.takes("_on_progress") else {}
        return make(*args, **kwargs, **own)

    return made(make.key(*args, **kwargs), words, work, lambda: make.found(*args, **kwargs) is not None)


def _say_share(run: Run, share: float) -> None:
    if not run.goes_on(Progress(percent_words(share), share)):
        raise BusyError(
            f"This was ended at {percent_words(share)}, since a run may take {limit_words()}. "
            "Take less of it, or a smaller model."
        )


def _written(run: Run, make: "Held[P, T]", *args: P.args, **kwargs: P.kwargs) -> tuple[T, Ended | None]:
    """In the thread of the line: what is made, and where it was ended; None where it ended by itself."""
    # Somebody may have waited for the same.
    if (found := make.found(*args, **kwargs)) is not None:
        return found, None
    begun_at: list[float] = []
    ended: list[Ended] = []

    def on_token(written: "Written") -> bool:
        begun_at[:] = begun_at or [time.monotonic()]
        if run.goes_on(Writing(written, time.monotonic() - begun_at[0])):
            return True
        ended.append(Ended(written.n_steps, run.is_late))
        return False

    own: Any = {"_on_token": on_token}
    thing = make.make(*args, **kwargs, **own)
    limit: Any = {"max_length": ended[0].n_steps} if ended else {}
    kwargs.update(limit)
    make.keep(thing, *args, **kwargs)
    return thing, ended[0] if ended else None


def loaded(
    key: Hashable, words: str, work: Callable[[Run], T], is_there: Callable[[], bool], late: Exception, is_small: bool
) -> T:
    """As `made`, in the line of the loadings; one that does not end in time ends with `late`, whatever it does.

    For a small one, which is there in a moment, the page waits a while before it shows that it is not.
    """
    return _made(loadings(), key, words, work, is_there, late, _FOR_SMALL if is_small else 0.0)


def made(key: Hashable, words: str, work: Callable[[Run], T], is_there: Callable[[], bool]) -> T:
    """The result of a long run. Until it is there the page ends here.

    Args:
        key: what it is made of, by value.
        words: what it does before it says something itself.
        work: is called in the thread of the line, and says how far it is to the run that it is given.
        is_there: whether somebody else's run has brought the same meanwhile, and the page need not wait for its turn.

    Raises:
        BusyError: too many wait already.
        Exception: what the work raised.
    """
    return _made(line(), key, words, work, is_there)


def _made(
    line: Line,
    key: Hashable,
    words: str,
    work: Callable[[Run], T],
    is_there: Callable[[], bool],
    late: Exception | None = None,
    seconds: float = 0.0,
) -> T:
    state = st.session_state
    run: Run | None = state.get("long_run")
    if run is not None and run.key != key:
        run.give_up()
    if state.get("left_line") == key:
        _offer_again()
        st.stop()
    state.left_line = None
    if run is None or run.is_given_up:
        run = state.long_run = line.join(key, visitor.of_session().mark, work)
        run.late = late
    run.ask()
    release_slot()
    is_done = run.wait(AT_FIRST)
    end = time.monotonic() + seconds
    while not is_done and time.monotonic() < end:
        run.wait_for_end(EVERY)
        is_done = run.ask() == "done"
    if not is_done:
        _begin_to_watch(run, words, is_there)
        st.stop()
    del state["long_run"]
    return run.take()


@contextmanager
def whole_page() -> Generator[None]:
    """Around a whole page. One that is drawn to its end has asked for every long run that it needs; another is given up."""
    st.session_state.n_stopped = 0
    say_anew()
    yield
    run: Run | None = st.session_state.pop("long_run", None)
    if run is not None:
        run.give_up()


def _begin_to_watch(run: Run, words: str, is_there: Callable[[], bool]) -> None:
    now = run.state
    every = _IN_LINE if now == "waiting" else EVERY
    st.fragment(_watch, run_every=every)(now, words, is_there)


def _watch(then: State, words: str, is_there: Callable[[], bool]) -> None:
    """How far the session's run is, as long as it is in the state in which the page found it."""
    run: Run | None = st.session_state.get("long_run")
    if run is not None and run.is_stopped:
        run.wait_for_end(EVERY)
    if run is None or run.ask() != then or (then == "waiting" and is_there()):
        st.rerun()
    with st.container(key="long-run"):
        if then == "waiting":
            _row(run, "Leave the line").markdown(f":material/hourglass_top: {place_words(run)}")
        else:
            _at_work(run, words)


def _at_work(run: Run, words: str) -> None:
    place = _row(run, "Stop")
    if run.said is None:
        place.markdown(f":material/menu_book: {literal(words)} …")
        # The first token is seen when it is there, not when the browser asks the next time.
        run.wait(EVERY)
    if isinstance(run.said, Progress):
        place.progress(run.said.share or 0.0, literal(f"{words}: {run.said.words}"))
    elif isinstance(run.said, Writing):
        place.markdown(f":material/edit_note: {literal(run.said.words)}")
        for text in run.said.written.texts:
            st.text(text)


def _row(run: Run, button: str) -> Any:
    """A button, and the place for words behind it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(button, key="long-run-stop", icon=":material/stop:", on_click=_stop, args=(run,), disabled=run.is_stopped)
        return st.empty()


def place_words(run: Run) -> str:
    """`2nd in line; 1 run before yours`."""
    n_before = run.n_before
    nth = {1: "1st", 2: "2nd", 3: "3rd"}.get(n_before + 1, f"{n_before + 1}th")
    return f"{nth} in line; {n_before} run{'s' * (n_before != 1)} before yours"


def _stop(run: Run) -> None:
    # Of what has written nothing there is nothing to keep.
    if isinstance(run.said, Writing):
        run.stop()
    else:
        run.give_up()
    if run.is_given_up:
        st.session_state.left_line = run.key


def _offer_again() -> None:
    st.button("Begin again", key="long-run-again", icon=":material/play_arrow:", on_click=_stand_again)


def _stand_again() -> None:
    st.session_state.left_line = None


def _offer_to_write_again(key: Hashable, ended: Ended) -> None:
    icon, state = ":material/restart_alt:", st.session_state
    if key in state.said_ended:
        return
    state.said_ended.add(key)
    with st.container(key=f"stopped-{state.n_stopped}", horizontal=True, vertical_alignment="center"):
        st.caption(ended.words, width="content")
        words, number = "Write it again, to its end", state.n_stopped
        st.button(words, key=f"write-again-{number}", icon=icon, on_click=_remember, args=(key, None))
    state.n_stopped += 1


def say_anew() -> None:
    """Where runs were ended is said once, though a page may ask for them several times; from here on once more."""
    st.session_state.said_ended = set()


def _remember(key: Hashable, ended: Ended | None) -> None:
    """Where this one was ended, in this session; None: it goes on to its end."""
    others = {other: where for other, where in _ended().items() if other != key}
    st.session_state.ended_runs = dict([*others.items(), *([(key, ended)] if ended else [])][-_MOST_STOPPED:])


def _ended() -> dict[Hashable, Ended]:
    return st.session_state.get("ended_runs", {})
