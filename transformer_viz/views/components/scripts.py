"""Scripts of components that a browser reads once, as files beside the page.

Streamlit sends a component's script again with every message about it: a chart's was 45 kB for each of four maps, at every
Enter. What it sends of these is a line that reads the file.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_OWN, _SHARED = Path(__file__).parent, Path(__file__).parents[2] / "export" / "page"


@dataclass(frozen=True)
class Script:
    """A component's script.

    Attributes:
        title: what its name begins with.
        parts: the files of which it is made, in their order; the last one exports the component.
    """

    title: str
    parts: Sequence[Path]

    @cached_property
    def text(self) -> str:
        """All of it."""
        return "\n".join(part.read_text(encoding="utf-8") for part in self.parts)

    @cached_property
    def name(self) -> str:
        """What it is called beside the page. Another text is another name, so a browser may keep it for good."""
        return f"{self.title}-{hashlib.sha256(self.text.encode()).hexdigest()[:12]}.js"

    @property
    def reader(self) -> str:
        """What Streamlit is given instead. A module made of text stands nowhere, so it looks beside the page."""
        return f"""const read = import(new URL("{self.name}", document.baseURI));
export default async (component) => (await read).default(component);
"""


def _script(title: str, shared: Sequence[str], own: Sequence[str]) -> Script:
    return Script(title, [*(_SHARED / f"{name}.js" for name in shared), *(_OWN / f"{name}.js" for name in own)])


CHART = _script("chart", ["arrays"], ["plotly", "clicks", "keyboard", "picture", "chart"])
TABS = _script("tabs", [], ["tabs"])
PLAYER = _script("player", ["arrays", "player", "lines", "aligned"], ["plotly", "clicks", "highlight", "measures", "player"])


def files() -> dict[str, Callable[[], bytes]]:
    """What the server has of these beside the page, by name."""
    return {script.name: script.text.encode for script in (CHART, PLAYER, TABS)}
