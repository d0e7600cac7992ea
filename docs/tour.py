"""Runs the tour and keeps what it shows in it: `python -m docs.tour [FILE]`.

GitHub draws no page within a page, and a chart of Plotly brings its program along: both are kept as pictures, made in the
notebook's own kernel from what the cell gave.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
TOUR = ROOT / "docs" / "tour.ipynb"
_PICTURE = """
import tempfile
from pathlib import Path
from IPython.display import Image
import transformer_viz as tv
_file = Path(tempfile.mkdtemp()) / "picture.png"
_ = {given}
if isinstance(_, tv.Trace):
    tv.export.save(_, _file, width=900, scale=1)
else:
    _.write_image(_file, width=700, height=460)
Image(_file)
"""


def run(book: Any, *, with_pictures: bool) -> Any:
    """Runs every cell of a notebook in a kernel of its own.

    Args:
        book: as of `nbformat.read`; its outputs are replaced.
        with_pictures: whether pages and charts become pictures, which needs Chromium.

    Returns:
        The same notebook.
    """
    client = NotebookClient(book, timeout=300, resources={"metadata": {"path": str(ROOT)}})
    with client.setup_kernel():
        for number, cell in enumerate(book.cells):
            if cell.cell_type != "code":
                continue
            client.execute_cell(cell, number)
            cell.metadata.pop("execution", None)  # when it ran
            for output in cell.outputs if with_pictures else ():
                if _is_page(output):
                    given = cell.source.strip().splitlines()[-1]
                    output.data = {"image/png": _picture(client, number, given), "text/plain": _one_line(output.data, given)}
            # Where a picture was made, its code stands there.
            book.cells[number] = cell
    return book


def _is_page(output: Any) -> bool:
    data = output.get("data", {})
    return "<iframe" in data.get("text/html", "") or any("plotly" in name for name in data)


def _picture(client: NotebookClient, number: int, given: str) -> str:
    cell = client.execute_cell(nbformat.v4.new_code_cell(_PICTURE.format(given=given)), number, store_history=False)
    return cell.outputs[-1].data["image/png"]


def _one_line(data: Any, given: str) -> str:
    """What stands for it where no picture is drawn."""
    return data.get("text/plain", given)


def main(path: Path) -> None:
    """Writes the tour with its outputs."""
    nbformat.write(run(nbformat.read(TOUR, as_version=4), with_pictures=True), path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TOUR)
