"""The tour through the package, run cell by cell in a kernel of its own. See also `test_readme.py`."""

import re
from typing import Any

import nbformat
import pytest

from docs.tour import TOUR, run


@pytest.fixture(scope="module")
def book() -> Any:
    """The tour after its run."""
    read = nbformat.read(TOUR, as_version=4)
    nbformat.validate(read)
    return run(read, with_pictures=False)


def said(book: Any, code: str) -> str:
    """All text that the cell with this code printed or showed."""
    (cell,) = [cell for cell in book.cells if cell.cell_type == "code" and code in cell.source]
    return "".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def test_what_shows_itself_is_kept_as_a_small_picture() -> None:
    stored = nbformat.read(TOUR, as_version=4)
    shown = {
        cell.source.splitlines()[-1]: cell.outputs[0].data
        for cell in stored.cells
        if cell.cell_type == "code" and cell.outputs[0].get("data")
    }
    assert "image/png" in shown["trace"] and "image/png" in shown["figure"]
    assert TOUR.stat().st_size < 200_000


@pytest.mark.slow
def test_what_is_kept_is_what_a_run_says(book: Any) -> None:
    stored = nbformat.read(TOUR, as_version=4)
    assert [cell.source for cell in stored.cells] == [cell.source for cell in book.cells]
    for kept, new in zip(stored.cells, book.cells, strict=True):
        assert _words(kept) == _words(new)


def _words(cell: Any) -> str:
    """What a cell printed or gave, but for a figure, whose text is all its numbers; a file's size is that of this version."""
    if cell.source.endswith("figure"):
        return ""
    texts = [output.get("text") or output["data"].get("text/plain", "") for output in cell.get("outputs", [])]
    return re.sub(r"[\d,]+ bytes", "n bytes", "".join(texts))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning:zmq.*")
def test_every_cell_runs_and_says_what_is_so(book: Any) -> None:
    assert "dlrow olleh" in said(book, "tv.load_checkpoint")
    assert "<Trace 'hello world' → 'dlrow olleh': 12 steps" in said(book, "tv.load_checkpoint")
    assert "dlrow olleh → " in said(book, "edits=[edit]")
    assert said(book, "check_masks") == "True\n"
    assert "in the future" in said(book, "REASON_WORDS[code]")
    assert "hello.html" in said(book, "tv.export.save")


@pytest.mark.slow
def test_a_trace_shows_itself_as_a_page_in_a_frame(book: Any) -> None:
    (cell,) = [cell for cell in book.cells if cell.source == "trace"]
    (output,) = cell.outputs
    assert output.data["text/html"].startswith("<iframe srcdoc=")
    assert output.data["text/plain"].startswith("<Trace ")
    assert len(output.data["text/html"]) < 2_300_000
