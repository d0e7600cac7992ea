"""Explore with an opened trace file instead of a model's run. Needs no model and no torch."""

from typing import Any

import streamlit as st

from transformer_viz.errors import TransformerVizError
from transformer_viz.language import enumerated, later, say
from transformer_viz.text_display import display_token, shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import guess, measured, opened, uploader
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import call
from transformer_viz.views.explore import curtain, file_measures, hypotheses, picture, tables
from transformer_viz.views.explore.shown import Shown
from transformer_viz.views.state import aligner, display_options, focus, link, words

_EXAMPLE, _EXAMPLE_CHECKPOINT = "hello", "reverse"
_LONGEST_WORDS = 80
_COMMAND = "python -m transformer_viz trace hello -o hello.npz"
_PYTHON = """import transformer_viz as tv

trace = tv.Trace.from_arrays(
    cross=weights,  # (…, query, key)
    source_tokens=["das", "Haus"],
    target_tokens=["<s>", "the"],
)
tv.save_trace(trace, "mine.npz")"""


_WAYS: tuple[tuple[str, ...], ...] = (
    (later("From this app"), later("The tab Export of any run: Data, then Trace.")),
    (
        later("From the command line"),
        later("Any checkpoint or `--model`, any strategy; a beam search brings its tree."),
        _COMMAND,
        "bash",
    ),
    (later("From your own model"), later("Attention that another program computed; one kind is enough."), _PYTHON, "python"),
)


def show() -> None:
    """Draws the file that is chosen; where none is open, how to come to one."""
    if opened.traces():
        _show_file()
        return
    # What a trace file is, and three ways to one. The URL is left as it is: a link may wait for its file.
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        st.markdown(say("#### Open a trace file"))
        st.markdown(
            say(
                "A trace is the complete record of one run: its tokens, attention, masks and steps. It is shown "
                "here without the model that made it."
            )
        )
        if {*link.address()} - {"checkpoint"}:
            words = say("A link cannot hold a file. Drop the file here, and the link's layer, head and step are shown.")
            st.info(words, icon=":material/link:")
        with st.container(key="open-drop"):
            opened.box("open")
            opened.tell()
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(say("Open an example"), icon=":material/play_arrow:", key="open-example", on_click=_open_example)
            st.caption(
                say(
                    "{example}, decoded now by the checkpoint {example_checkpoint}, as a file.",
                    example=_EXAMPLE,
                    example_checkpoint=_EXAMPLE_CHECKPOINT,
                )
            )
        st.caption(say("Nothing in a file can run. The server keeps no file; only this session sees it."))
    with right:
        st.markdown(say("#### Three ways to get one"))
        for title, words, *lines in _WAYS:
            with st.container(border=True):
                st.markdown(f"**{say(title)}** &nbsp; {say(words)}")
                if lines:
                    st.code(lines[0], language=lines[1], wrap_lines=lines[1] == "bash")


def _open_example() -> None:
    """Opens a run of the shipped checkpoint, through the bytes of its file like any other."""
    # Here, because the page itself needs neither model nor torch.
    from transformer_viz.trace.store import to_bytes
    from transformer_viz.views.cache import model_list, runs

    opened.hush()
    try:
        trace = runs.run(model_list.load(_EXAMPLE_CHECKPOINT, "cpu"), _EXAMPLE)
        opened.add(f"{_EXAMPLE}.npz", to_bytes(trace))
    except TransformerVizError as error:
        uploader.note(opened.SORT, str(error))


# ---- one opened file


def _show_file() -> None:
    file, now = opened.get(_chooser()), display_options.current()
    whole, run = file.trace, file.run
    search, tokens, node, tree = whole.search, whole, 0, None
    if search is not None:
        node = hypotheses.start(search, run)
        run = f"{run}n{node}"
        try:
            tokens = call(Trace.at_node, whole, node)
        except TransformerVizError as error:
            st.error(literal(str(error)), icon=":material/error:")
            return
    shown = words.shown(tokens, run)
    focus.start(shown, None, run)
    aligner.start(tokens, None)
    covers = curtain.of_page(shown, None, now)
    if covers.is_guessed:
        guess.hear(shown, focus.current())
        covers = curtain.of_page(shown, None, now)
    held = file_measures.held(tokens, is_offered=covers.is_open and measured.are_shown())
    if search is not None and now.with_answer:
        tree = hypotheses.show(whole, search, node)
        hypotheses.tell(tokens, search, node)
    picture.show(shown, now, covers, held)
    tables.show(Shown(shown, tokens, whole=whole, measured=held, tree=tree))
    if left_out := [*[say("What if")] * whole.writes, *[say("the untrained baseline")] * ("task" in whole.made_by)]:
        st.caption(say("Not available for a file, since they run the model: {left_out}.", left_out=enumerated(left_out)))


def _chooser() -> str:
    """Draws the row above: which file, another one, what is in it. What was dropped last is chosen. Returns the file's name."""
    state, names = st.session_state, list(opened.traces())
    if state.get("open_seen") != opened.latest() or state.get("open_name") not in names:
        state.open_name = opened.latest() if opened.latest() in names else names[-1]
        state.open_seen = opened.latest()
    with st.container(horizontal=True, vertical_alignment="center", key="file-bar"):
        looks: Any = {"label_visibility": "collapsed", "width": 320, "persist_state": "session"}
        st.selectbox(say("Opened file"), names, key="open_name", on_change=opened.hush, **looks)
        with st.popover(say("Open another"), icon=":material/folder_open:"):
            opened.box("open")
        st.button(
            say("Close"),
            icon=":material/close:",
            key="open-close",
            on_click=lambda: opened.close(state.open_name),
            type="tertiary",
            help=say("Close this file"),
        )
        # What was read and written, and what the file says made it.
        trace = opened.get(state.open_name).trace
        by = [trace.made_by[key] for key in ("checkpoint", "variant", "strategy", "device") if trace.made_by.get(key)]
        by = [_short(str(one)) for one in by] + [say("part of its attention not seen")] * bool(trace.made_by.get("not_seen"))
        by += [say("edit {edit}", edit=_short(edit)) for edit in trace.edits[:3]] + (["…"] if len(trace.edits) > 3 else [])
        by += [say("with the mistake {mistake}", mistake=_short(trace.mistake))] if trace.mistake else []
        texts = (trace.source, trace.text) if display_options.current().with_answer else (trace.source,)
        run = " → ".join(f"**{literal(display_token(text, _LONGEST_WORDS))}**" for text in texts if text)
        st.markdown(" · ".join(filter(None, [run, literal(", ".join(by))])))
    opened.tell()
    return state.open_name


def _short(words: str) -> str:
    """On one line, cut where it is long."""
    return shorten(" ".join(words[: 2 * _LONGEST_WORDS].split()), _LONGEST_WORDS)
