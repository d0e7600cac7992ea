"""What documents say of rules, sizes and formats is what the code does."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import transformer_viz as tv
from docs.memory_table import table
from docs.site import _TOUR, _tour_elsewhere
from tests.mask_checks.ports import Decoder, Pair
from transformer_viz.analysis import head_names
from transformer_viz.analysis.measures import OF_MANY
from transformer_viz.export.saving import FORMATS

ROOT = Path(__file__).resolve().parents[1]
DOCS = Path(__file__).resolve().parents[1] / "docs"
GRADING, MEMORY, EXPORT, SURVEY = (
    (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("grading", "memory", "export", "survey")
)


def test_every_name_is_explained() -> None:
    rows = re.findall(r"^\| `([a-z ]+)` \|", GRADING, flags=re.MULTILINE)
    places = list(head_names.PLACES)
    assert [name for name in rows if name in places] == places, "in the order in which ties are decided"
    assert [name for name in rows if name in head_names.WIDTHS] == list(head_names.WIDTHS)


def test_every_measure_is_explained() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", GRADING, flags=re.MULTILINE)
    assert [name for name in rows if name in OF_MANY] == list(OF_MANY), "in the order of the tables"


def test_the_table_is_what_its_command_prints() -> None:
    assert table() in MEMORY


def test_the_formats_of_export_are_those_of_its_table() -> None:
    assert set(re.findall(r"`\.(\w+)`", EXPORT)) == set(FORMATS)


def test_an_exported_page_is_as_large_as_its_table_says() -> None:
    """To a tenth, since another version of plotly.js has another size."""
    trace = tv.decode(tv.load_checkpoint("reverse", device="cpu"), "abcdefghijkl")
    rows = dict(re.findall(r"^\| `(True|\"packed\"|False|\"cdn\")` \|.*?\| ([\d.]+) MB \|", EXPORT, flags=re.MULTILINE))
    ways = {"True": True, '"packed"': "packed", "False": False, '"cdn"': "cdn"}
    sizes = {name: len(tv.export.html(trace, plotlyjs=way).encode()) / 1e6 for name, way in ways.items()}
    assert {name: float(size) for name, size in rows.items()} == pytest.approx(sizes, rel=0.1)
    (packed,) = re.findall(r"which adds ([\d.]+) MB to the notebook", EXPORT)
    (cdn,) = re.findall(r"`tv.export.frame\(trace, plotlyjs=\"cdn\"\)` adds ([\d.]+) MB", EXPORT)
    frames = [len(tv.export.frame(trace, plotlyjs=how)) / 1e6 for how in ("packed", "cdn")]
    assert [float(packed), float(cdn)] == pytest.approx(frames, abs=0.15)


def test_the_shipped_surveys_have_as_many_texts_as_is_said() -> None:
    found = {}
    for file in (ROOT / "checkpoints").glob("*/survey/summary.json"):
        found[file.parents[1].name] = json.loads(file.read_text(encoding="utf-8"))["texts"]["n"]
    said = {
        name: int(n.replace(",", "")) for n, name in re.findall(r"([\d,]+) of `(\w+)`", SURVEY.partition("## The shipped")[2])
    }
    assert said == {name: n for name, n in found.items() if n != 2000}


def test_the_five_faults_of_a_port_are_what_is_said_of_them() -> None:
    """Each message of docs/port-masks.md is that of its port."""
    document = (DOCS / "port-masks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^        \w[\w ]*: .+\n)+", document, flags=re.MULTILINE)
    said = ["\n".join(line.strip() for line in block.splitlines()) for block in blocks]
    windowed: dict[str, Any] = {"rotary": True, "window": 3}
    ports: tuple[tuple[Any, dict[str, Any]], ...] = (
        (Decoder("window too wide", **windowed), {"window": 3, "layers": 2}),
        (Decoder("positions count padding"), {}),
        (Decoder("cache without window", **windowed), {"window": 3, "layers": 2}),
        (Decoder("prefix too short", prefix=4), {"prefix": 4, "layers": 2}),
        (Pair("cross mask dropped in a batch"), {}),
    )
    for (port, told), words in zip(ports, said, strict=True):
        with pytest.raises(AssertionError) as caught:
            tv.assert_masks(port, **told)
        assert str(caught.value) == words


def test_the_tour_opens_elsewhere_where_the_repository_is_on_github() -> None:
    links = _tour_elsewhere("https://github.com/someone/transformer-viz")
    assert "(https://colab.research.google.com/github/someone/transformer-viz/blob/main/docs/tour.ipynb)" in links
    assert "(https://molab.marimo.io/github/someone/transformer-viz/blob/main/docs/tour.ipynb)" in links
    assert _tour_elsewhere("https://example.org/transformer-viz") == ""
    assert _TOUR in (DOCS / "notebook.md").read_text(encoding="utf-8")
