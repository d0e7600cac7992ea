"""What a model's modules call in torch: attention that no adapter records, and over how many columns a softmax goes.

Adapters know a way in which attention is called. Attention that is called in another way would be missing without a
word. But however it is called, its weights come from a softmax, and they multiply the values as a matrix.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from transformer_viz.tracing.adapters.running import Running

_SOFTMAX = {"softmax", "special_softmax"}
_PRODUCT = {"matmul", "__matmul__", "__rmatmul__", "linalg_matmul", "bmm", "mm", "einsum"}
_FUSED = {"scaled_dot_product_attention", "multi_head_attention_forward"}


class Functions(TorchFunctionMode):
    """While it is entered, notes each call in this thread with the module that runs.

    Attributes:
        attending: names of the modules in which weights from a softmax were multiplied with a matrix, in order.
        softmax_columns: by name of a module, over how many columns its last softmax went.
    """

    def __init__(self, running: Running) -> None:
        super().__init__()
        self.attending: dict[str, None] = {}
        self.softmax_columns: dict[str, int] = {}
        self._running = running
        self._weights = WeakTensorKeyDictionary()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        returned = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in _FUSED:
            self.attending[self._running.innermost] = None
        elif name in _SOFTMAX and isinstance(returned, Tensor):
            self.softmax_columns[self._running.innermost] = returned.shape[-1]
            self._weights[returned] = True
        elif self._weights:
            self._follow(name, [*_tensors((args, kwargs))], returned)
        return returned

    def _follow(self, name: str, given: list[Tensor], returned: Any) -> None:
        """Weights stay weights through dropout, a cast, a view or a mask, until a matrix is multiplied."""
        given = [tensor for tensor in given if tensor.is_floating_point()]
        weights = [tensor for tensor in given if tensor in self._weights]
        if weights and name in _PRODUCT:
            if not any(map(is_parameter, given)):  # a projection, not values
                self.attending[self._running.innermost] = None
        elif weights:
            for made in _tensors(returned):
                if len(weights) == len(given) or made.numel() == weights[0].numel():
                    self._weights[made] = True


def is_parameter(tensor: Tensor) -> bool:
    """Whether it is one, or a view of one: what a view is of, torch tells by no public name."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, dict):
        yield from _tensors([*given.values()])
    elif isinstance(given, list | tuple):
        for part in given:
            yield from _tensors(part)
