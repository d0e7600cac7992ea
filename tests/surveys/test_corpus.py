"""A corpus is read line by line: what cannot be read is one line, and says why."""

import io
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from transformer_viz.errors import InputError
from transformer_viz.surveys import corpus
from transformer_viz.surveys.corpus import LONGEST_LINE, Line, read_corpus


def lines(data: bytes, tmp_path: Path) -> list[Line]:
    (tmp_path / "texts.txt").write_bytes(data)
    found = read_corpus(tmp_path / "texts.txt")
    assert found.source == "texts.txt"
    return list(found.lines)


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("ä\u2028\x0b\x85\r, \n ".encode(), ["ä\u2028\x0b\x85\r, ", " "]),
    ],
    ids=["each ends", "the last does not end", "CRLF", "BOM", "only LF ends a line"],
)
def test_a_text_is_a_line_and_nothing_of_it_is_changed(data, texts, tmp_path):
    assert lines(data, tmp_path) == [Line(number, text) for number, text in enumerate(texts, 1)]


def test_what_is_no_text_is_counted_and_says_why(tmp_path):
    found = lines(b"a\n\n\xff\xfeb\nc" + b"d" * LONGEST_LINE + b"\ne\n", tmp_path)
    assert [line.number for line in found] == [1, 2, 3, 4, 5]
    too_long = f"it has {LONGEST_LINE + 1:,} bytes; at most {LONGEST_LINE:,} are read"
    assert [line.fault for line in found] == [None, "it is empty", "it is not UTF-8 text", too_long, None]
    assert (found[2].text, found[4].text) == ("\ufffd\ufffdb", "e")
    (line,) = read_corpus(["\ud800"]).lines
    assert line.fault == "it is not UTF-8 text" and line.text.encode()


@pytest.mark.parametrize("begins", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
@pytest.mark.parametrize("ends", [b"", b"\r\n"], ids=["", "CRLF"])
def test_the_longest_line_is_read_however_it_ends(begins, ends, tmp_path):
    [whole], [more] = (lines(begins + b"a" * n + ends, tmp_path) for n in (LONGEST_LINE, LONGEST_LINE + 1))
    assert (whole.fault, len(whole.text)) == (None, LONGEST_LINE) and more.fault is not None


def test_a_line_of_ten_megabytes_is_never_held(tmp_path):
    (tmp_path / "texts.txt").write_bytes(b"x" * 10**7 + b"\nab\n")
    tracemalloc.start()
    try:
        first, second = read_corpus(tmp_path / "texts.txt").lines
        assert tracemalloc.get_traced_memory()[1] < 4 * 10**6
    finally:
        tracemalloc.stop()
    assert first.fault == "it has 10,000,000 bytes; at most 100,000 are read"
    assert second == Line(2, "ab")


def test_blocks_are_of_64_lines_in_order_and_a_digest_is_of_all_lines_and_targets():
    blocks = read_corpus([str(n) for n in range(150)]).blocks
    wanted = [(0, 64, 1), (1, 64, 65), (2, 22, 129)]
    assert [(block.number, len(block.lines), block.lines[0].number) for block in blocks] == wanted
    given = (["a", "b"], None), (["a", "b"], ["a", ""]), (["a", "c"], None), (["a"], None)
    assert len({read_corpus(texts, targets).digest for texts, targets in given}) == 4


def test_standard_input_is_read_to_its_end(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ä\nb".encode()), encoding="ascii"))
    found = read_corpus("-")
    assert (found.source, found.lines) == ("standard input", (Line(1, "ä"), Line(2, "b")))


def test_a_target_belongs_to_each_text_and_an_empty_one_is_not_known(tmp_path):
    (tmp_path / "texts").write_bytes(b"a\nb\nc\n")
    (tmp_path / "targets").write_bytes(b"A\n\n\xff\n")
    found = list(read_corpus(tmp_path / "texts", tmp_path / "targets").lines)
    assert found == [Line(1, "a", "A"), Line(2, "b"), Line(3, "c", "\ufffd", "of its target: it is not UTF-8 text")]
    for n in (2, 4):
        with pytest.raises(InputError, match=f"{n} texts and 3 targets"):
            read_corpus(["a"] * n, tmp_path / "targets")


def test_what_holds_no_text_is_refused(tmp_path, monkeypatch):
    (tmp_path / "empty").touch()
    wrong: list[tuple[Any, str]] = [
        (tmp_path / "none", "There is no file"),
        (tmp_path, "it is a folder, not a file"),
        (tmp_path / "empty", "There is no text"),
        ([], "There is no text"),
        ([b"a"], "b'a' is no text"),
    ]
    for given, said in wrong:
        with pytest.raises(InputError, match=said):
            list(read_corpus(given).lines)
    monkeypatch.setattr(corpus, "MOST_LINES", 2)
    with pytest.raises(InputError, match="more than 2 lines"):
        list(read_corpus(["a", "b", "c"]).lines)
