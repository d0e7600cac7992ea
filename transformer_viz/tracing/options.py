"""Numbers that people give as keywords, checked."""

from transformer_viz.errors import OptionError


def whole(name: str, value: int | None, least: int, most: int, default: int | None = None) -> int:
    """A whole number within limits, or an OptionError that names them."""
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OptionError(f"{name}={value!r} is not possible; it is a whole number from {least} to {most}")
    return value
