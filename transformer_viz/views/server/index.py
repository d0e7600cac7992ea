"""Streamlit's `index.html`, which says at its top what the first page will need.

Its scripts are told to the browser there already. Those that draw an element are not: the browser hears of each as the first
such element comes, asks for it, finds in it the names of the next, and asks again.
"""

import re
from pathlib import Path

FIRST = ("Html", "TextInput", "Selectbox", "BidiComponent", "ButtonGroup")
"""The scripts of the elements with which every page begins, without the hash in their names."""
_IMPORT = re.compile(r"""(?:from|import)\s*["'`]\./([\w.-]+\.js)["'`]""")


def page(path: Path) -> str:
    """The text of `index.html`, with links to `FIRST` and to what those import; as it is where there is none of them."""
    text = path.read_text(encoding="utf-8")
    names = [name for name in needed(path.parent / "static" / "js") if name not in text]
    links = [f'<link rel="modulepreload" crossorigin href="./static/js/{name}">' for name in names]
    return text.replace("</head>", "".join(links) + "</head>", 1)


def needed(folder: Path) -> list[str]:
    """The scripts of `FIRST` in a folder, and all that they import from the beginning."""
    found = [path.name for name in FIRST for path in sorted(folder.glob(f"{name}.*.js"))]
    for name in found:  # it grows
        found += [other for other in _imports(folder / name) if other not in found]
    return found


def _imports(script: Path) -> list[str]:
    return list(dict.fromkeys(_IMPORT.findall(script.read_text(encoding="utf-8")))) if script.is_file() else []
