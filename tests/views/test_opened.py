"""What a session holds of opened files: how many, under which names, and that nobody else sees them."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.inside import nothing_is_open
from transformer_viz import Trace
from transformer_viz.trace import limits
from transformer_viz.trace.store import to_bytes
from transformer_viz.views.components import opened


def page() -> None:
    import streamlit as st

    from transformer_viz.views.components import opened

    opened.box("place")
    opened.say()
    st.text("\n".join(opened.traces()))
    st.text(str(opened.latest()))


def new() -> AppTest:
    return AppTest.from_function(page, default_timeout=60).run()


def trace(name: str = "x", n: int = 3, layers: int = 1, heads: int = 1, word: str = "a") -> Trace:
    weights = np.full((layers, heads, 1, n), 1 / n)
    return Trace.from_arrays(cross=weights, source_tokens=[word] * n, target_tokens=[name])


def drop(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    at.file_uploader[0].set_value([(name, data, "") for name, data in files]).run()
    assert not at.exception
    return at


def names(at: AppTest) -> list[str]:
    return at.text[0].value.split("\n")


def errors(at: AppTest) -> str:
    return " ".join(error.value for error in at.error).replace("\\", "")


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_open(monkeypatch)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("hello.npz", "hello"),
        ("../../etc/passwd.npz", "passwd"),
        ("C:\\runs\\a.NPZ", "a"),
        ("a\u202e\x00\nb.npz", "ab"),
        (".npz", "trace"),
        ("<b>$x$.npz", "<b>$x$"),
        ("no-ending", "no-ending"),
        ("ä" * 300 + ".npz", "ä" * 99 + "…"),
    ],
)
def test_a_name_is_text_and_never_a_path(given: str, name: str) -> None:
    assert names(drop(new(), (given, to_bytes(trace())))) == [name]


def test_equal_names_are_told_apart_and_equal_files_are_one() -> None:
    a, b = to_bytes(trace("a")), to_bytes(trace("b"))
    at = drop(new(), ("run.npz", a), ("run.npz", b), ("again.npz", a))
    assert names(at) == ["run", "run (2)"]
    assert at.text[1].value == "run", "the one that was dropped last, though it was there already"


def test_the_oldest_gives_way_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MOST_TRACES", 3)
    at = drop(new(), *((f"{name}.npz", to_bytes(trace(name))) for name in "abc"))
    assert names(at) == ["a", "b", "c"]
    at = drop(at, ("d.npz", to_bytes(trace("d"))))
    assert names(at) == ["b", "c", "d"]
    assert at.info[0].value.replace("\\", "").startswith("a was closed to make room")


def test_bytes_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MOST_HELD", 4 * trace(n=500).nbytes)
    at = drop(new(), *((f"{name}.npz", to_bytes(trace(name, n=500))) for name in "abcde"))
    assert names(at) == ["b", "c", "d", "e"]


def test_size_counts_every_array() -> None:
    assert trace(n=11).nbytes == 11 * 4 + 11


def test_a_file_over_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_FILE", 2**20)
    at = drop(new(), ("big.npz", bytes(2**20 + 1)))
    assert "it has 1,048,577 bytes; at most 1,048,576 are allowed" in errors(at)


def test_the_server_may_allow_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.get_option", lambda name: 1)
    assert opened.largest_file() == 2**20


def test_too_many_at_once_are_said() -> None:
    files = [(f"{i}.npz", to_bytes(trace(str(i)))) for i in range(opened.MOST_TRACES + 2)]
    at = drop(new(), *files)
    assert len(names(at)) == opened.MOST_TRACES
    assert "10 files are too many at once; the first 8 were read" in errors(at)


def test_sessions_share_nothing_but_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = to_bytes(trace("a")), to_bytes(trace("b"))
    first, second = drop(new(), ("a.npz", a)), new()
    assert names(second) == [""]
    monkeypatch.setattr(opened, "MOST_OF_ALL", trace("a").nbytes)
    second = drop(second, ("b.npz", b))
    assert "holds as many opened traces as it can" in errors(second)
    assert names(first.run()) == ["a"]


def test_what_is_let_go_is_free_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MOST_OF_ALL", trace("a").nbytes)
    monkeypatch.setattr(opened, "MOST_TRACES", 1)
    at = drop(new(), ("a.npz", to_bytes(trace("a"))))
    at = drop(at, ("b.npz", to_bytes(trace("b"))))
    assert (names(at), errors(at)) == (["b"], "")


def test_a_box_that_was_read_is_empty_again() -> None:
    """Streamlit would keep the files' bytes for as long as the page is open."""
    at = drop(new(), ("a.npz", to_bytes(trace())))
    assert at.file_uploader[0].value == []
    assert at.file_uploader[0].key == "place_1"
