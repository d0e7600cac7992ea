"""The mask check of a loaded model: attention is visible, and the padding mask is given beside the ids.

A padded position holds a random token and must still change nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from transformer_viz.decoding.run import read
from transformer_viz.decoding.token_batch import TokenBatch
from transformer_viz.edits import Edit
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.changes import TOLERANCES, Findings, Rows, is_no_distribution, name_of, row_change
from transformer_viz.mask_checks.diagnosis import ObservedWeights, likely_causes
from transformer_viz.mask_checks.float64_mode import Float64Mode, coarser
from transformer_viz.mask_checks.perturbations import Perturbations
from transformer_viz.mask_checks.result import Cause, MaskReport, Precision, Rule, Tolerance, verdict_of
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import compose
from transformer_viz.terms import Kind
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.edit_tap import changing_tap


@dataclass(frozen=True)
class Pass:
    """Attention and logits of one forward pass, on the CPU.

    Attributes:
        weights: of each kind of attention that the model has (batch, layer, head, query, key).
        masked: of each kind, bool (batch, layer, head or 1, query, key), True = masked.
        logits: (batch, position, vocabulary).
    """

    weights: dict[Kind, Tensor]
    masked: dict[Kind, Tensor]
    logits: Tensor

    @cached_property
    def rows(self) -> Rows:
        """The logits, to be compared with those of another pass."""
        return Rows.of(self.logits)


class LoadedModelCheck:
    """One check of one model.

    A masked key adds exactly 0, in float32 too, and rounding differs only between shapes. So passes of one shape are compared
    in float32 where that is the model's own type; all else is computed in float64.

    Args:
        model: what is checked.
        perturbations: of its sentences.
        edits: of its masks, heads and rows.
        mistake: a deliberate one.
        on_pass: is told before each pass how many there were.
    """

    def __init__(
        self,
        model: LoadedModel,
        perturbations: Perturbations,
        edits: Sequence[Edit],
        mistake: Mistake | None,
        on_pass: Callable[[int], object],
    ) -> None:
        self._model, self._edits, self._mistake, self._on_pass = model, tuple(edits), mistake, on_pass
        self._perturbations, self._findings, self._n_passes = perturbations, Findings(), 0
        self._own = self._exact_type = torch.float64
        self._alone: list[Pass] = []

    @property
    def _same_type(self) -> torch.dtype:
        """The precision in which passes of the same shape are compared."""
        return self._own if self._own in (torch.float32, torch.float64) else self._exact_type

    def report(self, subject: str) -> MaskReport:
        """Tests one rule after the other. A batch of prompts is padded before them; that is a batch by itself."""
        notes: list[str] = []
        causes: tuple[Cause, ...] = ()
        for batch in self._perturbations.batches:
            own, exact = self._run(batch), self._run(batch, exact=True)
            self._own = next(iter(own.weights.values())).dtype
            base = own if self._same_type == self._own else exact
            self._check_finite(own)
            if base is not own:
                self._check_finite(base)
            self._check_rules(batch, base, exact)
            seen = ObservedWeights(base.weights, batch.source_padding, batch.target_padding)
            self._add_forbidden_weights(seen)
            causes = causes or likely_causes(seen)
            notes += self._needless_mask_notes(seen, base.masked)
        notes = [*self._findings.drop_target_length_beside_future(), *dict.fromkeys(notes), *self._perturbations.notes]
        findings, same, exact_type = self._findings.worst(), self._same_type, self._exact_type
        return MaskReport(
            verdict=verdict_of(findings),
            findings=findings,
            mistakes=causes if findings else (),
            checked=self._findings.checked,
            pairs=len(self._perturbations.batches[0].source),
            replacements=self._n_passes,
            notes=tuple(notes),
            subject=subject,
            precision=Precision(
                name_of(self._own),
                name_of(same) if same == exact_type else f"{name_of(same)} and {name_of(exact_type)}",
                Tolerance(TOLERANCES[same].same_shape, TOLERANCES[exact_type].other_shape),
            ),
            tried=self._perturbations.tried,
        )

    def _run(self, batch: TokenBatch, *, exact: bool = False) -> Pass:
        """One pass, as the model computes by itself or in float64."""
        self._on_pass(self._n_passes)
        self._n_passes += 1
        reader, device, recorder = self._model.network, self._model.device, Recorder(("weights", "mask"))
        tap = compose(changing_tap(self._edits, self._mistake, reader.sizes), recorder)
        there = batch.to(device)
        mode = Float64Mode(sets_default=False) if exact and device.type != "mps" else None
        with mode or nullcontext():
            logits = read(reader, there, tap)
        if logits is None:  # an encoder that says nothing of its places
            logits = there.source.new_zeros(*there.source.shape, 1, dtype=torch.float64)
        weights, masked = dict[Kind, Tensor](), dict[Kind, Tensor]()
        for kind in reader.sizes.kinds:
            of_weights, of_mask = recorder.gathered(kind, "weights"), recorder.gathered(kind, "mask")
            assert of_weights is not None and of_mask is not None
            weights[kind], masked[kind] = of_weights.cpu(), of_mask.cpu()
            if exact:
                self._exact_type = coarser(self._exact_type, of_weights.dtype if mode is None else mode.computed_in)
        return Pass(weights, masked, logits.cpu())

    # ---- the rules

    def _check_finite(self, seen: Pass) -> None:
        for kind, weights in seen.weights.items():
            self._findings.add("finite", (~weights.isfinite().all(-1)).float(), 0.0, kind=kind)
        self._findings.add("finite", is_no_distribution(seen.logits).float(), 0.0)

    def _check_rules(self, batch: TokenBatch, base: Pass, exact: Pass) -> None:
        """Tests the rules on a batch, by the pass to compare with others of its shape and the exact one for other shapes."""
        findings = self._findings

        def compare(rule: Rule, other: TokenBatch, after: Pass, rows: Mapping[Kind, Tensor], keys: Tensor) -> None:
            """`rows`, bool (batch, query), must not have changed when the tokens at `keys`, (batch,), were replaced.

            A mixture of experts gives each expert another number of tokens then, and so rounds differently at the same shape:
            what rounding can explain is computed again in float64.
            """
            same = TOLERANCES[self._same_type]
            allowed = same.same_shape

            def changes(before: Pass, after: Pass) -> tuple[dict[Kind, Tensor], Tensor]:
                """The changes of weights, (batch, layer, head, query), and of logits, (batch, position)."""
                of_weights = {
                    kind: torch.where(rows[kind][:, None, None, :], row_change(after.weights[kind], before.weights[kind]), 0.0)
                    for kind in after.weights.keys() & rows.keys()
                }
                return of_weights, torch.where(rows[batch.output_kind], before.rows.change(after.logits), 0.0)

            of_weights, of_logits = changes(base, after)
            largest = max(float(change.max()) for change in (*of_weights.values(), of_logits))
            if self._same_type != self._exact_type and allowed < largest <= same.other_shape:
                allowed = TOLERANCES[self._exact_type].other_shape
                of_weights, of_logits = changes(exact, self._run(other, exact=True))
            for kind, change in of_weights.items():
                findings.add(rule, change, allowed, keys, kind)
            findings.add(rule, of_logits, allowed, keys)

        real_source, real_target = ~batch.source_padding, ~batch.target_padding
        # Each target position replaced: later than a query, or padding.
        for other, keys, _ in self._perturbations.perturbed(batch, "target"):
            before = real_target & (torch.arange(real_target.shape[1]) < keys[:, None])
            is_padding = batch.target_padding.gather(1, keys[:, None])
            after = self._run_same(other)
            for rule, rows in (("future", before & ~is_padding), ("target padding", real_target & is_padding)):
                compare(rule, other, after, {"decoder": rows, "cross": rows}, keys)
        allowed = TOLERANCES[self._exact_type].other_shape
        if not self._alone:
            # The target without its end.
            for n in self._perturbations.cut_lengths(batch):
                after, steps = self._run(batch.until(n), exact=True), real_target[:, :n]
                for kind in after.weights.keys() - {"encoder"}:
                    cut = exact.weights[kind][..., :n, : n if kind == "decoder" else None]
                    change = torch.where(steps[:, None, None], row_change(after.weights[kind], cut), 0.0)
                    findings.add("target length", change, allowed, n, kind)
                change = torch.where(steps, exact.rows[:, :n].change(after.logits), 0.0)
                findings.add("target length", change, allowed, n)
        # Padded source positions replaced by real tokens; the mask still says padding.
        for other, keys, pairs in self._perturbations.perturbed(batch, "source"):
            source, target = real_source & pairs[:, None], real_target & pairs[:, None]
            rows_of: dict[Kind, Tensor] = {"encoder": source, "decoder": target, "cross": target}
            compare("source padding", other, self._run_same(other), rows_of, keys)
        # Each sentence alone, unpadded, against its rows in the batch. On which side that was padded does not matter then.
        self._alone = self._alone or [self._run(batch.alone(i), exact=True) for i in range(len(batch.source))]
        for i, alone in enumerate(self._alone):
            source, target = real_source[i], real_target[i]
            sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
            for kind, weights in alone.weights.items():
                queries, keys = sides[kind]
                change = row_change(exact.weights[kind][i : i + 1, ..., queries, :][..., keys], weights)
                findings.add("batch invariance", change, allowed, kind=kind)
            rows = exact.rows[i : i + 1, target if batch.output_kind == "decoder" else source]
            findings.add("batch invariance", rows.change(alone.logits), allowed)

    def _run_same(self, batch: TokenBatch) -> Pass:
        """A pass to compare with others of the same shape."""
        return self._run(batch, exact=self._same_type != self._own)

    def _add_forbidden_weights(self, seen: ObservedWeights) -> None:
        """The largest weight of a real query on a key that the rule forbids, by rule."""
        places: tuple[tuple[Rule, Kind], ...] = (
            ("future", "decoder"),
            ("target padding", "decoder"),
            ("source padding", "encoder"),
            ("source padding", "cross"),
        )
        for rule, kind in places:
            if kind in seen.weights:
                cells = seen.forbidden(kind) & ~seen.padded_queries(kind)[:, :, None]
                cells = cells & (seen.padded_keys(kind)[:, None, :] == (rule != "future"))
                weights = torch.where(cells[:, None, None], seen.weights[kind].nan_to_num(0.0), 0.0)
                self._findings.add_forbidden_weight(rule, weights, kind)

    def _needless_mask_notes(self, seen: ObservedWeights, masked_of: Mapping[Kind, Tensor]) -> list[str]:
        """Cells that are masked although nothing forbids them: no leak, but the model sees less than it may."""
        notes, sizes = [], self._model.network.sizes
        for kind, masked in masked_of.items():
            n_queries, n_keys = masked.shape[-2:]
            apart = (torch.arange(n_queries)[:, None] - torch.arange(n_keys)).abs()
            windows = sizes.windows.get(kind, {})
            outside = torch.stack([apart >= windows.get(layer, n_queries) for layer in sizes.layers[kind]])[:, None]
            real = ~(seen.padded_queries(kind)[:, :, None] | seen.forbidden(kind))
            needless = (masked & real[:, None, None] & ~outside).any(0).any(0).any(0)
            if bool(needless.any()):
                query, key = (int(i) + 1 for i in needless.nonzero()[0])
                notes.append(
                    f"Note: {kind} masks {int(needless.sum())} cells that it need not, the first at query {query}, key {key}."
                )
        return notes
