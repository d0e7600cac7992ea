"""The table of families in docs/families.md is what becomes of a tiny random model of each."""

from pathlib import Path

import pytest

from tests.needs import needs
from tests.readers.every_family import judged, names, verdicts_of

pytestmark = needs("transformers")

DOCUMENT = Path(__file__).parents[2] / "docs" / "families.md"
SAID = verdicts_of(DOCUMENT.read_text())


def test_the_table_has_families_of_each_state() -> None:
    assert {verdict.state for verdict in SAID.values()} == {
        *(f"live, {what}" for what in ("a decoder", "an encoder", "an encoder–decoder")),
        "one pass only",
        "refused",
    }
    assert len(SAID) > 200


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_a_family_is_what_the_table_says(name: str) -> None:
    if name not in names():
        pytest.skip(f"this version of transformers has no {name}")
    assert judged(name) == SAID[name]
