"""Which of how many processes this one is, as torchrun says it in the environment. No torch is needed to know."""

import os
from typing import NamedTuple

from transformer_viz.errors import OptionError

_NEEDED = ("RANK", "MASTER_ADDR", "MASTER_PORT")


class Processes(NamedTuple):
    """A training's processes; the number on this machine is what chooses a GPU."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0


def processes() -> Processes:
    """What the environment says; a process alone where it says nothing.

    Raises:
        OptionError: it says what cannot be.
    """
    count = _number("WORLD_SIZE", 1, 1, 100_000)
    if count == 1:
        return Processes()
    if missing := [name for name in _NEEDED if not os.environ.get(name)]:
        raise OptionError(
            f"WORLD_SIZE={count} in the environment says that {count} processes train together, and {missing[0]} is not set. "
            "Start them with torchrun, which sets both, or unset WORLD_SIZE."
        )
    _number("MASTER_PORT", 0, 0, 65535)
    return Processes(_number("RANK", 0, 0, count - 1), count, _number("LOCAL_RANK", 0, 0, count - 1))


def _number(name: str, default: int, least: int, most: int) -> int:
    given = os.environ.get(name, str(default))
    # str.isdigit is true of superscripts and other digits that int() cannot read.
    if not (given.isascii() and given.isdigit() and len(given) < 10 and least <= int(given) <= most):
        raise OptionError(
            f"{name}={given[:40]!r} in the environment is not possible; it is a whole number from {least} to {most}. "
            "torchrun sets it where several processes train together; to train in one, unset it."
        )
    return int(given)
