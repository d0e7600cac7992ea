"""The tasks by name, found by looking into this folder: a task is a module that defines `TASK`. The two toys are one module."""

from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import Any

from transformer_viz.errors import ConfigError, join_names, short_repr
from transformer_viz.tasks.task import Example, Task
from transformer_viz.vocabulary import Vocabulary

__all__ = ["Example", "Task", "make", "names"]

# What several tasks share.
_NOT_TASKS = {"task", "letters", "corpus", "toys", "translation"}
_TOYS = ("german-toy", "pinyin-toy")


def names() -> list[str]:
    """Lists the tasks, in alphabetical order: `german_toy.py` would be `german-toy`."""
    return sorted([*_TOYS, *(m.name.replace("_", "-") for m in iter_modules(__path__) if m.name not in _NOT_TASKS)])


def make_task(
    name: str, options: dict[str, Any] | None = None, vocabularies: tuple[Vocabulary, Vocabulary] | None = None
) -> Task:
    """The named task, with its options.

    Args:
        name: one of `names()`.
        options: keywords of the task.
        vocabularies: source and target of a trained checkpoint, for the tasks that make theirs from data.

    Raises:
        ConfigError: no such task, options that it does not take, or data that is not installed.
    """
    task = _task_class(name)
    if options is not None and (not isinstance(options, dict) or "vocabularies" in options):
        raise ConfigError(f"options of task {name!r} are {short_repr(options)}; keywords with values are needed")
    more = {"vocabularies": vocabularies} if vocabularies and "vocabularies" in signature(task).parameters else {}
    try:
        return task(**(options or {}), **more)
    except TypeError as error:
        raise ConfigError(
            f"task {name!r} does not take these options: {join_names((options or {}).keys())} ({error})"
        ) from error


def about(name: str) -> str:
    """Says what models of the named task do: the rest of a sentence that begins with *This model*; no data is read for it.

    Raises:
        ConfigError: no such task.
    """
    return _task_class(name).about


def _task_class(name: str) -> type[Task]:
    if name not in names():
        raise ConfigError(f"task {short_repr(name)} is not known; choose one of {join_names(names())}")
    if name in _TOYS:
        return next(toy for toy in import_module(f"{__name__}.toys").TASKS if toy.name == name)
    return import_module(f"{__name__}.{name.replace('-', '_')}").TASK
