"""One pass of a module, in eval mode and without gradients, with all of its attention seen."""

import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn

from transformer_viz.errors import OptionError, TransformerVizError
from transformer_viz.model import devices
from transformer_viz.readers.modules.operators import Changes, NotChangeable, OperatorTap, Seen, without_fused_kernels
from transformer_viz.readers.modules.running import RunningModules

Call = Callable[..., Any]
_ONE_AT_A_TIME = threading.RLock()
"""Each pass restores modes and settings of torch, and would restore what another pass had set."""
_NEED_AUTOGRAD = WeakSet[nn.Module]()
"""Modules that were found to compute gradients, or to cast by autocast: their operators are seen in parts from the first."""
_MOST_LINES = 3
_OURS = [Path(torch.__file__).parent, Path(__file__).parents[2], Path(torch.__file__).parents[1] / "transformers"]


@dataclass(frozen=True)
class Pass:
    """The output of one pass, and its softmaxes."""

    returned: Any
    seen: Seen
    running: RunningModules


@dataclass(frozen=True)
class Passes:
    """A module and how it is called.

    Attributes:
        model: the module.
        call: runs it.
        has_run: whether it ran so before, or somebody said how it is called: its arguments are right.
    """

    model: nn.Module
    call: Call
    has_run: bool = False

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""
        return next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))

    def run(self, *ids: Tensor, changes: Changes | None = None, is_searching: bool = False) -> Pass:
        """Runs the module over ids.

        Raises:
            OptionError: it fails; the message has the line of its code.
        """
        # Outside of inference mode, whose tensors the module could not be trained with if it keeps some.
        with prepared(self.model, has_run=self.has_run), torch.inference_mode(False), torch.no_grad():
            done = None
            if self.model not in _NEED_AUTOGRAD:
                try:
                    done = self._pass(ids, changes, is_searching=is_searching, is_whole=True)
                except (TransformerVizError, NotChangeable):
                    raise
                except Exception:
                    # Perhaps it computes gradients itself. Any other error is raised again.
                    done = None
            if done is None:
                done = self._pass(ids, changes, is_searching=is_searching, is_whole=False)
                _NEED_AUTOGRAD.add(self.model)
        assert done is not None
        return done

    def _pass(self, ids: Sequence[Tensor], changes: Changes | None, *, is_searching: bool, is_whole: bool) -> Pass | None:
        """One pass, in which composed operators are seen whole or in their parts; None where that has to be in parts."""
        running = RunningModules(self.model)
        tap = OperatorTap(running, changes, is_searching=is_searching)
        with tap.whole() if is_whole else nullcontext(), running.followed(), tap:
            returned = self.call(*(each.clone() for each in ids))
        return None if is_whole and tap.needs_autograd else Pass(returned, tap.seen, running)


@contextmanager
def prepared(model: nn.Module, *, has_run: bool = False) -> Generator[None]:
    """Eval mode, without fused kernels, and errors of the module's own code in words; everything is as it was afterwards."""
    with _ONE_AT_A_TIME:
        modes = [(module, module.training) for module in model.modules() if module.training]
        try:
            for module, _ in modes:
                module.training = False
            # Compiled code is seen by nobody; the module is run as it was written. The import alone takes seconds.
            eager = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
            with without_fused_kernels(), eager:
                yield
        except (TransformerVizError, NotChangeable):
            raise
        except Exception as error:
            if devices.is_out_of_memory(error):
                raise
            hint = "" if has_run else " Does it take (source_ids, target_ids)? Otherwise say with call= how it is run."
            raise OptionError(f"{type(model).__name__} failed: {error_words(error)}.{hint}") from error
        finally:
            for module, mode in modes:
                module.training = mode


def error_words(error: BaseException) -> str:
    """An error of somebody's code, with the file and the line in which it happened, and how it came there."""
    words = f"{type(error).__name__}: {str(error)[:300]}"
    if isinstance(error, SyntaxError):
        # Its own words end with the file and the line.
        return words
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_hers(frame.filename)]
    lines = [f"{Path(frame.filename).name}, line {frame.lineno}: {frame.line}" for frame in frames[-_MOST_LINES:]]
    return f"{words} ({'; '.join(lines)})" if lines else words


def _is_hers(file: str) -> bool:
    """Tells whether a file is not of torch, of transformers or of this package."""
    return not any(Path(file).is_relative_to(folder) for folder in _OURS) and not file.startswith("<frozen")
