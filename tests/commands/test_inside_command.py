"""`trace --inside` keeps the numbers of a head in the file, and `render --inside` shows them."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

import transformer_viz as tv
from transformer_viz.inside_head import numbers
from transformer_viz.numbers_in_words import number_words

TRACE = ("trace", "abc", "--checkpoint", "tiny", "--device", "cpu", "-o", "run.npz")


class Page(HTMLParser):
    """The words of a page, its tables' cells, and every name of an element and an attribute."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.names, self.cells, self.text = set[str](), list[str](), ""
        self.feed(Path(path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.cells:
            self.cells[-1] += data


def test_the_file_holds_what_tv_inside_gives(home, cli) -> None:
    assert cli(*TRACE, "--inside", "cross.1.2:3", "--inside", "decoder.2.1:2", "--inside", "cross.1.2:3").code == 0
    trace, checkpoint = tv.load_trace("run.npz"), tv.load_checkpoint("tiny", device="cpu")
    assert [inside.address for inside in trace.insides] == ["cross.1.2:3", "decoder.2.1:2"]
    for inside in trace.insides:
        again = tv.inspect_head(checkpoint, trace, inside.place, inside.row)
        assert inside.arrays.keys() == again.arrays.keys()
        assert all(np.array_equal(array, again.arrays[name]) for name, array in inside.arrays.items())
        for name in ("lens", "scale", "norm", "norm_kind", "norm_epsilon", "row_token", "key_tokens", "written", "run"):
            assert getattr(inside, name) == getattr(again, name)
        assert inside.reasons.tolist() == again.reasons.tolist()


def test_the_page_shows_the_numbers_and_asks_nothing(home, cli) -> None:
    assert cli(*TRACE, "--inside", "decoder.1.1:3").code == 0
    done = cli("render", "run.npz", "--inside", "-o", "run.html", "--theme", "dark", "--large")
    assert (done.code, done.err) == (0, "") and re.fullmatch(r"run\.html: [\d.]+ kB\n", done.out)
    (inside,) = tv.load_trace("run.npz").insides
    page = Page("run.html")
    assert {"script", "src", "href", "onclick", "link", "img", "iframe"}.isdisjoint(page.names)
    cells = [cell.strip() for cell in page.cells]
    for key in range(len(inside.key_tokens)):
        dot, score = numbers.value_of(inside, f"dot.{key + 1}"), inside.require("scores")[key]
        at = cells.index(number_words(dot, 3))
        assert (cells[at - 1], cells[at + 1]) == (numbers.label(inside, key), number_words(score, 3))
        assert cells[at + 2].startswith("in the future") == inside.masked[key]
    titles = ["What enters the row", "Query", "Keys", "Scores and mask", "Weights", "Values", "Output of the head", "W_O"]
    places = [page.text.index(f"{n}. {title}") for n, title in enumerate([*titles, "Residual stream"], start=1)]
    assert places == sorted(places)


def test_tokens_are_text_on_the_page(home, cli) -> None:
    checkpoint, evil = tv.load_checkpoint("tiny", device="cpu"), "<script>alert(1)</script>"
    trace = tv.decode(checkpoint, "abc")
    inside = tv.inspect_head(checkpoint, trace, "cross.1.1", 1)
    trace = replace(trace, source_tokens=(evil, *trace.source_tokens[1:]), source=evil)
    tv.save_trace(trace.with_inside(replace(inside, **trace.inside_labels("cross", 1))), "run.npz")
    assert cli("render", "run.npz", "--inside", "-o", "run.html").code == 0
    assert "script" not in Page("run.html").names and evil in Page("run.html").text


def test_what_is_not_there_is_said(home, cli, mistake: Callable[..., str]) -> None:
    assert "layers 1 to 2" in mistake(*TRACE, "--inside", "cross.9.1:1") and not Path("run.npz").exists()
    assert "rows 1 to" in mistake(*TRACE, "--inside", "cross.1.1:99")
    assert "has no decoder attention; it has cross" in mistake(*TRACE, "--kinds", "cross", "--inside", "decoder.1.1:1")
    assert "write it as cross.2.3:5" in mistake(*TRACE, "--inside", "cross.1.1")
    cli(*TRACE)
    assert "holds the inside of no head" in mistake("render", "run.npz", "--inside", "-o", "run.html")
    told = mistake("render", "run.npz", "--inside", "--head", "cross", "-o", "run.html")
    assert "--head cannot be used with --inside" in told
    assert "it is of .html" in mistake("render", "run.npz", "--inside", "-o", "run.png")
    assert not Path("run.html").exists()
