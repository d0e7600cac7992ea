"""plotly.js, with which browsers draw: the one place that says which file, for the app as for exported pages.

The bundle `plotly/plotly-cartesian.min.js` is plotly.js with these kinds of traces alone, a third of the whole that the package
plotly brings, as its makers publish it (npm: plotly.js-cartesian-dist-min; MIT, see `plotly/LICENSE.txt`). Figures of this
program need no others: they are made of the traces of `figures/figure_data.py`. Only `export.figure_html` takes figures of
others, and asks for what these need.

Found without importing plotly, which takes half a second that the server does not have as it starts.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

BUNDLE = Path(__file__).parent / "plotly" / "plotly-cartesian.min.js"
CARTESIAN = frozenset(
    "bar box contour heatmap histogram histogram2d histogram2dcontour image pie scatter scatterternary violin".split()
)
"""The kinds of traces that the bundle draws."""


def path(types: Iterable[str] = ()) -> Path:
    """Finds the file that draws traces of these types; without any, those of this program.

    The bundle, or the whole of the package plotly where a type needs it or where that is of another version: a figure is
    described for the plotly.js that its package brings.
    """
    whole = _whole()
    return BUNDLE if CARTESIAN.issuperset(types) and version_of(BUNDLE) == version_of(whole) else whole


@cache
def name() -> str:
    """The file's name beside the page. Another file is another name, so a browser may keep it for good."""
    return f"{path().name.removesuffix('.min.js')}-{version('plotly')}.js"


@cache
def version_of(file: Path) -> str | None:
    """The version of plotly.js that a file says it is; None where it says none."""
    with file.open(encoding="utf-8") as opened:
        match = re.search(r"\bv(\d+\.\S+)", opened.read(200))
    return match[1] if match else None


def _whole() -> Path:
    spec = find_spec("plotly")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"
