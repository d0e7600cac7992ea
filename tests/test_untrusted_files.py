"""Files that anyone may have written: what is no regular file is never waited for, and odd JSON is refused with its reason."""

import contextlib
import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from transformer_viz import load_trace, untrusted_files
from transformer_viz.errors import FileError, TransformerVizError, short_repr
from transformer_viz.text_display import shorten
from transformer_viz.training.embeddings import read_matrix

MOST = 1000


def listening(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as open_one:
        open_one.bind(path.name)  # the name of a socket is short


# How each is made, and what is said of it.
NO_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pipe": (os.mkfifo, "it is a pipe, not a file"),
    "socket": (listening, "no such device or address"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a file"),
    "loop of links": (lambda path: path.symlink_to(path.name), "too many levels"),
    "folder": (Path.mkdir, "it is a folder, not a file"),
    "link to nothing": (lambda path: path.symlink_to("nowhere"), ""),
}
READERS: dict[str, Callable[[Path], Any]] = {
    "bytes_of": lambda path: untrusted_files.read_bytes(path, MOST),
    "text_of": lambda path: untrusted_files.read_text(path, MOST),
    "json_of": lambda path: untrusted_files.read_json(path, MOST),
    "tensors": lambda path: untrusted_files.open_tensors(path, MOST, MOST).__enter__(),
    "load_trace": load_trace,
    "read_matrix": read_matrix,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, kind, reader):
    """Also by a link to it. A pipe without a writer would block for ever: whoever waits here hangs the test."""
    make, words = NO_FILES[kind]
    path, link = tmp_path / "it.npy", tmp_path / "link.npy"
    make(path)
    link.symlink_to(path)
    for name in (path, link):
        with pytest.raises((TransformerVizError, FileNotFoundError)) as caught:
            READERS[reader](name)
        assert words in str(caught.value)


def test_links_to_files_and_folders_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.json").write_text('{"a": 1}')
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "link" / "b.json").symlink_to("a.json")
    assert untrusted_files.read_json(tmp_path / "link" / "b.json", MOST) == {"a": 1}
    assert untrusted_files.is_folder(tmp_path / "link") and untrusted_files.is_file(tmp_path / "link" / "b.json")


def test_no_more_than_allowed_is_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * MOST)
    assert untrusted_files.read_bytes(path, MOST) == b"x" * MOST
    with pytest.raises(FileError, match="it has 1,000 bytes; at most 999 are read"):
        untrusted_files.read_bytes(path, MOST - 1)
    # A file with a hole takes no room on the disk, and would take all memory.
    os.truncate(path, 2**40)
    with pytest.raises(FileError, match="1,099,511,627,776 bytes"):
        untrusted_files.read_bytes(path, MOST)


def test_what_was_opened_is_what_is_read(tmp_path, monkeypatch):
    """Between the opening and the reading of tensors another file is put under the name, a pipe even: nobody looks there."""
    path = tmp_path / "a.safetensors"
    save_file({"a": np.arange(3, dtype=np.float32)}, path)
    fstat = os.fstat

    def swapped(number: int) -> os.stat_result:
        if stat.S_ISREG(fstat(number).st_mode) and path.is_file():
            path.unlink()
            os.mkfifo(path)
        return fstat(number)

    monkeypatch.setattr(os, "fstat", swapped)
    with untrusted_files.open_tensors(path, MOST, MOST) as file:
        assert file.get_tensor("a").tolist() == [0, 1, 2]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 7, b"\xff" * 20, (900).to_bytes(8, "little") + b"{", (20).to_bytes(8, "little") + b"{" * 20]
)
def test_damaged_tensors(tmp_path, data):
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"no (whole )?safetensors file"), untrusted_files.open_tensors(path, MOST, MOST):
        pass


def test_a_file_that_memory_has_no_room_for(tmp_path, monkeypatch):
    def full(*_: Any, **__: Any) -> None:
        raise MemoryError("Cannot allocate memory (os error 12)")

    path = tmp_path / "a.safetensors"
    save_file({"a": np.zeros(1)}, path)
    monkeypatch.setattr("safetensors.safe_open", full)
    with pytest.raises(FileError, match="needs more memory than there is"), untrusted_files.open_tensors(path, MOST, MOST):
        pass


def test_a_long_header_is_not_opened(tmp_path):
    """Its names would become objects: 100 MB of them are allowed by the format."""
    path = tmp_path / "a.safetensors"
    save_file({f"weight {i}": np.zeros(1) for i in range(100)}, path)
    with pytest.raises(FileError, match="names more than 1,000 bytes"), untrusted_files.open_tensors(path, 10**6, MOST):
        pass


def test_a_name_that_no_file_can_have(tmp_path):
    for name in ("a\0b", "a" * 300, "a/" * 3000):
        with pytest.raises((FileError, FileNotFoundError)):
            untrusted_files.read_bytes(tmp_path / name, MOST)
        assert not untrusted_files.is_file(tmp_path / name)
        assert not untrusted_files.is_folder(tmp_path / name)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="not a directory"):
        untrusted_files.read_bytes(tmp_path / "file" / "below", MOST)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_looked_into(tmp_path):
    (tmp_path / "shut").mkdir(mode=0)
    assert untrusted_files.list_folder(tmp_path / "shut") == []
    assert not untrusted_files.is_file(tmp_path / "shut" / "a")


# JSON


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": {"c": 1, "d": 2, "c": 3}}', "'c' stands twice"),
        ('{"a": NaN}', "NaN should be a finite number"),
        ("[-Infinity]", "-Infinity should be a finite number"),
        ("[1e999]", "1e999 should be a finite number"),
        ("1" * 5000, "not JSON"),
        ('["\\ud800"]', "half of a character"),
        ('{"\\udfff": 1}', "half of a character"),
        ("[" * 65 + "]" * 65, "more than 64 deep"),
        ("[" * 100_000, "not JSON"),
        ('{"a":' * 100_000, "not JSON"),
        ("", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        ('{"a": 1}x', "not JSON"),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_odd_json(text, words):
    with pytest.raises(FileError, match=words):
        untrusted_files.parse_json(text)


def test_ordinary_json_is_what_python_reads():
    data = {"a": [1, -2.5, 1e-7, True, None, "ä␣\u202e<b>😀", {}], "b": {"": [[]]}, "big": 10**400}
    text = json.dumps(data)
    assert untrusted_files.parse_json(text) == json.loads(text) == data
    assert untrusted_files.parse_json("[" * 64 + "]" * 64) == json.loads("[" * 64 + "]" * 64)


def test_names_are_counted_once():
    """A hundred thousand names, the last of them twice: looked for one by one they would take hours."""
    names = ",".join(f'"{number}":0' for number in range(100_000))
    with pytest.raises(FileError, match="'99999' stands twice"):
        untrusted_files.parse_json(f'{{{names},"99999":0}}')


# Messages


def test_a_message_is_never_longer_than_a_screen():
    said = str(TransformerVizError("The alphabet " + "x" * 10**6 + " is not possible; take another."))
    assert len(said) < 2000
    assert said.startswith("The alphabet x") and said.endswith("x is not possible; take another.")
    assert str(TransformerVizError("It is short.")) == "It is short."


def test_what_was_given_is_quoted_in_short():
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    for value in ("x" * 10**6, [1] * 10**6, {"a" * 1000: deep}, 10**4000, deep):
        assert len(short_repr(value)) < 300
    assert short_repr({"a": [1, None]}) == "{'a': [1, None]}"
    assert (shorten("abcd", 4), shorten("abcde", 4)) == ("abcd", "abc…")
