"""Reads a finished run again with the model that made it, unchanged or with other tokens or activations.

Edits and mistakes of the run are in force in every pass. One pass reads all rows (teacher forcing). The exception are runs that
were written step by step although an edit or a mistake lets rows see later tokens: there each row is again the last of a pass
of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from transformer_viz import edits as plain_edits
from transformer_viz.analysis.query_rows import padding
from transformer_viz.decoding.memory import n_texts_of_pass
from transformer_viz.decoding.run import read
from transformer_viz.decoding.token_batch import ALL_KEPT, TokenBatch
from transformer_viz.edits import Edit
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import mistakes
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import ReplaceTap, Site, Tap, TapName, compose
from transformer_viz.numbers_in_words import number_words
from transformer_viz.terms import Kind
from transformer_viz.text_display import shorten
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode_request import TEACHER_FORCING
from transformer_viz.tracing.edit_tap import changing_tap, looks_ahead
from transformer_viz.tracing.progress import OnProgress

MOST_BETWEEN_REPORTS = 2**34
"""Multiplications of one pass where progress is reported: half a second on a CPU."""
_SAME = 0.02
"""Nats by which the log-probabilities of one run may differ between two machines or precisions."""

Score = Callable[[Tensor, Tensor], Tensor]
"""From log-probabilities, float64 (batch, step, vocabulary), and the ids that were written, (step,), to the number of each step
that is explained, (batch, step)."""

TapOf = Callable[[slice], Tap | None]
"""From a slice of a batch's texts to the tap that changes their attention, or None."""


@dataclass(frozen=True)
class Run:
    """A trace with its ids, and its model.

    Attributes:
        model: what made it.
        trace: the run.
        inputs: what it read, a batch of one; the source is empty where there is no encoder.
        edits: in force.
        mistake: in force.
        on_progress: is called before each part of a batch with the share of it that is read.
        score: the number of a step that is explained; None is the log-probability of what was written.
    """

    model: LoadedModel
    trace: Trace
    inputs: TokenBatch
    edits: tuple[Edit, ...]
    mistake: Mistake | None
    on_progress: OnProgress | None = None
    score: Score | None = None

    @classmethod
    def of(cls, model: LoadedModel, trace: Trace, on_progress: OnProgress | None = None) -> "Run":
        """Finds the ids, and compares the probabilities of what was written with those that the trace has.

        Raises:
            OptionError: nothing was written, or this model did not make the run.
        """
        if not model.network.kind.writes or not trace.n_steps or not trace.output_tokens:
            raise OptionError("nothing was written in this run, so there is no output to explain")
        if model.network.kind != trace.model_kind:
            raise _not_of(model, "one has a source beside what it writes, and the other has none")
        source, target, output = (
            torch.tensor(_ids(model, trace, side), dtype=torch.long, device=model.device)
            for side in ("source", "target", "output")
        )
        of_source, of_target = (torch.tensor(padding(trace, side), device=model.device)[None] for side in ("source", "target"))
        run = cls(
            model,
            trace,
            TokenBatch(
                source[None], of_source.bool(), target[None], of_target.bool(), output[None], (trace.written.start,), ALL_KEPT
            ),
            plain_edits.read(trace.edits),
            None if trace.mistake is None else mistakes.named(trace.mistake),
            on_progress,
        )
        if trace.steps:
            recorded = torch.tensor([step.log_probability for step in trace.steps], dtype=torch.float64)
            # What a mistake made NaN is NaN here and there, and a padded row is nobody's.
            apart = (run.log_p - recorded).abs().masked_fill(of_target[0].bool().cpu(), 0.0)
            step = int((apart := apart.nan_to_num(0.0, posinf=torch.inf)).argmax())
            if float(apart[step]) > _SAME:
                then, now = (number_words(float(log_p[step]), 3) for log_p in (recorded, run.log_p))
                raise _not_of(model, f"step {step + 1} has log p {then}, and here {now}")
        return run

    @property
    def written(self) -> Tensor:
        """int (step,), what was written from each row."""
        return self.inputs.written[0]

    @property
    def is_stepwise(self) -> bool:
        """Tells whether each row was computed without the tokens after it, although it may see them."""
        return looks_ahead(self.edits, self.mistake) and self.trace.made_by.get("strategy") != TEACHER_FORCING

    def check_one_pass(self, so: str, name: str = "this run") -> None:
        """Raises an OptionError, which ends with `so`, where no pass over all rows is the run."""
        if self.is_stepwise:
            raise OptionError(
                f"in {name} an edit or a mistake lets rows see later tokens, so each step was computed anew: {so}"
            )

    def n_keys(self, kind: Kind) -> int:
        """The number of keys of a kind."""
        return self.inputs.reads(kind)[1].shape[1]

    def padding(self, kind: Kind) -> Tensor:
        """bool (query,), True = padding."""
        return self.inputs.reads(kind)[0][0]

    @cached_property
    def log_p(self) -> Tensor:
        """float64 (step,): the log-probability of what was written, or the score, as the run was."""
        return self.log_p_of(self.inputs)[0]

    def log_p_of(self, inputs: TokenBatch, rows: Tensor | None = None, tap_of: TapOf | None = None) -> Tensor:
        """float64 (batch, step): the log-probability of what the run wrote, or the score, after what a batch read.

        Args:
            inputs: the texts.
            rows: int (batch, step), the row that writes each step, −1 for none, whose number is NaN; by default its own.
            tap_of: what changes attention in some of the texts, besides edits and mistake.
        """
        rows = torch.arange(len(self.written), device=self.written.device).expand(len(inputs), -1) if rows is None else rows
        parts = []
        for part, logits in self.passes(inputs, tap_of):
            at = rows[part]
            row = at.clamp_min(0)
            if self.score is not None:
                of_rows = logits.gather(1, row[..., None].expand(-1, -1, logits.shape[-1])).log_softmax(-1)
                parts.append(self.score(of_rows, self.written).masked_fill(at < 0, torch.nan).cpu())
                continue
            chosen = logits[torch.arange(len(at), device=at.device)[:, None], row, self.written]
            log_p = chosen - logits.logsumexp(-1).gather(1, row)
            parts.append(log_p.masked_fill(at < 0, torch.nan).cpu())
        return torch.cat(parts)

    def passes(
        self, inputs: TokenBatch, tap_of: TapOf | None = None, on_progress: OnProgress | None = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Reads some of the texts at a time: which, and their logits, float64 (batch, step, vocabulary)."""
        for part in self.parts(inputs, on_progress):
            tap, some = None if tap_of is None else tap_of(part), inputs[part]
            if self.is_stepwise:
                steps = range(1, some.target.shape[1] + 1)
                logits = torch.stack([self.logits(some.until(n), tap)[:, -1] for n in steps], 1)
            else:
                logits = self.logits(some, tap)
            yield part, logits.double()

    def parts(self, inputs: TokenBatch, on_progress: OnProgress | None = None) -> Iterator[slice]:
        """Yields the slices of texts that are read together; `on_progress` replaces the run's own."""
        on_progress = on_progress or self.on_progress
        sizes, n_source, n_steps = self.model.network.sizes, inputs.source.shape[1], inputs.target.shape[1]
        n = n_texts_of_pass(n_source, n_steps, max(sizes.heads.values()), sizes.vocabulary)
        if on_progress is not None:
            n = max(1, min(n, MOST_BETWEEN_REPORTS // ((n_source + n_steps) * self.model.n_parameters)))
        for start in range(0, len(inputs), n):
            if on_progress is not None:
                on_progress(start / len(inputs))
            yield slice(start, min(start + n, len(inputs)))

    def logits(self, inputs: TokenBatch, tap: Tap | None = None) -> Tensor:
        """(batch, step, vocabulary), all rows in one pass; a tap sees attention as edits and mistake leave it."""
        reader = self.model.network
        return read(reader, inputs, compose(changing_tap(self.edits, self.mistake, reader.sizes), tap))


def replace_values(name: TapName, chosen: Mapping[Site, Tensor], instead: Callable[[Site, Tensor], Tensor]) -> Tap:
    """A tap that replaces some values of an intermediate.

    Args:
        name: of the intermediate.
        chosen: for each attention a bool tensor, True = replaced; missing axes at its end are broadcast.
        instead: a function from an attention and its values to the new values, which may be broadcast.
    """

    def change(site: Site, value: Tensor) -> Tensor:
        if site not in chosen:
            return value
        where = chosen[site]
        return torch.where(where.view(*where.shape, *[1] * (value.ndim - where.ndim)), instead(site, value), value)

    return ReplaceTap(name, change)


def _ids(model: LoadedModel, trace: Trace, side: str) -> list[int]:
    """The ids of one side's tokens, `source` or `target`."""
    tokens, ids, reader = getattr(trace, f"{side}_tokens"), getattr(trace, f"{side}_ids"), model.network
    if ids is None:
        if model.task is None:
            raise _not_of(model, "the run does not say which tokens it read")
        vocabulary = model.task.source_vocabulary if side == "source" else model.task.target_vocabulary
        if unknown := [token for token in tokens if token not in vocabulary]:
            raise _not_of(model, f"it does not know the token {shorten(unknown[0])!r}")
        ids = vocabulary.encode(tokens)
    sizes = reader.sizes
    most, longest = sizes.vocabulary, sizes.longest_target
    if side == "source":
        most, longest = sizes.source_vocabulary or most, sizes.longest_source
    # What is read first may stand beyond what may be written.
    if any(number >= most and number != reader.start_id for number in ids) or len(ids) > longest:
        raise _not_of(model, f"the run has tokens, or as many of them, that this model cannot have as its {side}")
    return list(ids)


def _not_of(model: LoadedModel, why: str) -> OptionError:
    return OptionError(f"This is no run of {model.name}: {why}. Give the model that made it, as it was, and the run by tokens.")
