"""What the tests cannot reach by a public name: used or replaced here and nowhere else, each with the reason why.

Streamlit is imported by those alone who use it: most tests do not.
"""

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from transformer_viz import commands

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

# Ours

WITHOUT_A_QUESTION = {"transformer_viz_lessons": "0.1"}
"""The cookie of a browser that was at the bare address before, and has put the first question away."""


def nothing_is_open(patch: pytest.MonkeyPatch) -> None:
    """No session holds an opened trace: those of the tests before are counted until Python has let go of them."""
    patch.setattr("transformer_viz.views.components.opened._HELD", weakref.WeakSet())


def add_commands(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The command line has those of a folder, too, as if they were new files in its package."""
    patch.setattr(commands, "__path__", [*commands.__path__, str(folder)])


# Streamlit's AppTest


def visit(at: "AppTest", page: str | None) -> "AppTest":
    """Runs this page; `AppTest.switch_page` knows pages that are files only."""
    from streamlit.util import calc_hash

    at._page_hash = calc_hash(page or "")
    at.run()
    # Or each run that follows would be taken for one of a page that was just opened.
    at._page_hash = ""
    return at


def tell(at: "AppTest", widget_id: str, value: str) -> "AppTest":
    """Runs the page after a component of ours has told its state as JSON; AppTest knows no components."""
    states = at._tree.get_widget_states()
    states.widgets.add(id=widget_id, json_value=value)
    return at._run(states)


def late(at: "AppTest") -> Callable[[], "AppTest"]:
    """A press that the browser sends before it hears of what is decided now: every box has there what it has now."""
    states = at._tree.get_widget_states()
    return lambda: at._run(states)


def fail_with_the_page(patch: pytest.MonkeyPatch) -> None:
    """A page that raises fails its test at once: no test asks for it. Elements run a page by the private name alone."""
    from streamlit.testing.v1 import AppTest

    run = AppTest._run

    def checked(at: AppTest, *arguments: Any, **options: Any) -> AppTest:
        run(at, *arguments, **options)
        assert not at.exception, at.exception
        return at

    patch.setattr(AppTest, "_run", checked)


def tree(at: "AppTest") -> Any:
    """All that the page sent, in its order; AppTest gives elements by their kind only, and not those of every kind."""
    return at._tree


# What a model is left as


def hooks(model: nn.Module) -> list[tuple[int, int]]:
    """Of each module the number of its hooks after and before; torch tells of none."""
    return [(len(module._forward_hooks), len(module._forward_pre_hooks)) for module in model.modules()]


def has_mode() -> bool:
    """Whether a mode that sees torch's operators is in force; torch does not say."""
    return bool(_get_current_dispatch_mode_stack())


def attention_of(config: Any) -> str:
    """The implementation of attention that transformers has chosen; only choosing is public."""
    return config._attn_implementation
