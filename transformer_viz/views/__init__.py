"""One file a screen. A view is a module here with `TITLE`, `ICON`, `ORDER` and `show()`; `parts/` is shared."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def names() -> list[str]:
    """What the views are called in an address, without importing them."""
    return [module.name for module in iter_modules(__path__) if not module.ispkg]


def pages() -> list[ModuleType]:
    """The views, in the order in which the navigation shows them."""
    found = [import_module(f"{__name__}.{name}") for name in names()]
    return sorted(found, key=lambda view: view.ORDER)
