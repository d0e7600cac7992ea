"""The leak certificate: replace what must not be seen, and measure whether anything changes.

For a checkpoint of ours attention is visible, and the padding mask is given beside the ids: a padded
position holds a random token and must still change nothing. `check_callable.py` is for other people's models.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz import edits as plain_edits
from transformer_viz.analysis.mask_report import MaskReport, Precision, Rule, Tolerance, verdict_of
from transformer_viz.checkpoints import Checkpoint
from transformer_viz.edits import Edit
from transformer_viz.errors import OptionError
from transformer_viz.mask_checks.changes import TOLERANCES, Rows, is_no_distribution, name_of, row_change
from transformer_viz.mask_checks.check_callable import DEFAULT_LENGTH, check_callable
from transformer_viz.mask_checks.diagnosis import Seen, causes
from transformer_viz.mask_checks.worst import Worst
from transformer_viz.model import devices, mistakes
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import compose
from transformer_viz.model.transformer import Transformer
from transformer_viz.terms import KINDS, Kind
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.edit_tap import changing_tap, kind_sizes
from transformer_viz.tracing.framing import padded
from transformer_viz.vocabulary import PAD_ID, SPECIAL_TOKENS, START

_PAIRS = 16
_EXTRA_PADDING = 3
_MOST_REPLACEMENTS = 100


def check_masks(
    model: Checkpoint | Callable[[Tensor, Tensor], Any],
    *,
    mistake: str | None = None,
    edits: Iterable[Edit | str] = (),
    replacements: int = 3,
    seed: int = 0,
    vocabulary_size: int | None = None,
    pad_id: int | None = 0,
    max_length: int | None = None,
    avoid: Iterable[int] = (),
) -> MaskReport:
    """Proves, or disproves, that nothing leaks through a model's masks.

    Args:
        model: a checkpoint, or any callable from (source ids, target ids), int64 (batch, length) both, to logits
            (batch, target length, vocabulary).
        mistake: a deliberate mistake to check with (checkpoints only; see `model.mistakes`).
        edits: edits to check with (checkpoints only; see `edits`).
        replacements: random replacements of each position.
        seed: another seed draws other pairs and replacements.
        vocabulary_size: of a callable, source and target alike: ids from 0 to this - 1.
        pad_id: of a callable; None when it knows no padding, which is then not checked.
        max_length: of a callable: the longest source and target, before up to 7 pads are appended; None is 12.
        avoid: of a callable: ids that must not be drawn, special symbols for instance.

    Raises:
        OptionError: an impossible keyword.
    """
    if isinstance(replacements, bool) or not isinstance(replacements, int) or not 1 <= replacements <= _MOST_REPLACEMENTS:
        raise OptionError(f"replacements={replacements!r} is not possible; it is a whole number from 1 to {_MOST_REPLACEMENTS}")
    if not isinstance(model, Checkpoint):
        if mistake is not None or tuple(edits):
            raise OptionError("mistake and edits need a checkpoint; the attention of another model cannot be changed")
        longest = DEFAULT_LENGTH if max_length is None else max_length
        options = {"max_length": longest, "avoid": avoid, "replacements": replacements, "seed": seed}
        return check_callable(model, vocabulary_size, pad_id, **options)
    if vocabulary_size is not None or max_length is not None or tuple(avoid):
        raise OptionError("vocabulary_size, max_length and avoid are for callables; a checkpoint knows its own")
    made = None if mistake is None else mistakes.named(mistake)
    with devices.memory_errors(model.device), devices.few_threads(model.device, model.n_parameters), torch.inference_mode():
        return _Check(model, made, plain_edits.read(edits), replacements, np.random.default_rng([seed, 91])).report()


@dataclass(frozen=True)
class _Batch:
    """Pairs, padded: ids and padding, (batch, length)."""

    source: Tensor
    source_padding: Tensor
    target: Tensor
    target_padding: Tensor


@dataclass(frozen=True)
class _Pass:
    """What one forward pass showed, on the CPU."""

    weights: dict[Kind, Tensor]
    masked: dict[Kind, Tensor]
    logits: Tensor


class _Check:
    """One check of one checkpoint."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        mistake: Mistake | None,
        edits: Sequence[Edit],
        replacements: int,
        rng: np.random.Generator,
    ) -> None:
        self.checkpoint = checkpoint
        self.mistake = mistake
        self.edits = tuple(edits)
        self.replacements = replacements
        self.rng = rng
        self.worst = Worst()
        self.n_perturbed = 0
        # What is masked adds exactly nothing, in float32 too; only where the shape is another does rounding differ.
        own = _type_of(checkpoint.model)
        self.model = checkpoint.model if own == torch.float64 else _in(torch.float32, checkpoint.model)
        self.fine = _in(torch.float32 if checkpoint.device.type == "mps" else torch.float64, checkpoint.model)
        self.batch = self._pairs()
        sizes = kind_sizes(checkpoint.model.sizes)
        plain_edits.check(self.edits, sizes, self.batch.source.shape[1], self.batch.target.shape[1])
        self.base, self.fine_base = self._run(self.batch), self._run(self.batch, self.fine)
        self.rows, self.fine_rows = Rows.of(self.base.logits), Rows.of(self.fine_base.logits)

    def report(self) -> MaskReport:
        """Everything, one rule after the other."""
        self._check_finite(self.base)
        if _type_of(self.checkpoint.model) not in (torch.float32, torch.float64):
            self._check_finite(self._run(self.batch, self.checkpoint.model))
        self._check_target()
        self._check_target_length()
        self._check_source_padding()
        self._check_company()
        seen = Seen(self.base.weights, self.batch.source_padding, self.batch.target_padding)
        self._weigh_forbidden(seen)
        notes = [*self.worst.leave_out_what_the_future_explains(), *self._notes(seen)]
        findings = self.worst.findings()
        return MaskReport(
            verdict=verdict_of(findings),
            findings=findings,
            mistakes=causes(seen) if findings else (),
            checked=self.worst.checked,
            pairs=len(self.batch.source),
            replacements=self.n_perturbed,
            notes=tuple(notes),
            subject=self._subject(),
            precision=self.precision,
        )

    @property
    def precision(self) -> Precision:
        """What the checkpoint is of, and what is let pass."""
        own, same, other = (_type_of(model) for model in (self.checkpoint.model, self.model, self.fine))
        computed_in = name_of(same) if same == other else f"{name_of(same)} and {name_of(other)}"
        return Precision(name_of(own), computed_in, Tolerance(TOLERANCES[same].same_shape, TOLERANCES[other].other_shape))

    # ---- the rules

    def _check_finite(self, seen: _Pass) -> None:
        for kind in KINDS:
            broken = ~seen.weights[kind].isfinite().all(-1)
            self.worst.see_attention("finite", broken.float(), kind, 0.0)
        self.worst.see_output("finite", is_no_distribution(seen.logits).float(), 0.0)

    def _check_target(self) -> None:
        """Replaces each target position: later than a query, or padding."""
        real = ~self.batch.target_padding
        for key in range(1, self.batch.target.shape[1]):
            before = real & (torch.arange(real.shape[1]) < key)
            is_padding = self.batch.target_padding[:, key]
            for _ in range(self.replacements):
                after = self._run(self._with_target(key))
                for rule, sentences in (("future", ~is_padding), ("target padding", is_padding)):
                    self._compare(rule, after, {"decoder": before, "cross": before}, sentences, key)

    def _check_target_length(self) -> None:
        """The target without its end. Up to eight lengths, spread evenly: each is a pass of its own."""
        real, allowed = ~self.batch.target_padding, self.precision.tolerance.other_shape
        longest = real.shape[1]
        for n in sorted({int(n) for n in np.linspace(1, longest - 1, min(8, longest - 1)).round()}):
            target, padding, steps = self.batch.target[:, :n], self.batch.target_padding[:, :n], real[:, :n]
            after = self._run(_Batch(self.batch.source, self.batch.source_padding, target, padding), self.fine)
            for kind in ("decoder", "cross"):
                before = self.fine_base.weights[kind][..., :n, : n if kind == "decoder" else None]
                change = torch.where(steps[:, None, None], row_change(after.weights[kind], before), 0.0)
                self.worst.see_attention("target length", change, kind, allowed, n)
            change = torch.where(steps, self.fine_rows[:, :n].change(after.logits), 0.0)
            self.worst.see_output("target length", change, allowed, n)

    def _check_source_padding(self) -> None:
        """Replaces each padded source position by a real token; the mask still says padding."""
        steps = ~self.batch.target_padding
        rows: dict[Kind, Tensor] = {"encoder": ~self.batch.source_padding, "decoder": steps, "cross": steps}
        for key in range(self.batch.source.shape[1]):
            sentences = self.batch.source_padding[:, key]
            if not bool(sentences.any()):
                continue
            for _ in range(self.replacements):
                after = self._run(self._with_source(key, sentences))
                self._compare("source padding", after, rows, sentences, key)

    def _check_company(self) -> None:
        """Each sentence alone, unpadded, against its rows in the batch."""
        allowed = self.precision.tolerance.other_shape
        for i in range(len(self.batch.source)):
            n_source, n_target = (int((~p[i]).sum()) for p in (self.batch.source_padding, self.batch.target_padding))
            nothing = torch.zeros(1, 1, dtype=torch.bool)
            alone = self._run(
                _Batch(
                    self.batch.source[i : i + 1, :n_source],
                    nothing.expand(1, n_source),
                    self.batch.target[i : i + 1, :n_target],
                    nothing.expand(1, n_target),
                ),
                self.fine,
            )
            sizes = {"encoder": (n_source, n_source), "decoder": (n_target, n_target), "cross": (n_target, n_source)}
            for kind in KINDS:
                q, k = sizes[kind]
                change = row_change(self.fine_base.weights[kind][i : i + 1, ..., :q, :k], alone.weights[kind])
                self.worst.see_attention("company", change, kind, allowed)
            self.worst.see_output("company", self.fine_rows[i : i + 1, :n_target].change(alone.logits), allowed)

    def _compare(self, rule: Rule, after: _Pass, rows: dict[Kind, Tensor], sentences: Tensor, key: int) -> None:
        """`rows`, bool (batch, query), must not have changed in `sentences`, bool (batch,)."""
        allowed = self.precision.tolerance.same_shape
        for kind, mine in rows.items():
            change = row_change(after.weights[kind], self.base.weights[kind])
            mine = (mine & sentences[:, None])[:, None, None, :]
            self.worst.see_attention(rule, torch.where(mine, change, 0.0), kind, allowed, key)
        change = self.rows.change(after.logits)
        self.worst.see_output(rule, torch.where(rows["decoder"] & sentences[:, None], change, 0.0), allowed, key)

    def _weigh_forbidden(self, seen: Seen) -> None:
        """The largest weight of a real query on a key that the rule forbids, by rule."""
        places: tuple[tuple[Rule, Kind], ...] = (
            ("future", "decoder"),
            ("target padding", "decoder"),
            ("source padding", "encoder"),
            ("source padding", "cross"),
        )
        for rule, kind in places:
            cells = seen.forbidden(kind) & ~seen.padded_queries(kind)[:, :, None]
            cells = cells & (seen.padded_keys(kind)[:, None, :] == (rule != "future"))
            weights = seen.weights[kind].nan_to_num(0.0)
            self.worst.see_look(rule, torch.where(cells[:, None, None], weights, 0.0), kind)

    def _notes(self, seen: Seen) -> tuple[str, ...]:
        """Cells that are masked although nothing forbids them: no leak, but the model sees less than it may."""
        notes = []
        for kind in KINDS:
            real = ~(seen.padded_queries(kind)[:, :, None] | seen.forbidden(kind))
            needless = (self.base.masked[kind] & real[:, None, None]).any(0).any(0).any(0)
            if bool(needless.any()):
                query, key = (int(i) + 1 for i in needless.nonzero()[0])
                notes.append(
                    f"Note: {kind} masks {int(needless.sum())} cells that it need not, the first at query {query}, key {key}."
                )
        return tuple(notes)

    # ---- running

    def _pairs(self) -> _Batch:
        """Sentences of all lengths with their true answers, every one of them padded."""
        task = self.checkpoint.task
        lengths = np.linspace(task.evaluated_lengths[0], task.evaluated_lengths[-1], _PAIRS).round().astype(int)
        symbols = [task.symbols(text) for text in task.mixed(lengths.tolist(), self.rng)]
        source = padded([task.source_vocabulary.encode(task.frame(s)) for s in symbols])
        target = padded([task.target_vocabulary.encode([START, *(task.answer(s) or [])]) for s in symbols])
        most = self.checkpoint.model.config.max_positions
        source, target = (
            torch.nn.functional.pad(ids, (0, max(0, min(_EXTRA_PADDING, most - ids.shape[1]))), value=PAD_ID)
            for ids in (source, target)
        )
        return _Batch(source, source == PAD_ID, target, target == PAD_ID)

    def _with_target(self, key: int) -> _Batch:
        target = self.batch.target.clone()
        target[:, key] = self._other(target[:, key], len(self.checkpoint.task.target_vocabulary))
        return _Batch(self.batch.source, self.batch.source_padding, target, self.batch.target_padding)

    def _with_source(self, key: int, sentences: Tensor) -> _Batch:
        source = self.batch.source.clone()
        other = self._other(source[:, key], len(self.checkpoint.task.source_vocabulary))
        source[:, key] = torch.where(sentences, other, source[:, key])
        return _Batch(source, self.batch.source_padding, self.batch.target, self.batch.target_padding)

    def _other(self, ids: Tensor, vocabulary_size: int) -> Tensor:
        """A random real token for each sentence, never the one that stands there where there is another."""
        first = len(SPECIAL_TOKENS)
        n_real = vocabulary_size - first
        drawn = torch.from_numpy(self.rng.integers(first, vocabulary_size, len(ids)))
        return torch.where(drawn == ids, first + (drawn - first + 1) % n_real, drawn)

    def _run(self, batch: _Batch, model: Transformer | None = None) -> _Pass:
        self.n_perturbed += 1
        model, device = model or self.model, self.checkpoint.device
        recorder = Recorder(("weights", "mask"))
        changing = changing_tap(self.edits, self.mistake, model.sizes)
        tap = recorder if changing is None else compose(changing, recorder)
        ids = (batch.source, batch.target, batch.source_padding, batch.target_padding)
        logits = model(*(each.to(device) for each in ids), tap=tap)
        weights, masked = ({kind: _gathered(recorder, kind, name) for kind in KINDS} for name in ("weights", "mask"))
        return _Pass(weights, masked, logits.cpu().double())

    def _subject(self) -> str:
        words = f"checkpoint {self.checkpoint.name}"
        if self.mistake is not None:
            words += f" with the mistake {self.mistake.name}"
        return f"{words} with {len(self.edits)} edits" if self.edits else words


def _in(dtype: torch.dtype, model: Transformer) -> Transformer:
    return model if _type_of(model) == dtype else copy.deepcopy(model).to(dtype)


def _type_of(model: Transformer) -> torch.dtype:
    return next(model.parameters()).dtype


def _gathered(recorder: Recorder, kind: Kind, name: Any) -> Tensor:
    whole = recorder.gathered(kind, name)
    assert whole is not None
    return whole.cpu()
