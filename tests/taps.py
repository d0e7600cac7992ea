"""A tap of one function, for what a test looks at or changes."""

from collections.abc import Callable
from typing import get_args

from torch import Tensor

from transformer_viz.model.tap import Site, TapName

NAMES: tuple[TapName, ...] = get_args(TapName)


class FunctionTap:
    """Calls the function with every intermediate; a decorator."""

    names = NAMES

    def __init__(self, function: Callable[[Site, TapName, Tensor], Tensor]) -> None:
        self.function = function

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        return self.function(site, name, value)
