"""What a session holds of opened files: how many, under which names, and that nobody else sees them."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.inside import nothing_is_open
from tests.views.drawn import drop, said
from transformer_viz import Trace
from transformer_viz.trace import limits
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.components import opened


def page() -> None:
    import streamlit as st

    from transformer_viz.views.components import opened

    opened.box("place")
    opened.tell()
    st.text("\n".join(opened.traces()))
    st.text(str(opened.latest()))


def new() -> AppTest:
    return AppTest.from_function(page, default_timeout=60).run()


def trace(name: str = "x") -> Trace:
    return Trace.from_arrays(cross=np.full((1, 1, 1, 3), 1 / 3), source_tokens=["a"] * 3, target_tokens=[name])


def names(at: AppTest) -> list[str]:
    return at.text[0].value.split("\n")


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_open(monkeypatch)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd.npz", "passwd"),
        ("C:\\runs\\a.NPZ", "a"),
        ("a\u202e\x00\nb.npz", "ab"),
        (".npz", "trace"),
        ("<b>$x$.npz", "<b>$x$"),
        ("ä" * 300 + ".npz", "ä" * 99 + "…"),
    ],
)
def test_a_name_is_text_and_never_a_path(given, name):
    assert names(drop(new(), (given, to_bytes(trace())))) == [name]


def test_equal_names_are_told_apart_and_equal_files_are_one():
    a, b = to_bytes(trace("a")), to_bytes(trace("b"))
    at = drop(new(), ("run.npz", a), ("run.npz", b), ("again.npz", a))
    assert names(at) == ["run", "run (2)"]
    assert at.text[1].value == "run", "the one that was dropped last, though it was there already"


def test_the_oldest_gives_way_and_is_named(monkeypatch):
    monkeypatch.setattr(opened, "MOST_TRACES", 3)
    at = drop(new(), *((f"{name}.npz", to_bytes(trace(name))) for name in "abc"))
    assert names(at) == ["a", "b", "c"]
    at = drop(at, ("d.npz", to_bytes(trace("d"))))
    assert names(at) == ["b", "c", "d"]
    assert "a was closed to make room" in said(at)
    # Bytes count too; and what was let go is free for others.
    monkeypatch.setattr(opened, "MOST_HELD", 2 * trace().nbytes)
    monkeypatch.setattr(opened, "MOST_OF_ALL", 2 * trace().nbytes)
    at = drop(at, ("e.npz", to_bytes(trace("e"))))
    assert names(at) == ["d", "e"] and not at.error


def test_a_file_over_the_limit_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_FILE", 2**20)
    at = drop(new(), ("big.npz", bytes(2**20 + 1)))
    assert "it has 1,048,577 bytes; at most 1,048,576 are allowed" in said(at)


def test_too_many_at_once_are_said():
    files = [(f"{i}.npz", to_bytes(trace(str(i)))) for i in range(opened.MOST_TRACES + 2)]
    at = drop(new(), *files)
    assert len(names(at)) == opened.MOST_TRACES
    assert "10 files are too many at once; the first 8 were read" in said(at)


def test_sessions_share_nothing_but_the_limit(monkeypatch):
    a, b = to_bytes(trace("a")), to_bytes(trace("b"))
    first, second = drop(new(), ("a.npz", a)), new()
    assert names(second) == [""]
    monkeypatch.setattr(opened, "MOST_OF_ALL", trace("a").nbytes)
    second = drop(second, ("b.npz", b))
    assert "holds as many opened traces as it can" in said(second)
    assert names(first.run()) == ["a"]


def test_a_box_that_was_read_is_empty_again():
    """Streamlit would keep the files' bytes for as long as the page is open."""
    at = drop(new(), ("a.npz", to_bytes(trace())))
    assert at.file_uploader[0].value == []
    assert at.file_uploader[0].key == "place_1"
