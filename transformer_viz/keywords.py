"""Keywords that several public functions share: declared once, and shown in the help of each."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


def with_keywords(keywords: type, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    """A decorator for a function with `**options: Unpack[keywords]`: its signature shows each keyword with type and default.

    Args:
        keywords: a TypedDict.
        defaults: by name; a keyword that is missing here is None by default.
    """

    def decorated(function: F) -> F:
        plain = signature(function)
        own = [parameter for parameter in plain.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        options = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=hint)
            for name, hint in get_type_hints(keywords).items()
        ]
        vars(function)["__signature__"] = plain.replace(parameters=[*own, *options])
        return function

    return decorated
