"""The leak certificate: replace what must not be seen, and measure whether anything changes.

Of a loaded model attention is visible, and the padding mask is given beside the ids: a padded
position holds a random token and must still change nothing. `check_callable.py` is for what is only called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_viz import edits as plain_edits
from transformer_viz.analysis.mask_report import Cause, MaskReport, Rule, verdict_of
from transformer_viz.edits import Edit
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.changes import Rows, is_no_distribution, row_change
from transformer_viz.mask_checks.check_callable import DEFAULT_LENGTH, check_callable
from transformer_viz.mask_checks.diagnosis import Seen, causes
from transformer_viz.mask_checks.passes import Pass, Passes
from transformer_viz.mask_checks.sentences import Batch, Sentences
from transformer_viz.mask_checks.worst import Worst
from transformer_viz.model import devices, mistakes
from transformer_viz.model.sizes import Sizes
from transformer_viz.schema import whole_number
from transformer_viz.terms import Kind
from transformer_viz.tracing.edit_tap import kind_sizes
from transformer_viz.tracing.watching import OnProgress

_MOST_REPLACEMENTS = 100


def check_masks(
    model: LoadedModel | Callable[[Tensor, Tensor], Any],
    *,
    texts: Sequence[str] | None = None,
    mistake: str | None = None,
    edits: Iterable[Edit | str] = (),
    replacements: int = 3,
    seed: int = 0,
    vocabulary_size: int | None = None,
    pad_id: int | None = 0,
    max_length: int | None = None,
    avoid: Iterable[int] = (),
    on_progress: OnProgress | None = None,
) -> MaskReport:
    """Proves, or disproves, that nothing leaks through a model's masks.

    Args:
        model: a checkpoint or what `load_model` returns, or any callable from (source ids, target ids), int64 (batch, length)
            both, to logits (batch, target length, vocabulary).
        texts: of a loaded model: what is read, at most 8 texts, of which 16 tokens each are looked at. By default pairs of its
            task, and where it has none strings of random tokens: a mask does not know which tokens they are.
        mistake: a deliberate mistake to check with (not with a callable; see `model.mistakes`).
        edits: edits to check with (not with a callable; see `edits`).
        replacements: random replacements of each position.
        seed: another seed draws other pairs and replacements.
        vocabulary_size: of a callable, source and target alike: ids from 0 to this - 1.
        pad_id: of a callable; None when it knows no padding, which is then not checked.
        max_length: of a callable: the longest source and target, before up to 7 pads are appended; None is 12.
        avoid: of a callable: ids that must not be drawn, special symbols for instance.
        on_progress: of a loaded model: is called before each pass with the share that is done, from 0 to 1; what it raises ends
            the check.

    Raises:
        OptionError: an impossible keyword.
        InputError: a text that cannot be read.
        DeviceError: the device ran out of memory.
    """
    whole_number("replacements", replacements, 1, _MOST_REPLACEMENTS)
    if not isinstance(model, LoadedModel):
        if mistake is not None or tuple(edits) or texts is not None:
            raise OptionError(
                "mistake, edits and texts need a checkpoint or a loaded model; nobody sees a callable's attention"
            )
        longest = DEFAULT_LENGTH if max_length is None else max_length
        options = {"max_length": longest, "avoid": avoid, "replacements": replacements, "seed": seed}
        return check_callable(model, vocabulary_size, pad_id, **options)
    if vocabulary_size is not None or max_length is not None or tuple(avoid):
        raise OptionError("vocabulary_size, max_length and avoid are for callables; a loaded model knows its own")
    made, read = None if mistake is None else mistakes.named(mistake), plain_edits.read(edits)
    with devices.running(model):
        sentences = Sentences(model, texts, replacements, np.random.default_rng([seed, 91]))
        plain_edits.check(read, kind_sizes(model.model.sizes), *sentences.lengths)
        check = _Check(Passes(model, read, made, _share(sentences, on_progress)), sentences)
        about = f" with the mistake {made.name}" if made else ""
        subject = f"{'model' if model.task is None else 'checkpoint'} {model.name}{about}"
        return check.report(f"{subject} with {len(read)} edit{'s'[: len(read) != 1]}" if read else subject, model.model.sizes)


def _share(sentences: Sentences, on_progress: OnProgress | None) -> Callable[[int], object] | None:
    """What is told how many passes there were."""
    if on_progress is None:
        return None
    n_all = sentences.n_passes
    # A model that answers in a type of its own has a pass more for each batch.
    return lambda n: on_progress(min(1.0, n / n_all))


@dataclass(frozen=True)
class _Asked:
    """A batch, and what it shows: as it is and in float64."""

    batch: Batch
    base: Pass
    fine_base: Pass
    rows: Rows
    fine_rows: Rows

    @property
    def output(self) -> Kind:
        """The attention whose queries stand where the output does."""
        return "decoder" if self.batch.target.shape[1] else "encoder"

    @property
    def output_padding(self) -> Tensor:
        """Of the places that have an output, bool (batch, position)."""
        return self.batch.target_padding if self.output == "decoder" else self.batch.source_padding


class _Check:
    """One check of one model."""

    def __init__(self, passes: Passes, sentences: Sentences) -> None:
        self.passes, self.sentences, self.worst = passes, sentences, Worst()
        self.alone: list[Pass] = []

    def report(self, subject: str, sizes: Sizes) -> MaskReport:
        """Everything, one rule after the other. A batch of prompts is padded before them; that is a batch of its own."""
        notes: list[str] = []
        found: tuple[Cause, ...] = ()
        for batch in self.sentences.batches:
            asked = self._ask(batch)
            seen = Seen(asked.base.weights, batch.source_padding, batch.target_padding)
            self._check(asked)
            self._weigh_forbidden(seen)
            found = found or causes(seen)
            notes += self._notes(asked, seen, sizes)
        notes = [*self.worst.leave_out_what_the_future_explains(), *dict.fromkeys(notes), *self.sentences.notes]
        findings = self.worst.findings()
        return MaskReport(
            verdict=verdict_of(findings),
            findings=findings,
            mistakes=found if findings else (),
            checked=self.worst.checked,
            pairs=len(self.sentences.batches[0].source),
            replacements=self.passes.n_run,
            notes=tuple(notes),
            subject=subject,
            precision=self.passes.precision,
            tried=self.sentences.are,
        )

    def _ask(self, batch: Batch) -> _Asked:
        base, fine = self.passes(batch), self.passes.exact(batch)
        return _Asked(batch, base, fine, Rows.of(base.logits.double()), Rows.of(fine.logits.double()))

    def _check(self, asked: _Asked) -> None:
        self._check_finite(asked.base)
        if self.passes.own not in (torch.float32, torch.float64):
            self._check_finite(self.passes.as_it_is(asked.batch))
        self._check_target(asked)
        if not self.alone:
            self._check_target_length(asked)
        self._check_source_padding(asked)
        self._check_company(asked)

    # ---- the rules

    def _check_finite(self, seen: Pass) -> None:
        for kind, weights in seen.weights.items():
            broken = ~weights.isfinite().all(-1)
            self.worst.see_attention("finite", broken.float(), kind, 0.0)
        self.worst.see_output("finite", is_no_distribution(seen.logits).float(), 0.0)

    def _check_target(self, asked: _Asked) -> None:
        """Replaces each target position: later than a query, or padding."""
        batch, real = asked.batch, ~asked.batch.target_padding
        for other, keys in self.sentences.target_turns(batch):
            before = real & (torch.arange(real.shape[1]) < keys[:, None])
            is_padding = batch.target_padding.gather(1, keys[:, None])[:, 0]
            after = self.passes(other)
            for rule, rows, pairs in (("future", before, ~is_padding), ("target padding", real, is_padding)):
                self._compare(rule, asked, other, after, dict.fromkeys(("decoder", "cross"), rows & pairs[:, None]), keys)

    def _check_target_length(self, asked: _Asked) -> None:
        """The target without its end. Up to so many lengths, spread evenly: each is a pass of its own."""
        real, allowed = ~asked.batch.target_padding, self.passes.precision.tolerance.other_shape
        for n in self.sentences.cut_lengths(asked.batch):
            after, steps = self.passes.exact(asked.batch.shortened(n)), real[:, :n]
            for kind in after.weights.keys() - {"encoder"}:
                before = asked.fine_base.weights[kind][..., :n, : n if kind == "decoder" else None]
                change = torch.where(steps[:, None, None], row_change(after.weights[kind], before), 0.0)
                self.worst.see_attention("target length", change, kind, allowed, n)
            change = torch.where(steps, asked.fine_rows[:, :n].change(after.logits), 0.0)
            self.worst.see_output("target length", change, allowed, n)

    def _check_source_padding(self, asked: _Asked) -> None:
        """Replaces each padded source position by a real token; the mask still says padding."""
        batch, steps = asked.batch, ~asked.batch.target_padding
        for other, keys, pairs in self.sentences.source_turns(batch):
            rows: dict[Kind, Tensor] = {"encoder": ~batch.source_padding, "decoder": steps, "cross": steps}
            rows = {kind: mine & pairs[:, None] for kind, mine in rows.items()}
            self._compare("source padding", asked, other, self.passes(other), rows, keys)

    def _check_company(self, asked: _Asked) -> None:
        """Each sentence alone, unpadded, against its rows in the batch."""
        batch, allowed = asked.batch, self.passes.precision.tolerance.other_shape
        # On which side it was padded does not matter then.
        self.alone = self.alone or [self.passes.exact(batch.alone(i)) for i in range(len(batch.source))]
        for i, alone in enumerate(self.alone):
            source, target = ~batch.source_padding[i], ~batch.target_padding[i]
            sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
            for kind, weights in alone.weights.items():
                queries, keys = sides[kind]
                change = row_change(asked.fine_base.weights[kind][i : i + 1, ..., queries, :][..., keys], weights)
                self.worst.see_attention("company", change, kind, allowed)
            rows = asked.fine_rows[i : i + 1, ~asked.output_padding[i]]
            self.worst.see_output("company", rows.change(alone.logits), allowed)

    def _compare(self, rule: Rule, asked: _Asked, other: Batch, after: Pass, rows: Mapping[Kind, Tensor], keys: Tensor) -> None:
        """`rows`, bool (batch, query), must not have changed when the tokens at `keys`, (batch,), were replaced.

        A mixture of experts gives each expert another number of tokens then, and so rounds differently at the same shape: what
        rounding can explain is computed again in float64.
        """
        allowed = self.passes.precision.tolerance.same_shape
        changes, logits = _changes(asked.base, asked.rows, after, rows, asked.output)
        largest = max(float(change.max()) for change in (*changes.values(), logits))
        if allowed < largest <= self.passes.rounding:
            allowed = self.passes.precision.tolerance.other_shape
            changes, logits = _changes(asked.fine_base, asked.fine_rows, self.passes.exact(other), rows, asked.output)
        for kind, change in changes.items():
            self.worst.see_attention(rule, change, kind, allowed, keys)
        self.worst.see_output(rule, logits, allowed, keys)

    def _weigh_forbidden(self, seen: Seen) -> None:
        """The largest weight of a real query on a key that the rule forbids, by rule."""
        places: tuple[tuple[Rule, Kind], ...] = (
            ("future", "decoder"),
            ("target padding", "decoder"),
            ("source padding", "encoder"),
            ("source padding", "cross"),
        )
        for rule, kind in (place for place in places if place[1] in seen.weights):
            cells = seen.forbidden(kind) & ~seen.padded_queries(kind)[:, :, None]
            cells = cells & (seen.padded_keys(kind)[:, None, :] == (rule != "future"))
            weights = seen.weights[kind].nan_to_num(0.0)
            self.worst.see_look(rule, torch.where(cells[:, None, None], weights, 0.0), kind)

    def _notes(self, asked: _Asked, seen: Seen, sizes: Sizes) -> list[str]:
        """Cells that are masked although nothing forbids them: no leak, but the model sees less than it may."""
        notes = []
        for kind, masked in asked.base.masked.items():
            real = ~(seen.padded_queries(kind)[:, :, None] | seen.forbidden(kind))
            needless = (masked & real[:, None, None] & ~_outside_of_windows(sizes, kind, masked)).any(0).any(0).any(0)
            if bool(needless.any()):
                query, key = (int(i) + 1 for i in needless.nonzero()[0])
                notes.append(
                    f"Note: {kind} masks {int(needless.sum())} cells that it need not, the first at query {query}, key {key}."
                )
        return notes


def _changes(
    before: Pass, before_rows: Rows, after: Pass, rows: Mapping[Kind, Tensor], output: Kind
) -> tuple[dict[Kind, Tensor], Tensor]:
    """How much weights, (batch, layer, head, query), and logits, (batch, position), changed in these rows."""
    changes = {
        kind: torch.where(rows[kind][:, None, None, :], row_change(after.weights[kind], before.weights[kind]), 0.0)
        for kind in after.weights.keys() & rows.keys()
    }
    return changes, torch.where(rows[output], before_rows.change(after.logits), 0.0)


def _outside_of_windows(sizes: Sizes, kind: Kind, masked: Tensor) -> Tensor:
    """Cells that a layer's window leaves out, bool (layer, 1, query, key); `masked` is (batch, layer, head, query, key)."""
    n_queries, n_keys = masked.shape[-2:]
    apart = (torch.arange(n_queries)[:, None] - torch.arange(n_keys)).abs()
    windows = sizes.windows.get(kind, {})
    return torch.stack([apart >= windows.get(layer, n_queries) for layer in sizes.layers[kind]])[:, None]
