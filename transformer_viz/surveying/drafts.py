"""Texts of which the model writes what it was expected to: one pass over the expected answer instead of one for each token.

Greedy decoding writes an answer if and only if each of its tokens has the largest logit after those before it. So the answer
that a task knows is a draft (Leviathan et al. 2023), and where the model confirms all of it, the pass that did so has the
attention of every step. Only where the largest logit is clearly ahead: two orders of adding differ in the last digits.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transformer_viz.errors import InputError
from transformer_viz.loaded_model import Known, LoadedModel
from transformer_viz.model import devices
from transformer_viz.surveying.batch import Batch, Text, TooLarge, fit
from transformer_viz.trace.recorder import Recorder
from transformer_viz.tracing.framing import padded_batch

_AGAIN = 2
"""How often a wrong draft is replaced by what the model says; then it writes token by token."""
_AHEAD = 1e-3
"""Of the next largest logit: a hundred times what logits differ by when they are added in another order."""


def draft_of(model: LoadedModel, known: Known, limit: int) -> Sequence[int] | None:
    """The ids of an answer that a model is expected to write within its limit; None where nobody knows, or hardly any is so."""
    task, reader = model.task, model.model
    is_plain = reader.kind.writes and reader.rules is None and not model.model.kind.has_prompt
    if task is None or task.metric == "bleu" or known.expected is None or not is_plain:
        return None
    try:
        ids = [*model.tokenizer.target(known.expected), reader.end_ids[0]]
    except InputError:
        return None
    return ids if len(ids) <= limit else None


def confirmed(model: LoadedModel, texts: Sequence[Text]) -> Batch | None:
    """Those texts of which the model writes the draft, or what it says where the draft is wrong; None where there is none.

    Raises:
        TooLarge: several texts have more weights than may be held at once.
        DeviceError: the device ran out of memory.
    """
    drafted = [text for text in texts if text.draft is not None]
    if not drafted:
        return None
    drafts, sources = [text.draft or () for text in drafted], [text.ids for text in drafted]
    n_steps, width = max(map(len, drafts)), max(map(len, sources))
    if not fit(model, len(drafted), width, n_steps):
        raise TooLarge
    with torch.inference_mode(), devices.memory_errors(model.device):
        source, padding = padded_batch(sources, model.model.pad_id, width, device=model.device)
        target, _ = padded_batch(drafts, model.model.pad_id, n_steps, device=model.device)
        given = source, (padding if any(len(row) < width for row in sources) else None)
        batch, is_right, said = read(model, drafted, given, target)
        for _ in range(_AGAIN):
            # After its own token instead of a wrong one, a model often goes on as expected (Santilli et al. 2023).
            left = np.flatnonzero(~is_right & said.eq(model.model.end_ids[0]).any(-1).cpu().numpy())
            if not len(left):
                break
            own = source[left], (None if given[1] is None else given[1][left])
            some, is_right[left], said[left] = read(model, [drafted[i] for i in left], own, said[left])
            batch.put(left, some)
    return batch.only(np.flatnonzero(is_right)) if is_right.any() else None


def read(
    model: LoadedModel, texts: Sequence[Text], given: tuple[Tensor, Tensor | None], target: Tensor
) -> tuple[Batch, np.ndarray, Tensor]:
    """One pass over the sources and a target each, (text, step), which ends with its first end.

    Returns:
        what was seen; bool (text,), whether the model would write the target; and the token that it has after each one before.
    """
    reader, recorder = model.model, Recorder(("weights", "mask"))
    lengths = target.eq(reader.end_ids[0]).int().argmax(-1) + 1
    # No token looks at a later one, so that what stands behind shorter answers changes nothing.
    shifted = torch.cat([target.new_full((len(target), 1), reader.start_id or 0), target[:, :-1]], 1)
    logits = reader.decode(shifted, reader.encode(*given, tap=recorder), given[1], tap=recorder)
    is_behind = torch.arange(target.shape[1], device=target.device) >= lengths[:, None]
    is_right = (_is_ahead(logits, target) | is_behind).all(-1).cpu().numpy()
    p = logits.double().log_softmax(-1).gather(-1, target[..., None])[..., 0].exp().cpu().numpy()
    each = list(zip(target.tolist(), p, lengths.tolist(), strict=True))
    batch = Batch.of(texts, [ids[:n] for ids, _, n in each], [one[:n] for _, one, n in each], recorder, model)
    return batch, is_right, logits.argmax(-1)


def _is_ahead(logits: Tensor, target: Tensor) -> Tensor:
    """bool (text, step): where the target's logit is the largest, by far enough."""
    own = logits.gather(-1, target[..., None])
    others = logits.scatter(-1, target[..., None], float("-inf"))
    return own[..., 0] - others.amax(-1) > _AHEAD
