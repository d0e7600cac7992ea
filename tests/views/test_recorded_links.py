"""Links that people have shared go on to open what they opened: the same control values, the same numbers in the charts.

Labels may change; names and values in a link may not.
"""

import json
from typing import Any

import numpy as np
import pytest

from tests.views.recorded_links import FILE, opens

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
A_FEW = 9
"""Every which one is opened by `make test`; the others by `make test-all`."""


@pytest.mark.parametrize(
    "link",
    [pytest.param(link, marks=[] if place % A_FEW == 0 else pytest.mark.slow) for place, link in enumerate(RECORDED)],
    ids=[f"{place}-{link['page'] or 'explore'}" for place, link in enumerate(RECORDED)],
)
def test_a_link_opens_what_it_opened(link: dict[str, Any]) -> None:
    now = opens(link["page"], link["query"])
    for name, value in link["values"].items():
        assert now["values"].get(name) == value, f"{link['page']}, {link['query']}: {name}"
    assert len(now["numbers"]) == len(link["numbers"])
    for found, recorded in zip(now["numbers"], link["numbers"], strict=True):
        # Sums of up to a thousand weights, each rounded by the processor at hand.
        np.testing.assert_allclose(found, recorded, rtol=1e-4, atol=0.02)


def test_there_are_a_hundred() -> None:
    assert len(RECORDED) == 100
