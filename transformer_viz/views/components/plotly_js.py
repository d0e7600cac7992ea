"""plotly.js, with which the browser draws: the one that the package plotly brings, for the app as for exported pages.

Found without importing plotly, which takes half a second that the server does not have as it starts.
"""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

NAME = f"plotly-{version('plotly')}.js"
"""What it is called beside the page. Another release is another name, so a browser may keep it for good."""


def path() -> Path:
    """Where it lies on the disk."""
    found = find_spec("plotly")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "package_data" / "plotly.min.js"
