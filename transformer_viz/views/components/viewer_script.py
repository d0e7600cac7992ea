"""The script of the viewer's components: one module beside the page, so that all of them have one state."""

import hashlib
from functools import cache

from transformer_viz.viewer import modules


@cache
def text() -> str:
    """The module, with all that it imports."""
    return f"{modules.script('app.js')}\nexport {{ textBox, picture, address }};\n"


@cache
def name() -> str:
    """What it is called beside the page; another one is another name, so a browser may keep it for good."""
    return f"viewer-{hashlib.sha256(text().encode()).hexdigest()[:12]}.js"
