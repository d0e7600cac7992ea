"""Texts of a block, written greedily or read, with the attention of all of them at once."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.greedy import greedy
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.surveying import drafts
from transformer_viz.surveying.batch import Batch, Text, TooLarge, fit
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.framing import padded_batch

_MOST_LOGITS = 2**22


def run(model: LoadedModel, texts: Sequence[Text]) -> list[Batch]:
    """Runs texts together: those of which the model writes what they were expected to are read, the others written.

    Raises:
        TooLarge: several texts have more weights than may be held at once.
        TransformerVizError: as `decode`.
    """
    confirmed = drafts.confirmed(model, texts)
    if confirmed is None:
        return [_run(model, texts)]
    found = {text.place for text in confirmed.texts}
    left = [text for text in texts if text.place not in found]
    return [confirmed, _run(model, left)] if left else [confirmed]


def _run(model: LoadedModel, texts: Sequence[Text]) -> Batch:
    device, reader, on_left = model.device, model.model, model.model.kind.has_prompt
    rows = [text.ids for text in texts]
    width = max(map(len, rows))
    ids, padding = padded_batch(rows, reader.pad_id, width, on_left=on_left, device=device)
    recorder = Recorder(("weights", "mask"))
    given = ids, (padding if any(len(row) < width for row in rows) else None)
    with torch.inference_mode(), devices.memory_errors(device):
        if reader.kind.writes:
            written, probabilities = _written(model, texts, given, recorder)
        else:
            reader.encode(*given, tap=recorder)
            written, probabilities = [[] for _ in texts], [np.empty(0) for _ in texts]
        return Batch.of(texts, written, probabilities, recorder, model)


def _written(
    model: LoadedModel, texts: Sequence[Text], given: tuple[Tensor, Tensor | None], recorder: Recorder
) -> tuple[list[list[int]], list[np.ndarray]]:
    """What each text wrote, within its limit, and how probable each token was."""
    width = given[0].shape[1]
    chances, n_steps, is_stopped = _Chances(len(texts), model.model.sizes.vocabulary), 0, False

    def after_step(_: Tensor) -> bool:
        nonlocal n_steps, is_stopped
        n_steps += 1
        is_stopped = not fit(model, len(texts), width, n_steps)
        return not is_stopped

    limit = max(text.limit for text in texts)
    found = greedy(model.model, *given, max_length=limit, tap=recorder, log=chances.add, after_step=after_step, drop_ended=True)
    if is_stopped:
        raise TooLarge
    p = chances.found()[:, -found.ids.shape[1] :]
    lengths = [min(length, text.limit) for length, text in zip(found.lengths.tolist(), texts, strict=True)]
    each = list(zip(found.ids.tolist(), p, lengths, strict=True))
    return [ids[:length] for ids, _, length in each], [one[:length] for _, one, length in each]


class _Chances:
    """The probability of each token that was written, from logits that come row by row and are not all kept."""

    def __init__(self, n: int, vocabulary: int) -> None:
        self._most = max(1, _MOST_LOGITS // (n * vocabulary))
        self._logits: list[Tensor] = []
        self._ids: list[Tensor] = []
        self._found: list[np.ndarray] = []

    def add(self, logits: Tensor, ids: Tensor) -> None:
        """One row more of every sentence: logits (batch, vocabulary), and the ids (batch,) that followed."""
        self._logits.append(logits)
        self._ids.append(ids)
        if len(self._logits) >= self._most:
            self._look()

    def found(self) -> np.ndarray:
        """float64 (batch, row)."""
        self._look()
        return np.concatenate(self._found, 1)

    def _look(self) -> None:
        if self._logits:
            exact = torch.stack(self._logits, 1).double().log_softmax(-1)
            own = exact.gather(-1, torch.stack(self._ids, 1)[..., None])[..., 0]
            self._found.append(own.exp().cpu().numpy())
            self._logits.clear()
            self._ids.clear()
