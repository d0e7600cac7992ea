"""How much there is of the package, and what one use of it passes through: `python -m benchmarks.count`.

A room is a folder directly in the package; what lies beside the folders is `.`. Statements are those of the syntax tree,
without docstrings. A use is run once beforehand and then watched: every call of a function of the package, lambdas, generators
and comprehensions too.
"""

import ast
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "transformer_viz"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_COLUMNS = ("files", "lines", "statements", "functions", ".js", ".css")
_LARGEST = 12


def _row(name: str, *cells: Any) -> str:
    return f"{name:<20}" + "".join(f"{cell:>12,}" if isinstance(cell, int) else f"{cell:>12}" for cell in cells)


def rooms(trees: dict[Path, ast.Module]) -> list[str]:
    """A line a room: files, lines, statements, functions; lines of JavaScript and of CSS."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix not in (".py", ".js", ".css"):
            continue
        parts = path.relative_to(PACKAGE).parts
        of = found[parts[0] if len(parts) > 1 else "."]
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        if path not in trees:
            of[path.suffix] += n_lines
            continue
        nodes = [*ast.walk(trees[path])]
        documented = [node for node in nodes if isinstance(node, Function | ast.ClassDef | ast.Module)]
        n_docstrings = sum(ast.get_docstring(node, clean=False) is not None for node in documented)
        of["files"] += 1
        of["lines"] += n_lines
        of["statements"] += sum(isinstance(node, ast.stmt) for node in nodes) - n_docstrings
        of["functions"] += sum(isinstance(node, Function) for node in nodes)
    total = sum(found.values(), Counter())
    rows = [*sorted(found.items()), ("all", total), ("all but views", total - found["views"])]
    return [_row("room", *_COLUMNS), *(_row(room, *(of[name] for name in _COLUMNS)) for room, of in rows)]


def functions(trees: dict[Path, ast.Module]) -> list[str]:
    """How many functions are private and named once in their file, and those with the most lines."""
    sizes, uses = [], []
    for path, tree in trees.items():
        nodes = [*ast.walk(tree)]
        named = Counter(
            node.id if isinstance(node, ast.Name) else node.attr for node in nodes if isinstance(node, ast.Name | ast.Attribute)
        )
        for node in nodes:
            if isinstance(node, Function):
                sizes.append(((node.end_lineno or 0) - node.lineno + 1, f"{path.relative_to(PACKAGE)}: {node.name}"))
                if node.name.startswith("_") and not node.name.startswith("__"):
                    uses.append(named[node.name])
    largest = [f"  {n:>4}  {name}" for n, name in sorted(sizes, reverse=True)[:_LARGEST]]
    return [_row("private functions", len(uses)), _row("... used once", uses.count(1)), "largest, in lines", *largest]


def calls_of(use: Callable[[], object], below: Path = PACKAGE) -> Counter[tuple[str, str]]:
    """The calls of a use by file and function, in all threads that begin meanwhile; of functions below a folder alone."""
    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _arg: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(below)) and file.endswith(".py"):  # templates are compiled to functions too
            calls[file, frame.f_code.co_name] += 1

    use()
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        use()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def uses() -> list[str]:
    """What one Enter, a text through `tv.decode`, a corpus through `survey` and a trace through `export.html` pass through."""
    from streamlit.testing.v1 import AppTest

    import transformer_viz as tv

    model = tv.load_checkpoint("reverse", "cpu")
    trace = tv.decode(model, "hello world")
    at = AppTest.from_file(str(PACKAGE.parent / "app.py"), default_timeout=60).run()
    texts = iter(("hello world", "another text"))

    def survey() -> None:
        with tempfile.TemporaryDirectory() as folder:
            tv.survey(model, ["hello world", "hello", "abc"] * 20, workers=1, verdict_texts=0, output=folder)

    found = {
        "Enter, in views": calls_of(lambda: at.text_input[0].set_value(next(texts)).run(), PACKAGE / "views"),
        "tv.decode": calls_of(lambda: tv.decode(model, "hello world")),
        "tv.survey, 60": calls_of(survey),
        "export.html": calls_of(lambda: tv.export.html(trace, plotlyjs=False)),
    }
    assert not at.exception
    rows = (_row(name, calls.total(), len(calls), len({file for file, _ in calls})) for name, calls in found.items())
    return [_row("one use", "calls", "functions", "files"), *rows]


def main() -> None:
    last = ["git", "log", "-1", "--format=%h, %s", "--", str(PACKAGE)]
    commit = subprocess.run(last, cwd=PACKAGE, capture_output=True, text=True, check=True).stdout
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    parts = [rooms(trees), functions(trees), uses()]
    print(f"The package as of {commit}", *("\n".join([*part, ""]) for part in parts), sep="\n")


if __name__ == "__main__":
    main()
