"""The script of the viewer's components: one module beside the page, so that all of them have one state."""

import hashlib
from functools import cache

from transformer_viz import language
from transformer_viz.viewer import modules, script_words


def text() -> str:
    """The module, with all that it imports, in the language of now."""
    return f"{script_words.spoken(modules.script('app.js'))}\nexport {{ textBox, picture, address }};\n"


def name() -> str:
    """The name of the file beside the page, in the language of now."""
    return _name(language.current())


@cache
def _name(now: str) -> str:
    """Another one is another name, so a browser may keep it for good."""
    with language.speaking(now):
        return f"viewer-{hashlib.sha256(text().encode()).hexdigest()[:12]}.js"


@cache
def texts() -> dict[str, str]:
    """The module in each language, by its name."""
    modules = {}
    for code in language.languages():
        with language.speaking(code):
            modules[name()] = text()
    return modules
