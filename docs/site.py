"""What the documentation site has beside the files in `docs`: all options of the commands, and the functions of Python.

MkDocs calls the functions here while it builds (`hooks` in mkdocs.yml).
"""

import io
import re
import tomllib
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import transformer_viz as tv
from transformer_viz import commands

ROOT = Path(__file__).resolve().parent.parent
_OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the page of Python's functions: what `transformer_viz` exports, from the docstrings."""
    homes = {name: _home(name) for name in tv.__all__ if hasattr(getattr(tv, name), "__module__")}
    entries = "\n\n".join(f"::: {module}.{name}" for name, module in sorted(homes.items()))
    text = f"# Python\n\n`import transformer_viz as tv`; every name below is `tv.NAME`.\n\n{entries}\n"
    # Not imported above, since lint and tests do without MkDocs.
    files.append(import_module("mkdocs.structure.files").File.generated(config, "python.md", content=text))
    return files


def _home(name: str) -> str:
    """The module in which a public name is defined; of a name for several types that is not its own word."""
    module = getattr(tv, name).__module__
    return module if module.startswith("transformer_viz.") else f"transformer_viz.{tv._HOMES[name]}"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Add all options to the page on the command line, and lead links to files outside `docs` to the repository."""
    if page.file.src_uri == "command-line.md":
        markdown += "\n\n## All options\n\n" + "\n\n".join(map(_help, commands.names()))
    return _OUTSIDE.sub(rf"]({_repository()}/blob/main/\1)", markdown)


def _help(name: str) -> str:
    """A section with what `COMMAND --help` prints."""
    with redirect_stdout(io.StringIO()) as printed:
        commands.main([name, "--help"])
    return f"### {name}\n\n```text\n{printed.getvalue().strip()}\n```"


def _repository() -> str:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"].rstrip("/")
