"""The arrows of the house: who may import whom, and what must not be imported at all.

plain files <- text and schema <- terms <- addresses <- model <- tasks; decoding <- loaded_model <- checkpoints <- readers;
decoding, edits <- trace <- analysis <- comparison <- sentences <- results. From there two branches that do not know each other:
results <- figures <- export (pictures: no torch, no model), and what runs models: results, readers <- tracing <- batches <-
mask_checks, evaluation, attribution, inside_head <- training, surveys; training <- learn. export and tracing <- live, a page
with a model in it, and notebook, a cell with one. All end in commands, and in views <- app.py, which alone know the settings of
a server.
"""

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import transformer_viz as tv

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "transformer_viz"
FLOORS: dict[str, tuple[set[str], tuple[str, ...]]] = {
    "ground": ({"errors", "text_display", "version", "app_folders", "model_options", "keywords"}, ()),
    "language": ({"language"}, ("ground",)),
    "plain": ({"numbers_in_words", "viewer"}, ("language",)),
    "server": ({"server_settings"}, ("plain",)),
    "text": ({"vocabulary", "schema", "untrusted_files", "atomic_files", "text_table"}, ("plain",)),
    "terms": ({"terms", "locks", "grammar"}, ("text",)),
    "addresses": ({"addresses"}, ("terms",)),
    "edits": ({"edits"}, ("addresses",)),
    "model": ({"model"}, ("addresses",)),
    "tasks": ({"tasks"}, ("model",)),
    "decoding": ({"decoding"}, ("model",)),
    "loaded": ({"loaded_model"}, ("tasks", "decoding")),
    "tokenizer": ({"task_tokenizer"}, ("loaded",)),
    "checkpoints": ({"checkpoints"}, ("tokenizer",)),
    "readers": ({"readers"}, ("checkpoints",)),
    "trace": ({"trace"}, ("decoding", "edits")),
    "analysis": ({"analysis"}, ("trace",)),
    "comparison": ({"comparison"}, ("analysis",)),
    "sentences": ({"sentences"}, ("comparison",)),
    "result": ({"result"}, ("sentences",)),
    "figures": ({"figures"}, ("result",)),
    "export": ({"export"}, ("figures",)),
    "tracing": ({"tracing"}, ("result", "readers")),
    "batches": ({"batches"}, ("tracing",)),
    "config": ({"config_masks"}, ("batches",)),
    "checks": ({"mask_checks", "evaluation", "attribution", "inside_head"}, ("config",)),
    "plugin": ({"pytest_plugin"}, ("checks",)),
    "training": ({"training"}, ("checks",)),
    "surveys": ({"surveys"}, ("checks",)),
    "learn": ({"learn"}, ("training",)),
    "live": ({"live", "notebook"}, ("export", "tracing")),
    "views": ({"views"}, ("export", "surveys", "learn", "live", "server")),
    "app": ({"app"}, ("views",)),
}
"""Which rooms a floor has, and on which floors it stands. Rooms of one floor do not know each other."""


def _below(floor: str) -> set[str]:
    """The rooms of all floors under one."""
    under = FLOORS[floor][1]
    return {room for lower in under for room in (*FLOORS[lower][0], *_below(lower))}


MAY = {room: {room, *_below(floor)} for floor, (rooms, _) in FLOORS.items() for room in rooms}
"""What each room may import."""
ROOMS = {"attribution", "config_masks", "evaluation", "inside_head", "learn", "mask_checks", "surveys", "training"}
STOREYS = {"result": "result"}
OF_SURVEYS = ("columns", "sentences")
STOREYS |= {f"surveys.{name}": "result" for name in OF_SURVEYS}
STOREYS |= {f"inside_head.{name}": "result" for name in ("numbers", "explanations", "rounding", "logit_lens")}
STOREYS |= {"config_masks.patterns": "result"}
STOREYS |= {f"learn.{name}": "result" for name in ("lesson", "links", "points", "actions", "words", "questions", "claims")}
"""Modules of a room that stand on another floor: its result is plain data."""
FILES = sorted((ROOT / PACKAGE).rglob("*.py")) + [ROOT / "app.py"] * (ROOT / "app.py").exists()


def part_of(file: Path) -> str:
    """`transformer_viz/model/masks.py` is in `model`, `app.py` in `app`."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return part_of_name(parts[1:]) if parts[0] == PACKAGE else parts[0]


def part_of_name(names: Sequence[str]) -> str:
    """Of a module's names within the package."""
    room, *rest = names
    if not rest or room not in ROOMS:
        return room
    return STOREYS.get(f"{room}.{rest[0]}", STOREYS.get(rest[0], room))


def imports_of(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and dotted name of everything imported, `if TYPE_CHECKING` and imports inside functions included."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def is_wrong(importer: str, name: str) -> str | None:
    """Why `importer` may not import `name`, or None."""
    top, *rest = name.split(".")
    if top == "plotly" and importer != "figures":
        return "plotly belongs in figures only"
    if top == "streamlit" and importer not in ("views", "app"):
        return "streamlit belongs in views and app.py only"
    if top == "torch" and importer in ("figures", "export", "views", "analysis", "comparison", "sentences", "result", "app"):
        return "torch has no place here"
    if top == "app":
        return "nothing imports app.py"
    if top != PACKAGE or importer in ("__init__", "__main__") or not rest:
        return None
    part = part_of_name(rest)
    if part not in MAY and part != "commands":  # a name of the package itself, as in `from transformer_viz import decode`
        return None if importer in ("views", "app", "commands") else f"{part} comes from the package's top; import its module"
    if importer == "commands":
        return "commands may use all but views" if part in ("views", "app") else None
    if part == "commands":
        return "only __main__ uses commands"
    return None if part in MAY[importer] else f"{importer} does not stand on {part}"


def test_arrows():
    importers = {file: part_of(file) for file in FILES}
    assert len(importers) > 300
    assert {*importers.values()} == {*MAY, "commands", "__init__", "__main__"}, "a folder or a file has no place in the chain"
    wrong = [
        f"{file.relative_to(ROOT)}, line {line}: {name}: {why}"
        for file, importer in importers.items()
        for line, name in imports_of(ast.parse(file.read_text(encoding="utf-8")))
        if (why := is_wrong(importer, name))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("importer", "name", "allowed"),
    [
        ("model", "transformer_viz.errors.ConfigError", True),
        ("model", "transformer_viz.tasks.make_task", False),
        ("trace", "transformer_viz.tracing.decode", False),
        ("figures", "torch", False),
        ("export", "plotly.io", False),
        ("views", "transformer_viz.tracing.decode.decode", True),
        ("tracing", "transformer_viz.figures", False),
        ("figures", "transformer_viz.evaluation.result.AccuracyByLength", True),
        ("figures", "transformer_viz.evaluation.evaluate", False),
        ("commands", "transformer_viz.views.pages", False),
        ("views", "transformer_viz.commands.train", False),
        ("trace", "transformer_viz.Trace", False),
        ("views", "transformer_viz.server_settings.limits", True),
        ("readers", "transformer_viz.server_settings", False),
        ("decoding", "transformer_viz.loaded_model.LoadedModel", False),
        ("errors", "transformer_viz.text_display.shorten", False),
        ("terms", "transformer_viz.addresses", False),
    ],
)
def test_the_rule_itself(importer, name, allowed):
    assert (is_wrong(importer, name) is None) == allowed


def python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_loads_lazily():
    """Guards a start that waits seconds for torch before it can print a usage line."""
    heavy = ("torch", "numpy", "pandas", "plotly", "streamlit", "safetensors")
    loaded = python(f"import sys, transformer_viz.untrusted_files; print([m for m in {heavy!r} if m in sys.modules])")
    assert loaded == "[]"


def test_all_public_names_are_there():
    assert [name for name in tv.__all__ if not hasattr(tv, name)] == []
    with pytest.raises(AttributeError, match=r"nope.*load_trace"):
        _ = tv.nope


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.parametrize("part", ["figures", "analysis", "comparison", "sentences", "result", "export"])
def test_what_draws_loads_without_torch_and_streamlit(part):
    """Also transitively: every module of theirs is imported where torch cannot be."""
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES if part_of(file) == part]
    names = [name.removesuffix(".__init__") for name in names]
    program = BLOCKED.format(blocked=("torch", "streamlit", "safetensors"))
    program += f"import importlib\nfor name in {names!r}: importlib.import_module(name)\nprint('torch' in sys.modules)"
    assert python(program) == "False"
