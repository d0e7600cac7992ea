"""What docs/grading.md says of rules, thresholds and numbers is what the code does."""

import re
from pathlib import Path

from transformer_viz.analysis import head_names
from transformer_viz.analysis.measures import OF_MANY

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "grading.md").read_text(encoding="utf-8")


def test_every_name_is_explained() -> None:
    rows = re.findall(r"^\| `([a-z ]+)` \|", TEXT, flags=re.MULTILINE)
    places = [place.name for place in head_names.PLACES]
    assert [name for name in rows if name in places] == places, "in the order in which ties are decided"
    assert [name for name in rows if name in head_names.WIDTHS] == list(head_names.WIDTHS)


def test_every_measure_is_explained() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", TEXT, flags=re.MULTILINE)
    assert [name for name in rows if name in OF_MANY] == list(OF_MANY), "in the order of the tables"


def test_the_thresholds_are_those_of_the_code() -> None:
    assert f"its mean weight is at least {head_names.THRESHOLD}," in TEXT
    assert f"and at least {head_names.MARGIN} above" in TEXT
    assert head_names.COVERAGE == 0.5
    assert "at least half of the rows" in TEXT
    assert f"mean entropy share at least {head_names.BROAD} " in TEXT
    assert str(head_names.BROAD) in head_names.WIDTHS["broad"]
