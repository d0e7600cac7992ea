"""The published variants by name. A new one is one new file here with `SETTINGS`; nothing else changes.

Every module's docstring names its source and the axes on which it differs from the others.
"""

from importlib import import_module
from inspect import cleandoc
from pkgutil import iter_modules
from typing import Any

from transformer_viz.errors import ConfigError, join_names


def names() -> list[str]:
    """Lists the variants, in alphabetical order: `pre_norm.py` is `pre-norm`."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(__path__))


def settings(name: str) -> dict[str, Any]:
    """The `ModelConfig` settings that make a model this variant.

    Raises:
        ConfigError: no such variant; the message lists the known ones.
    """
    return dict(_module(name).SETTINGS)


def description(name: str) -> str:
    """Describes a variant, its source, and what of the source is corrected: its module's docstring, a line for each paragraph.

    Raises:
        ConfigError: no such variant.
    """
    paragraphs = cleandoc(_module(name).__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _module(name: str) -> Any:
    if name not in names():
        raise ConfigError(f"variant {name!r} is not known; choose one of {join_names(names())}")
    return import_module(f"{__name__}.{name.replace('-', '_')}")
