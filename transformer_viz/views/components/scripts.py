"""Scripts of components that a browser reads once, as files beside the page.

Streamlit sends a component's script again with every message about it: a chart's was 45 kB for each of four maps, at every
Enter. What it sends of these is a line that reads the file.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from transformer_viz.export import assets


@dataclass(frozen=True)
class Script:
    """A component's script.

    Attributes:
        title: what its name begins with.
        text: all of it.
    """

    title: str
    text: str

    @property
    def name(self) -> str:
        """What it is called beside the page. Another text is another name, so a browser may keep it for good."""
        return f"{self.title}-{hashlib.sha256(self.text.encode()).hexdigest()[:12]}.js"

    @property
    def reader(self) -> str:
        """What Streamlit is given instead. A module made of text stands nowhere, so it looks beside the page."""
        return f"""const read = import(new URL("{self.name}", document.baseURI));
export default async (component) => (await read).default(component);
"""


def _own(*names: str) -> str:
    return "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)


CHART = Script("chart", assets.script("arrays.js") + _own("plotly.js", "clicks.js", "keyboard.js", "picture.js", "chart.js"))
PLAYER = Script(
    "player",
    assets.script("arrays.js", "player.js", "lines.js", "aligned.js")
    + _own("plotly.js", "clicks.js", "highlight.js", "measures.js", "player.js"),
)
TABS = Script("tabs", _own("tabs.js"))


def files() -> dict[str, Callable[[], bytes]]:
    """What the server has of these beside the page, by name."""
    return {script.name: script.text.encode for script in (CHART, PLAYER, TABS)}
