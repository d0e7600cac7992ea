"""One package a page. A page is a module `PAGE/page.py` with `TITLE`, `ICON`, `ORDER`, `show()`; other packages are shared."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

_HERE = Path(__file__).parent


def names() -> list[str]:
    """What the pages are called in an address, without importing them."""
    return [module.name for module in iter_modules(__path__) if (_HERE / module.name / "page.py").is_file()]


def pages() -> list[ModuleType]:
    """The pages' modules, in the order in which the navigation shows them."""
    found = [import_module(f"{__name__}.{name}.page") for name in names()]
    return sorted(found, key=lambda page: page.ORDER)
