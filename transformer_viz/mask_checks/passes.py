"""Passes through a model whose masks are checked: its attention and its output, in its own precision and in float64."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_viz.analysis.mask_report import Precision, Tolerance
from transformer_viz.decoding.reader import Reader
from transformer_viz.edits import Edit
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.changes import TOLERANCES, name_of
from transformer_viz.mask_checks.in_float64 import InFloat64, coarser
from transformer_viz.mask_checks.sentences import Batch
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import TapName, compose
from transformer_viz.model.transformer import Transformer
from transformer_viz.terms import Kind
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.edit_tap import changing_tap


@dataclass(frozen=True)
class Pass:
    """What one forward pass showed, on the CPU.

    Attributes:
        weights: of each kind of attention that the model has.
        masked: likewise.
        logits: (batch, position, vocabulary).
    """

    weights: dict[Kind, Tensor]
    masked: dict[Kind, Tensor]
    logits: Tensor


class Passes:
    """Runs one model.

    What is masked adds exactly nothing, in float32 too; only where the shape is another does rounding differ. So the model's
    own type is enough at the same shape, and where it is another all is computed in float64. A model of ours is copied. Others
    are run within `InFloat64`, since their code itself names float32 in places: for a softmax, for a norm.

    Attributes:
        own: the type that the model answers in; of one that is not ours it is known when it has answered.
        n_run: how many passes there were.
    """

    def __init__(
        self,
        model: LoadedModel,
        edits: Sequence[Edit],
        mistake: Mistake | None,
        on_pass: Callable[[int], object] | None = None,
    ) -> None:
        """`on_pass` is told before each pass how many there were."""
        self._model, self._edits, self._mistake = model, tuple(edits), mistake
        self._on_pass = on_pass
        self._same: Reader = model.model
        self._exact: Reader | None = None
        self.own = self._same_type = self._exact_type = torch.float64
        self.n_run = 0
        if isinstance(model.model, Transformer):
            self._copy(model.model)

    @property
    def precision(self) -> Precision:
        """What the model is of, and what is let pass."""
        same, exact = self._same_type, self._exact_type
        computed_in = name_of(same) if same == exact else f"{name_of(same)} and {name_of(exact)}"
        return Precision(name_of(self.own), computed_in, Tolerance(TOLERANCES[same].same_shape, TOLERANCES[exact].other_shape))

    @property
    def rounding(self) -> float:
        """The largest change at the same shape that rounding may explain, where a finer type can tell."""
        return TOLERANCES[self._same_type].other_shape if self._same_type != self._exact_type else 0.0

    def as_it_is(self, batch: Batch) -> Pass:
        """In the model's own type, whichever that is."""
        return self._run(self._model.model, batch)

    def __call__(self, batch: Batch) -> Pass:
        """To be compared with others of the same shape."""
        found = self._run(self._same, batch)
        if self._exact is None:
            self.own = self._same_type = next(iter(found.weights.values())).dtype
        return found

    def exact(self, batch: Batch) -> Pass:
        """To be compared with others of another shape."""
        if self._exact is not None:
            return self._run(self._exact, batch)
        with InFloat64(sets_default=False) as mode:
            found = self._run(self._same, batch)
        self._exact_type = coarser(self._exact_type, mode.computed_in)
        return found

    def _copy(self, own: Transformer) -> None:
        self.own = next(own.parameters()).dtype
        self._same_type = torch.float64 if self.own == torch.float64 else torch.float32
        self._exact_type = torch.float32 if self._model.device.type == "mps" else torch.float64
        self._same, self._exact = _in(self._same_type, own), _in(self._exact_type, own)

    def _run(self, reader: Reader, batch: Batch) -> Pass:
        if self._on_pass is not None:
            self._on_pass(self.n_run)
        self.n_run += 1
        sizes, recorder = reader.sizes, Recorder(("weights", "mask"))
        changing = changing_tap(self._edits, self._mistake, sizes)
        tap = compose(changing, recorder)
        ids = (batch.source, batch.source_padding, batch.target, batch.target_padding)
        source, source_padding, target, target_padding = (each.to(self._model.device) for each in ids)
        memory = reader.encode(source, source_padding, tap=tap)
        logits = reader.decode(target, memory, source_padding, target_padding, tap=tap) if reader.kind.writes else memory
        if logits is None:  # an encoder that says nothing of its places
            logits = source.new_zeros(*source.shape, 1, dtype=torch.float64)
        weights, masked = ({kind: _gathered(recorder, kind, name) for kind in sizes.kinds} for name in ("weights", "mask"))
        return Pass(weights, masked, logits.cpu())


def _in(dtype: torch.dtype, model: Transformer) -> Transformer:
    return model if next(model.parameters()).dtype == dtype else copy.deepcopy(model).to(dtype)


def _gathered(recorder: Recorder, kind: Kind, name: TapName) -> Tensor:
    whole = recorder.gathered(kind, name)
    assert whole is not None
    return whole.cpu()
