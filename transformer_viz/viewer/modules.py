"""ES modules as text, and several of them as one script, for pages that are one file.

A module is a file that says what it takes from its neighbours and what others may take from it:
`import { unpacked } from "./arrays.js";` and `export function …`. A browser and Node read it as it is. In one script every
module's names stand side by side, so none may be renamed, be a default, or be the name of something else in another module.
"""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^import \{([^{}]*)\} from \"(\.{1,2}/[\w./-]+\.js)\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*? |class |const |let )[A-Za-z_$])", re.MULTILINE)
_DECLARED = re.compile(r"^(export )?(?:(?:async )?function\*? ?|class |const |let |var )([\w$]+|[\[{])", re.MULTILINE)
_INDENT = re.compile(r"^ +", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$|\bimport\(.*$", re.MULTILINE)
_COMMENT = re.compile(r"^ *//[^\n]*\n|^ */\*\*(?:(?!\*/).)*\*/ *\n|^\n", re.MULTILINE | re.DOTALL)


class ModuleError(ValueError):
    """Modules that cannot stand in one script."""


@cache
def text(name: str) -> str:
    """The text of a file of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def styles(*names: str) -> str:
    """Several style sheets of this folder, one after the other."""
    return "\n".join(map(text, names))


def script(*names: str) -> str:
    """One script with modules of this folder and all that they import."""
    return one_script(*(FOLDER / name for name in names))


@cache
def one_script(*entries: Path) -> str:
    """One script with these modules and all that they import, each once and after what it imports.

    Raises:
        ModuleError: a module that imports or exports in another way than by name, a name that is not exported, modules that
            import each other, or two that give the same name to different things.
    """
    scripts: dict[Path, str] = {}
    for entry in entries:
        _add(entry.resolve(), scripts, ())
    owners: dict[str, Path] = {}
    for path in scripts:
        for _, name in _declared(path):
            if (other := owners.setdefault(name, path)) != path:
                raise ModuleError(f"{path.name} and {other.name} both have something called {name}; rename one")
    return "\n".join(scripts.values())


def without_comments(code: str) -> str:
    """A script as a page has it: without comments on lines of their own, empty lines, and blanks before lines."""
    bare = _COMMENT.sub("", code)
    # In a text of several lines blanks are a part of it.
    return bare if any(line.count("`") % 2 for line in bare.splitlines()) else _INDENT.sub("", bare)


def _add(path: Path, scripts: dict[Path, str], importers: tuple[Path, ...]) -> None:
    if path in importers:
        circle = " → ".join(each.name for each in (*importers[importers.index(path) :], path))
        raise ModuleError(f"modules import each other: {circle}; one of them must not")
    if path in scripts:
        return
    whole = path.read_text(encoding="utf-8")
    for names, address in _IMPORT.findall(whole):
        module = (path.parent / address).resolve()
        _add(module, scripts, (*importers, path))
        exported = {name for is_exported, name in _declared(module) if is_exported}
        for name in filter(None, map(str.strip, names.split(","))):
            if not re.fullmatch(r"[\w$]+", name):
                raise ModuleError(f"{path.name} imports `{name}`; import a name as it is")
            if name not in exported:
                raise ModuleError(f"{path.name} imports {name}, which {module.name} does not export")
    # A page has no room for what is said to readers of this folder.
    code = without_comments(_EXPORT.sub("", _IMPORT.sub("", whole)))
    if other := _OTHER.search(code):
        raise ModuleError(f"{path.name} says `{other[0]}`; imports and exports are by name, as in modules.py")
    scripts[path] = code


def _declared(path: Path) -> list[tuple[bool, str]]:
    """The names at the top of a module, and whether each is exported."""
    names = [(bool(is_exported), name) for is_exported, name in _DECLARED.findall(path.read_text(encoding="utf-8"))]
    if any(name in "[{" for _, name in names):
        raise ModuleError(f"{path.name} takes something apart at its top; give each name a declaration of its own")
    return names
