"""How much there is of the package, and what one use of it passes through: `python -m benchmarks.count [-o FILE]`.

A room is a folder directly in the package; what lies beside the folders is `.`. Statements are those of the syntax tree,
without docstrings. A use is run once beforehand and then watched: every call of a function of the package, lambdas, generators
and comprehensions too. A climb back is a call into a room that is at work already, from another room that it called.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "transformer_viz"
APP = PACKAGE.parent / "app.py"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LARGEST = 12


def room_of(path: Path) -> str:
    """The room of a file of the package."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "."


def trees() -> dict[Path, ast.Module]:
    """The syntax tree of every file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def rooms(parsed: dict[Path, ast.Module]) -> list[str]:
    """A line a room: files, lines, statements, functions; lines of JavaScript and of CSS."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path, tree in parsed.items():
        nodes = [*ast.walk(tree)]
        words = sum(
            ast.get_docstring(node, clean=False) is not None for node in nodes if isinstance(node, (*_SCOPES, ast.Module))
        )
        of = found[room_of(path)]
        of["files"] += 1
        of["lines"] += len(path.read_text(encoding="utf-8").splitlines())
        of["statements"] += sum(isinstance(node, ast.stmt) for node in nodes) - words
        of["functions"] += sum(isinstance(node, Function) for node in nodes)
    for path in PACKAGE.rglob("*"):
        if path.suffix in (".js", ".css"):
            found[room_of(path)][path.suffix] += len(path.read_text(encoding="utf-8").splitlines())
    columns = ("files", "lines", "statements", "functions", ".js", ".css")
    total = sum(found.values(), Counter())
    below = total - found["views"]
    below.update(dict.fromkeys(columns, 0))
    rows = [*sorted(found.items()), ("all", total), ("all but views", below)]
    return [_row("room", *columns), *(_row(room, *(of[name] for name in columns)) for room, of in rows)]


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMES = (ast.Name, ast.Attribute)


def _row(name: Any, *cells: Any) -> str:
    return f"{name:<16}" + "".join(f"{cell:>12,}" if isinstance(cell, int) else f"{cell:>12}" for cell in cells)


def pieces(parsed: dict[Path, ast.Module]) -> list[str]:
    """What the pages are made of, and how the functions of the package hang together."""
    nodes = [node for tree in parsed.values() for node in ast.walk(tree)]
    calls = Counter(ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute))
    components = sum(
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("components.v2.component") for node in nodes
    )
    functions = [node for node in nodes if isinstance(node, Function)]
    private = [_uses_of_private(tree) for tree in parsed.values()]
    lines = {
        "middlewares": sum(
            [one.arg for one in function.args.args[1:]] == ["scope", "receive", "send"] for function in functions
        ),
        "components": components,
        "fragments": calls["st.fragment"],
        "st.rerun": calls["st.rerun"],
        "session keys": len(session_keys()),
        "private functions": sum(map(len, private)),
        "... used once": sum(uses.count(1) for uses in private),
    }
    return [*(f"{name:<20}{count:>8,}" for name, count in lines.items()), "", *circles(parsed), "", *largest(parsed)]


def _uses_of_private(tree: ast.Module) -> list[int]:
    """How often each private function of a file is named in it."""
    nodes = [*ast.walk(tree)]
    named = Counter(node.id if isinstance(node, ast.Name) else node.attr for node in nodes if isinstance(node, _NAMES))
    names = [node.name for node in nodes if isinstance(node, Function)]
    return [named[name] for name in names if name.startswith("_") and not name.startswith("__")]


def session_keys() -> set[str]:
    """Names under which the pages hold something in the session."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "views").rglob("*.py"))
    state = r"(?<!views\.)\b(?:session_state|state)"
    found = re.findall(state + r"(?:\.get\(|\.pop\(|\.setdefault\(|\[)\"(\w+)\"", text)
    return {*found, *re.findall(state + r"\.(\w+)\b(?!\()", text)}


def circles(parsed: dict[Path, ast.Module]) -> list[str]:
    """Modules that import each other, also where the import is inside a function or for type checkers alone."""
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in parsed
    }
    arrows: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for node in ast.walk(parsed[path]):
            if isinstance(node, ast.ImportFrom) and node.module:
                aimed = {f"{node.module}.{alias.name}" for alias in node.names}
                arrows[name] |= {there if there in names else node.module for there in aimed} & names.keys() - {
                    name,
                    PACKAGE.name,
                }
    reach = {name: _reached(arrows, name) for name in arrows}
    found = {
        frozenset({name, *(other for other in reach[name] if name in reach[other])}) for name in names if name in reach[name]
    }
    shown = sorted(
        (sorted(one.removeprefix(f"{PACKAGE.name}.") for one in circle) for circle in found), key=lambda one: (-len(one), one)
    )
    return [f"import circles      {len(shown):>8,}", *(f"  {' · '.join(circle)}" for circle in shown)]


def _reached(arrows: dict[str, set[str]], begin: str) -> set[str]:
    found: set[str] = set()
    todo = [*arrows[begin]]
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += arrows[name]
    return found


def largest(parsed: dict[Path, ast.Module]) -> list[str]:
    """The functions with the most lines."""
    sizes = [
        ((node.end_lineno or 0) - node.lineno + 1, f"{path.relative_to(PACKAGE)}: {node.name}")
        for path, tree in parsed.items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
    ]
    return ["largest functions, lines", *(f"  {n:>4}  {name}" for n, name in sorted(sizes, reverse=True)[:_LARGEST])]


class Watch:
    """Every call of a function below a folder while it is watched, in all threads that begin meanwhile."""

    def __init__(self, folder: Path = PACKAGE) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.climbs = self.changes = 0
        self._folder = str(folder)
        self._last = ""
        self._rooms: dict[str, str | None] = {}

    def __enter__(self) -> "Watch":
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _room(self, name: str) -> str | None:
        if name not in self._rooms:
            is_ours = name.startswith(self._folder) and name.endswith(".py")
            self._rooms[name] = Path(name).relative_to(self._folder).parts[0] if is_ours else None
        return self._rooms[name]

    def _event(self, frame: FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        room = self._room(code.co_filename) if event == "call" else None
        if room is None:
            return
        self.calls[code.co_filename, code.co_name] += 1
        self.changes += room != self._last
        self._last = room
        stack = [above for above in map(self._room, _files_above(frame)) if above]
        if stack and stack[0] != room:
            self.climbs += room in stack

    def words(self) -> str:
        """Calls, functions, files, rooms, changes between rooms and climbs back."""
        files = {name for name, _ in self.calls}
        n_rooms = len({self._rooms[name] for name in files})
        counts = (self.calls.total(), len(self.calls), len(files), n_rooms, self.changes, self.climbs)
        return "".join(f"{count:>12,}" for count in counts)


def _files_above(frame: FrameType) -> Iterator[str]:
    above = frame.f_back
    while above:
        yield above.f_code.co_filename
        above = above.f_back


def enter_on_explore() -> Watch:
    """Another text in the box of Explore, in `views/`; its rooms are the folders there."""
    from streamlit.testing.v1 import AppTest

    at = AppTest.from_file(str(APP), default_timeout=60).run()
    for text in ("hello world", "hello", "abcdef"):
        at.text_input[0].set_value(text).run()
    at.text_input[0].set_value("another text")
    with Watch(PACKAGE / "views") as watch:
        at.run()
    assert not at.exception
    return watch


def watched(use: Callable[[], object]) -> Watch:
    """A use, the second time."""
    use()
    with Watch() as watch:
        use()
    return watch


def uses() -> list[str]:
    """What one Enter, a text through `tv.decode`, a corpus through `survey` and a trace through `export.html` pass through."""
    import transformer_viz as tv

    model = tv.load_checkpoint("reverse", "cpu")
    trace = tv.decode(model, "hello world")

    def survey() -> None:
        with tempfile.TemporaryDirectory() as folder:
            tv.survey(model, ["hello world", "hello", "abc"] * 20, workers=1, verdict_texts=0, output=folder)

    found = {
        "Enter, in views": enter_on_explore(),
        "tv.decode": watched(lambda: tv.decode(model, "hello world")),
        "tv.survey, 60": watched(survey),
        "export.html": watched(lambda: tv.export.html(trace, plotlyjs=False)),
    }
    head = _row("one use", "calls", "functions", "files", "rooms", "changes", "climbs")
    return [head, *(f"{name:<16}{watch.words()}" for name, watch in found.items())]


def main() -> None:
    """Prints it, or writes it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.count", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there")
    output = parser.parse_args().output
    last = ["git", "log", "-1", "--format=%h, %s", "--", str(PACKAGE)]
    commit = subprocess.run(last, cwd=PACKAGE, capture_output=True, text=True, check=True).stdout
    parsed = trees()
    text = "\n".join([f"The package as of {commit}", *rooms(parsed), "", *pieces(parsed), "", *uses(), ""])
    if output is None:
        print(text)
    else:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
