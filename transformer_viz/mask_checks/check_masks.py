"""`check_masks`: the leak certificate. Tokens that must not be seen are replaced, and nothing may change."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any

import numpy as np

from transformer_viz import edits as plain_edits
from transformer_viz.edits import Edit
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.mask_checks.callable_check import DEFAULT_LENGTH, NO_PADDING, check_callable_masks
from transformer_viz.mask_checks.loaded_model_check import LoadedModelCheck
from transformer_viz.mask_checks.perturbations import Perturbations
from transformer_viz.mask_checks.port import of_target, reads_one_text
from transformer_viz.mask_checks.result import MaskReport
from transformer_viz.model import devices, mistakes
from transformer_viz.numbers_in_words import count_words
from transformer_viz.readers.modules.wrapping import ModuleModel
from transformer_viz.schema import whole_number
from transformer_viz.tracing.edit_tap import check_edits
from transformer_viz.tracing.progress import OnProgress

_MOST_REPLACEMENTS = 100
_PADDING_UNKNOWN = "Note: padding was not checked, since the module has none that is known; tv.wrap(…, pad=…) says it."
_FOR_CALLABLES = "vocabulary_size, pad_id, causal, max_length, avoid, replacements and seed"


def check_masks(
    model: LoadedModel | Callable[..., Any],
    *,
    texts: Sequence[str] | None = None,
    mistake: str | None = None,
    edits: Iterable[Edit | str] = (),
    replacements: int = 3,
    seed: int = 0,
    vocabulary_size: int | None = None,
    pad_id: int | EllipsisType | None = ...,
    max_length: int | None = None,
    avoid: Iterable[int] = (),
    causal: bool | None = None,
    on_progress: OnProgress | None = None,
) -> MaskReport:
    """Tests whether anything leaks through a model's masks, by replacing tokens that must not be seen.

    Args:
        model: a checkpoint or what `load_model` returns, or any callable from (source ids, target ids), int64 (batch, length)
            both, to logits (batch, target length, vocabulary); or from the ids of one text: a decoder or an encoder alone.
        texts: for a loaded model: up to 8 texts, of which the first 16 tokens are used. By default pairs of its task, or,
            without a task, random tokens, since masks do not depend on which tokens are read.
        mistake: a deliberate mistake to check with (not with a callable; see `model.mistakes`).
        edits: edits to check with (not with a callable; see `edits`).
        replacements: random replacements of each position.
        seed: another seed draws other pairs and replacements.
        vocabulary_size: for a callable: ids of source and target are from 0 to this - 1.
        pad_id: for a callable: the id of padding; 0 if it is left out, None when it knows no padding, which is
            then not checked.
        max_length: for a callable: the longest source and target, before up to 7 pads are appended; None is 12.
        avoid: for a callable: ids that must not be drawn, such as special symbols.
        causal: for a callable that reads one text: whether it is a decoder, in which no step sees a later one, which is taken
            for granted, or an encoder (False).
        on_progress: for a loaded model: is called before each pass with the share that is done, from 0 to 1; what it raises
            ends the check.

    Returns:
        What leaks, if anything does: `sound`, and the findings in words by `print`.

    Raises:
        OptionError: an impossible keyword.
        InputError: a text that cannot be read.
        DeviceError: the device ran out of memory.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> tv.check_masks(model, texts=["abc"]).sound
        True
        >>> tv.check_masks(model, texts=["abc"], mistake="no-causal").sound
        False
        >>> import torch
        >>> def leaky(ids):  # each row adds up all tokens, later ones too
        ...     return torch.nn.functional.one_hot(ids, 9).sum(1, keepdim=True).double().expand(-1, ids.shape[1], -1)
        ...
        >>> tv.check_masks(leaky, vocabulary_size=9, pad_id=None, max_length=4).sound
        False
    """
    whole_number("replacements", replacements, 1, _MOST_REPLACEMENTS)
    if isinstance(model, LoadedModel):
        if vocabulary_size is not None or max_length is not None or tuple(avoid) or pad_id is not ... or causal is not None:
            raise OptionError(
                "vocabulary_size, pad_id, max_length, avoid and causal are for callables; a loaded model knows its own. "
                "Allowed are texts, mistake, edits, replacements, seed and on_progress."
            )
        return check_loaded_masks(model, texts, mistake, edits, replacements, seed, on_progress)
    if mistake is not None or tuple(edits) or texts is not None:
        raise OptionError(
            "mistake, edits and texts need a checkpoint or a loaded model, since a callable's attention cannot be seen"
        )
    if on_progress is not None:
        raise OptionError(f"on_progress needs a checkpoint or a loaded model; for a callable {_FOR_CALLABLES} are allowed")
    if vocabulary_size is None:
        raise OptionError(
            "vocabulary_size is needed: how many ids a callable or a module reads, as in "
            "check_masks(model, vocabulary_size=100). A model of `tv.wrap` knows it"
        )
    pad = 0 if pad_id is ... else pad_id
    options: dict[str, Any] = {"max_length": DEFAULT_LENGTH if max_length is None else max_length, "avoid": avoid}
    options |= {"replacements": replacements, "seed": seed}
    if not reads_one_text(model):
        if causal is not None:
            raise OptionError("causal is of a callable that reads one text; this one reads a source and a target")
        return check_callable_masks(model, vocabulary_size, pad, **options)
    alone = "encoder" if causal is False else "decoder"
    return check_callable_masks(of_target(model, pad), vocabulary_size, pad, alone=alone, **options)


def check_loaded_masks(
    model: LoadedModel,
    texts: Sequence[str] | None = None,
    mistake: str | None = None,
    edits: Iterable[Edit | str] = (),
    replacements: int = 3,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> MaskReport:
    """Tests a loaded model, whose attention is looked at too; as `check_masks`."""
    edits = tuple(edits)
    is_own = isinstance(model, ModuleModel) and model.network.kind.writes
    if is_own and texts is None and mistake is None and not edits:
        return _check_module(model, replacements, seed)
    made, read = None if mistake is None else mistakes.named(mistake), plain_edits.read(edits)
    with devices.running(model):
        perturbations = Perturbations(model, texts, replacements, np.random.default_rng([seed, 91]))
        check_edits(read, model.network.sizes, *perturbations.lengths)
        subject = f"{'model' if model.task is None else 'checkpoint'} {model.name}"
        subject += f" with the mistake {made.name}" if made else ""
        subject += f" with {count_words(len(read), 'edit')}" if read else ""
        n_all, tell = perturbations.n_passes, on_progress or (lambda share: None)
        # What rounding can explain is computed again, in more passes than are counted here.
        check = LoadedModelCheck(model, perturbations, read, made, lambda n: tell(min(1.0, n / n_all)))
        return check.report(subject)


def _check_module(model: ModuleModel, replacements: int, seed: int) -> MaskReport:
    """Checks a module of somebody's own as the callable that it is: where it is decoded, padding is hidden from it."""
    reader, sizes = model.network, model.network.sizes
    special = {number for number in (reader.start_id, *reader.end_ids) if number is not None}
    report = check_callable_masks(
        reader.answer,
        min(sizes.vocabulary, sizes.source_vocabulary or sizes.vocabulary),
        reader.pad_id if reader.knows_padding else None,
        alone=None if reader.kind.has_encoder else "decoder",
        max_length=min(DEFAULT_LENGTH, sizes.longest_target),
        longest=sizes.longest_target,
        # Where nobody says what padding is, it is most often 0; a text of it alone would see nothing.
        avoid=special if reader.knows_padding else {*special, 0},
        replacements=replacements,
        seed=seed,
    )
    notes = tuple(_PADDING_UNKNOWN if note == NO_PADDING else note for note in report.notes)
    return replace(report, subject=f"module {model.name}", notes=notes)
