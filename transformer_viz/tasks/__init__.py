"""The tasks by name, found by looking into this folder: a task is a module that defines `TASK`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from transformer_viz.errors import ConfigError, listed
from transformer_viz.tasks.task import Example, Task

__all__ = ["Example", "Task", "make", "names"]

_NOT_TASKS = {"task", "strings"}


def names() -> list[str]:
    """All tasks, in alphabetical order: `german_toy.py` is `german-toy`."""
    return sorted(m.name.replace("_", "-") for m in iter_modules(__path__) if m.name not in _NOT_TASKS)


def make(name: str, options: dict[str, Any] | None = None) -> Task:
    """The named task, with its options.

    Raises:
        ConfigError: no such task, or options that it does not take.
    """
    if name not in names():
        raise ConfigError(f"task {name!r} is not known; choose one of {listed(names())}")
    if options is not None and not isinstance(options, dict):
        raise ConfigError(f"options of task {name!r} are {options!r}; keywords with values are needed")
    task = import_module(f"{__name__}.{name.replace('-', '_')}").TASK
    try:
        return task(**(options or {}))
    except TypeError as error:
        raise ConfigError(f"task {name!r} does not take these options: {listed((options or {}).keys())} ({error})") from error
