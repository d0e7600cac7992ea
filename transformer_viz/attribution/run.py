"""A finished run, read again by the model that made it: as it was, or with something of what it read changed.

Edits and mistakes of the run are in force in every pass. Everything is read in one pass over all rows (teacher forcing), but
where an edit or a mistake lets a row see later tokens and the run was written step by step: then each row is the last of a
pass of its own, as it was.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from transformer_viz import edits as plain_edits
from transformer_viz.analysis.query_rows import padding
from transformer_viz.edits import Edit
from transformer_viz.errors import OptionError, shortened
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import mistakes
from transformer_viz.model.mistakes import Mistake
from transformer_viz.model.tap import Tap, compose
from transformer_viz.terms import Kind
from transformer_viz.trace.trace import Trace
from transformer_viz.tracing.decode_request import TEACHER_FORCING
from transformer_viz.tracing.edit_tap import changing_tap, looks_ahead
from transformer_viz.tracing.progress import OnProgress

MOST_LOGITS, MOST_TOKENS, _MOST_WEIGHTS = 2**23, 2**14, 2**23
"""Of one pass: more texts are read one batch after the other."""
BETWEEN_WORDS = 2**34
"""Multiplications of one pass where somebody is told how far it is: half a second on a CPU."""
_SAME = 0.02
"""Nats by which log-probabilities may be apart that two machines, or two precisions, compute of one run."""

TapOf = Callable[[slice], Tap | None]
"""What changes attention in these texts of a batch."""


@dataclass(frozen=True)
class Read:
    """What a batch reads; ids are (batch, source) and (batch, step), and True is padding."""

    source: Tensor
    source_padding: Tensor
    target: Tensor
    target_padding: Tensor

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, rows: Any) -> "Read":
        return self._each(lambda part: part[rows])

    def repeated(self, n: int) -> "Read":
        """One text n times."""
        return self._each(lambda part: part.expand(n, -1))

    def until(self, n_steps: int) -> "Read":
        """As it was before step `n_steps`."""
        return replace(self, target=self.target[:, :n_steps], target_padding=self.target_padding[:, :n_steps])

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Read":
        return Read(*map(change, (self.source, self.source_padding, self.target, self.target_padding)))


@dataclass(frozen=True)
class Run:
    """A trace with its ids, and its model.

    Attributes:
        model: what made it.
        trace: the run.
        read: what it read, a batch of one; the source is empty where there is no encoder.
        written: int (step,), what was written from each row.
        edits: in force.
        mistake: likewise.
        on_progress: is called before each part of a batch with the share of it that is read.
    """

    model: LoadedModel
    trace: Trace
    read: Read
    written: Tensor
    edits: tuple[Edit, ...]
    mistake: Mistake | None
    on_progress: OnProgress | None = None

    @classmethod
    def of(cls, model: LoadedModel, trace: Trace, on_progress: OnProgress | None = None) -> "Run":
        """Finds the ids.

        Raises:
            OptionError: nothing was written, or this model did not make the run.
        """
        if not model.model.kind.writes or not trace.n_steps or not trace.output_tokens:
            raise OptionError("nothing was written in this run, so that no token can be the cause of anything")
        if model.model.kind != trace.model_kind:
            raise _not_of(model, "one has a source beside what it writes, and the other has none")
        ids = {side: _ids(model, trace, side) for side in ("source", "target", "output")}
        masked = {"source": padding(trace, "source"), "target": padding(trace, "target")}
        sides = [torch.tensor(part, device=model.device)[None] for side in masked for part in (ids[side], masked[side])]
        run = cls(
            model,
            trace,
            Read(sides[0].long(), sides[1].bool(), sides[2].long(), sides[3].bool()),
            torch.tensor(ids["output"], device=model.device),
            plain_edits.read(trace.edits),
            None if trace.mistake is None else mistakes.named(trace.mistake),
            on_progress,
        )
        run._check()
        return run

    @property
    def is_stepwise(self) -> bool:
        """Whether each row was computed without the tokens after it, although it may see them."""
        return looks_ahead(self.edits, self.mistake) and self.trace.made_by.get("strategy") != TEACHER_FORCING

    def keys(self, kind: Kind) -> Tensor:
        """int (key,): what the keys of a kind are."""
        return (self.read.target if kind == "decoder" else self.read.source)[0]

    @cached_property
    def log_p(self) -> Tensor:
        """float64 (step,): the log-probability of what was written, as the run was."""
        return self.log_p_of(self.read)[0]

    def _check(self) -> None:
        """Raises an OptionError unless the model gives the run's tokens the probabilities that the run says."""
        said = torch.tensor([step.log_probability for step in self.trace.steps], dtype=torch.float64)
        if not len(said):
            return
        # What a mistake made NaN is NaN here and there, and a padded row is nobody's.
        apart = (self.log_p - said).abs().masked_fill(self.read.target_padding[0].cpu(), 0.0).nan_to_num(0.0, posinf=torch.inf)
        step = int(apart.argmax())
        if float(apart[step]) > _SAME:
            raise _not_of(self.model, f"step {step + 1} has log p {said[step]:.3f}, and here {self.log_p[step]:.3f}")

    def log_p_of(self, read: Read, rows: Tensor | None = None, tap_of: TapOf | None = None) -> Tensor:
        """float64 (batch, step): the log-probability of what the run wrote, after what a batch read.

        Args:
            read: the texts.
            rows: int (batch, step), the row that writes each step, −1 for none, whose number is NaN; by default its own.
            tap_of: what changes attention in some of the texts, besides edits and mistake.
        """
        rows = torch.arange(len(self.written), device=self.written.device).expand(len(read), -1) if rows is None else rows
        found = []
        for part, logits in self._in_parts(read, tap_of):
            at = rows[part]
            row = at.clamp_min(0)
            chosen = logits[torch.arange(len(at), device=at.device)[:, None], row, self.written]
            log_p = chosen - logits.logsumexp(-1).gather(1, row)
            found.append(log_p.masked_fill(at < 0, torch.nan).cpu())
        return torch.cat(found)

    def outcomes_of(self, read: Read, tap_of: TapOf) -> tuple[Tensor, Tensor]:
        """(batch, step) of what the run wrote: log-probabilities, and whether greedy decoding would have written it there.

        Where it would at every step, it writes the same text: each step then reads what it has read here.
        """
        log_p, is_first = [], []
        for _, logits in self._in_parts(read, tap_of):
            log_p.append(logits.log_softmax(-1)[:, torch.arange(len(self.written)), self.written].cpu())
            is_first.append((logits.argmax(-1) == self.written).cpu())
        return torch.cat(log_p), torch.cat(is_first)

    def parts(self, read: Read) -> Iterator[slice]:
        """Which texts are read together."""
        sizes, n_source, n_steps = self.model.model.sizes, read.source.shape[1], read.target.shape[1]
        n_weights = max(sizes.heads.values()) * max(n_source, n_steps) ** 2
        n = min(MOST_LOGITS // (n_steps * sizes.vocabulary), MOST_TOKENS // (n_source + n_steps), _MOST_WEIGHTS // n_weights)
        if self.on_progress is not None:
            n = min(n, BETWEEN_WORDS // ((n_source + n_steps) * self.model.n_parameters))
        n = max(1, n)
        for start in range(0, len(read), n):
            if self.on_progress is not None:
                self.on_progress(start / len(read))
            yield slice(start, min(start + n, len(read)))

    def logits(self, read: Read, tap: Tap | None = None) -> Tensor:
        """(batch, step, vocabulary), all rows in one pass; a tap sees attention as edits and mistake leave it."""
        reader = self.model.model
        both = compose(changing_tap(self.edits, self.mistake, reader.sizes), tap)
        source_padding, target_padding = (_or_none(each) for each in (read.source_padding, read.target_padding))
        memory = reader.encode(read.source, source_padding, tap=both) if reader.kind.has_encoder else None
        return reader.decode(read.target, memory, source_padding, target_padding, tap=both)

    def _in_parts(self, read: Read, tap_of: TapOf | None) -> Iterator[tuple[slice, Tensor]]:
        """Some texts at a time, and their logits in double precision."""
        for part in self.parts(read):
            yield part, self._logits(read[part], None if tap_of is None else tap_of(part)).double()

    def _logits(self, read: Read, tap: Tap | None) -> Tensor:
        if not self.is_stepwise:
            return self.logits(read, tap)
        steps = range(1, read.target.shape[1] + 1)
        return torch.stack([self.logits(read.until(n), tap)[:, -1] for n in steps], 1)


def _ids(model: LoadedModel, trace: Trace, side: str) -> list[int]:
    """Of one side's tokens."""
    tokens, ids, reader = getattr(trace, f"{side}_tokens"), getattr(trace, f"{side}_ids"), model.model
    if ids is None:
        if model.task is None:
            raise _not_of(model, "the run does not say which tokens it read")
        vocabulary = model.task.source_vocabulary if side == "source" else model.task.target_vocabulary
        if unknown := [token for token in tokens if token not in vocabulary]:
            raise _not_of(model, f"it does not know the token {shortened(unknown[0])!r}")
        ids = vocabulary.encode(tokens)
    sizes = reader.sizes
    most, longest = sizes.vocabulary, sizes.longest_target
    if side == "source":
        most, longest = sizes.source_vocabulary or most, sizes.longest_source
    # What is read first may stand beyond what may be written.
    if any(number >= most and number != reader.start_id for number in ids) or len(ids) > longest:
        raise _not_of(model, f"the run has tokens, or as many of them, that this model cannot have as its {side}")
    return list(ids)


def _or_none(padding: Tensor) -> Tensor | None:
    return padding if bool(padding.any()) else None


def _not_of(model: LoadedModel, why: str) -> OptionError:
    return OptionError(f"This is no run of {model.name}: {why}. Give the model that made it, as it was, and the run by tokens.")
