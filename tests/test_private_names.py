"""Private names of other people's libraries: the package uses a few, each in one file, for a reason that stands here.

Their makers promise nothing of them, so each may be gone with any release. A private name is an attribute or a setting that
begins with `_`, a module that the documentation leaves out, and in scripts and styles a class or test id of somebody else's.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.needs import skip_without

PACKAGE = Path(__file__).resolve().parent.parent / "transformer_viz"


class Private(NamedTuple):
    """A private name, the only file that may use it, and what is known of it."""

    name: str
    file: str
    """Under `transformer_viz`."""
    theirs: str
    """The library's file or files in which it is, the library first."""
    words: str
    """By which it is found there."""
    why: str
    broken: str
    """What to do when it is gone."""


_STYLE = (
    "views/components/style.py",
    "streamlit/static/static/js/*.js",
    "a theme knows neither distances nor heights",
    "look in the browser's inspector what the element is called now (tests/browser/test_style.py says which rule finds "
    "nothing); without the rule the page only has more air",
)
TABLE = (
    Private(
        "_base",
        "tracing/adapters/functions.py",
        "torch/_C/__init__.pyi",
        "_base: Tensor",
        "nothing public says what a tensor is a view of",
        "compare untyped_storage().data_ptr() with that of the parameters, or only ask isinstance(tensor, nn.Parameter): "
        "then a slice of a parameter counts as a tensor from elsewhere",
    ),
    Private(
        "torch.utils.weak",
        "tracing/adapters/functions.py",
        "torch/utils/weak.py",
        "\nWeakTensorKeyDictionary =",
        "a tensor cannot be the key of a weakref.WeakKeyDictionary, which compares keys with ==",
        "key a dict by id(tensor), and let a weakref.ref(tensor, callback) take the entry out",
    ),
    Private(
        "transformers.masking_utils",
        "readers/huggingface/attention.py",
        "transformers/masking_utils.py",
        "def eager_mask(",
        "the mask of an attention of one's own is registered there, and its eager form is at no other place",
        "look how the page `Attention backends` of their documentation registers a mask now",
    ),
    Private(
        "streamlit.runtime",
        "views/server/uploads.py",
        "streamlit/runtime/memory_uploaded_file_manager.py",
        "def get_files(",
        "nothing else says when a file that was uploaded is dropped again",
        "count a session's files until its websocket closes instead of until Streamlit drops them",
    ),
    Private(
        "streamlit.proto.ForwardMsg_pb2",
        "views/server/bursts.py",
        "streamlit/proto/ForwardMsg_pb2.py",
        "session_status_changed",
        "nothing else says on the way to the browser that a script has ended",
        "read in ForwardMsg.proto what the last message of a run is now; without it a burst leaves after LONGEST alone",
    ),
    Private(
        "__self__",
        "views/server/running.py",
        "uvicorn/server.py",
        "signal.signal(sig, self.handle_exit)",
        "Streamlit makes the uvicorn.Server itself, and hands it to nobody; its method is the handler of the signals",
        "find the server elsewhere (gc, or a setting of Streamlit's); without it Ctrl-C says Aborted! with exit code 1, and "
        "messages are bounded by server.maxMessageSize alone",
    ),
    Private(
        "_stcore",
        "views/server/routes.py",
        "streamlit/web/server/starlette/starlette_routes.py",
        '"_stcore"',
        "the addresses of Streamlit's own server, of which some are closed and uploads are counted",
        "read the addresses in starlette_routes.py, and change CORE and the names after it",
    ),
    *(
        Private(
            name,
            "views/server/__init__.py",
            "streamlit/runtime/app_session.py",
            "msg.new_session.main_script_path =",
            "the first message of a run tells the browser where app.py lies, and no setting leaves that out",
            "look which message has the path now; without it strangers learn the path of the installation",
        )
        for name in ("streamlit.runtime.app_session", "_create_new_session_message")
    ),
    Private(
        "st.__file__",
        "views/server/__init__.py",
        "streamlit/static/index.html",
        "<script",
        "the files of Streamlit's page are sent out of memory, and the hash of its script stands in the content policy",
        "find the folder of index.html; without it the files come from Streamlit, slower, and the policy forbids its script",
    ),
    Private(
        ".nsewdrag",
        "views/components/clicks.js",
        "plotly/package_data/plotly.min.js",
        "nsewdrag",
        "Plotly's events tell of no label and of no cell without a number, and nothing public has the pixels of a subplot",
        "find the element that covers a subplot and has data-subplot; until then clicks on tiles and cells do nothing",
    ),
    *(Private(name, _STYLE[0], _STYLE[1], name[1:], *_STYLE[2:]) for name in (".stAppHeader", ".stMainBlockContainer")),
    Private(".stVerticalBlock", _STYLE[0], _STYLE[1], "stVerticalBlock", *_STYLE[2:]),
)
PUBLIC = {
    "plotly": {"plotly.colors", "plotly.graph_objects", "plotly.offline"},
    "starlette": {
        f"starlette.{name}" for name in ("datastructures", "exceptions", "middleware", "requests", "responses", "types")
    },
    "streamlit": {"streamlit", "streamlit.typing"},
    "torch": {
        *("torch", "torch.distributed", "torch.nn", "torch.nn.functional", "torch.overrides"),
        *("torch.utils.data", "torch.utils.tensorboard"),
    },
    "transformers": {"transformers"},
    "uvicorn": {"uvicorn"},
}
"""The documented modules of each library."""
DOCUMENTED = {"_asdict", "_exit", "_fields", "_replace"}
"""Python's own, which begin with `_` all the same."""
_PRIVATE = re.compile(r"_[a-z]\w*|__self__")
_TEXT = {
    ".py": re.compile(r"_stcore|st\.__file__"),
    ".js": re.compile(r"(?<=\w\.)_[a-z]\w*"),
    "any": re.compile(
        r"\.nsewdrag|\.js-plotly-plot|\.[xy]tick\b|\.(?!player\b)[a-z]+layer\b|\.hovertext|\.modebar\w*"  # Plotly's
        r"|\.st[A-Z]\w*|\.st-emotion\w*|data-testid[^\]]*|data-baseweb[^\]]*"  # Streamlit's
    ),
}


@cache
def _nodes() -> dict[Path, list[ast.AST]]:
    return {file: list(ast.walk(ast.parse(file.read_text(encoding="utf-8")))) for file in PACKAGE.rglob("*.py")}


@cache
def _own() -> set[str]:
    """Every name that the package itself gives to something."""
    own = set()
    for node in chain.from_iterable(_nodes().values()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            own.add(node.attr)
    return own


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _of_python(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Attributes, keywords and modules."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_undocumented(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = str(node.module)
            inner = [f"{module}.{alias.name}" for alias in node.names if _is_module(f"{module}.{alias.name}")]
            yield from (name for name in inner or [module] if _is_undocumented(name))
        else:
            yield from filter(_is_foreign, _attributes(node))


def _attributes(node: ast.AST) -> list[str]:
    """The attribute or keyword that a node names, also as text: for `getattr`, or in a constant for it."""
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.keyword):
        return [node.arg or ""]
    texts: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        texts = [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr", "setattr"):
        texts = node.args[1:2]
    return [text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)]


def _is_foreign(name: str) -> bool:
    return bool(_PRIVATE.fullmatch(name)) and name not in DOCUMENTED and name not in _own()


def _is_undocumented(module: str) -> bool:
    library = module.partition(".")[0]
    return library in PUBLIC and module not in PUBLIC[library]


def _is_module(name: str) -> bool:
    """Whether it is a module of one of the libraries, told without importing one."""
    library, *rest = name.split(".")
    if library not in PUBLIC or not rest or (root := _folder(library)) is None:
        return False
    path = root.joinpath(*rest)
    return path.with_suffix(".py").is_file() or path.is_dir()


@cache
def _folder(library: str) -> Path | None:
    found = find_spec(library)
    return Path(str(found.origin)).parent if found else None


@cache
def _uses() -> set[tuple[str, str]]:
    """Every private name, and a file that uses it."""
    uses = set()
    for file in sorted(file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".js", ".css", ".html")):
        where, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        patterns = [_TEXT["any"], *([_TEXT[file.suffix]] if file.suffix in _TEXT else [])]
        found = [name for pattern in patterns for name in pattern.findall(text)]
        uses |= {(name, where) for name in [*found, *_of_python(_nodes().get(file, ()))]}
    return uses


def test_no_other_private_name_is_used() -> None:
    known = {(private.name, private.file) for private in TABLE}
    places = {private.name: private.file for private in TABLE}
    new = [
        f"{file} uses {name}, " + (f"which {places[name]} alone may use" if name in places else "which is private")
        for name, file in sorted(_uses() - known)
    ]
    assert not new, (
        f"{'; '.join(new)}. Look for a public way. If there is none, use it in one file, and write into the table of "
        "tests/test_private_names.py why, and what to do when it breaks."
    )


@pytest.mark.parametrize("private", TABLE, ids=lambda private: private.name)
def test_it_is_still_used(private: Private) -> None:
    assert (private.name, private.file) in _uses(), f"{private.file} no longer uses {private.name}: take it out of the table"


@pytest.mark.parametrize("private", TABLE, ids=lambda private: private.name)
def test_it_is_still_there(private: Private) -> None:
    library, _, path = private.theirs.partition("/")
    skip_without(library)
    folder = _folder(library)
    assert folder
    assert any(private.words in file.read_text(encoding="utf-8") for file in folder.glob(path)), (
        f"This {library} has no {private.words.strip()!r} in {path}, so that {private.file} may not work any more. It uses "
        f"{private.name}, because {private.why}. What to do: {private.broken}."
    )
