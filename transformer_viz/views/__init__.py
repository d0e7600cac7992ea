"""One package a page. A page is a module `PAGE/page.py` with `TITLE`, `ICON`, `ORDER`, `show()`; other packages are shared."""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).parent


@cache
def names() -> list[str]:
    """Lists the names of the pages in an address, without importing them."""
    return sorted(path.parent.name for path in _HERE.glob("*/page.py"))


def path(page: ModuleType) -> str:
    """The name of a page in an address: its folder."""
    return page.__name__.split(".")[-2]


@cache
def pages() -> list[ModuleType]:
    """The pages' modules, in the order in which the navigation shows them."""
    found = [import_module(f"{__name__}.{name}.page") for name in names()]
    return sorted(found, key=lambda page: page.ORDER)
