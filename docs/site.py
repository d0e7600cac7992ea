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
_TOUR = "[The tour](tour.ipynb)"


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
    """Add all options to the page on the command line, and to that on notebooks where the tour can be run; lead links to files
    outside `docs` to the repository."""
    if page.file.src_uri == "command-line.md":
        markdown += "\n\n## All options\n\n" + "\n\n".join(map(_help, commands.names()))
    if page.file.src_uri == "notebook.md":
        markdown = markdown.replace(_TOUR, _TOUR + _tour_elsewhere(_repository()))
    return _OUTSIDE.sub(rf"]({_repository()}/blob/main/\1)", markdown)


def _tour_elsewhere(repository: str) -> str:
    """Links to the tour in Colab and molab, which open notebooks of a repository on GitHub; nothing for another one."""
    if not (place := re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)", repository)):
        return ""
    notebook = f"{place[1]}/blob/main/docs/tour.ipynb"
    colab, molab = f"https://colab.research.google.com/github/{notebook}", f"https://molab.marimo.io/github/{notebook}"
    install = f"`%pip install git+{repository}`"
    return f" (open it [in Colab]({colab}) or [in molab]({molab}), where the first cell is {install})"


def _help(name: str) -> str:
    """A section with what `COMMAND --help` prints."""
    with redirect_stdout(io.StringIO()) as printed:
        commands.main([name, "--help"])
    return f"### {name}\n\n```text\n{printed.getvalue().strip()}\n```"


def _repository() -> str:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"].rstrip("/")
