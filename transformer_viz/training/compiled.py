"""The model's passes compiled (torch.compile): many small operations become a few kernels, which pays on a GPU."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from transformer_viz.errors import ConfigError


def compiled(module: nn.Module, backend: str | Callable[..., Any] = "inductor") -> Callable[..., Tensor]:
    """Calls `module` compiled. The first calls take a minute, and so does the first of another length, once.

    Args:
        module: forward gives a tensor.
        backend: a compiler that torch knows, or one as torch calls it.

    Raises:
        ConfigError: at a call: the machine has nothing to compile with.
    """
    fast = torch.compile(module, backend=backend)

    def call(*args: Any, **kwargs: Any) -> Tensor:
        try:
            return fast(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise ConfigError(
                f"the model cannot be compiled here ({_reason(error)}). On a GPU that needs Triton, on a CPU a C++ "
                "compiler. Or train without --compiled."
            ) from error

    return call


def _reason(error: RuntimeError) -> str:
    """Which compiler, and what it said; the pages after that are for those who write one."""
    return " ".join(str(error).strip().splitlines()[:2])[:200] or type(error).__name__
