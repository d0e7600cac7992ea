"""The tour through the package, run cell by cell in a kernel of its own. See also `test_readme.py`."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
TOUR = ROOT / "docs" / "tour.ipynb"


@pytest.fixture(scope="module")
def book() -> Any:
    """The tour after its run."""
    read = nbformat.read(TOUR, as_version=4)
    nbformat.validate(read)
    NotebookClient(read, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    return read


def said(book: Any, code: str) -> str:
    """All text that the cell with this code printed or showed."""
    (cell,) = [cell for cell in book.cells if cell.cell_type == "code" and code in cell.source]
    return "".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def test_the_notebook_is_stored_without_outputs() -> None:
    stored = nbformat.read(TOUR, as_version=4)
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in stored.cells)


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
