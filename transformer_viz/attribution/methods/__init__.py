"""The measures of attribution by name, found by looking into this folder: each is a module that defines `METHOD`."""

from importlib import import_module
from pkgutil import iter_modules

from transformer_viz.attribution.method import Method

_FOUND = {module.name: import_module(f"{__name__}.{module.name}").METHOD for module in iter_modules(__path__)}
METHODS: dict[str, Method] = dict(sorted(_FOUND.items(), key=lambda named: (named[1].order, named[0])))
"""In the order in which they are listed."""
