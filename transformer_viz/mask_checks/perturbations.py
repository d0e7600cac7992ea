"""The sentences of a loaded model's mask check, padded, and other tokens to replace those that must not be seen."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer_viz.decoding.token_batch import TokenBatch, moves_behind_padding, sides_of
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.terms import ModelKind
from transformer_viz.vocabulary import SPECIAL_TOKENS, START

MOST_TEXTS, MOST_TOKENS = 8, 16
"""The most texts, and tokens of each, where texts are not a task's: each rule needs a pass at every place."""
_PAIRS = 16
_EXTRA_PADDING = 3
_SHORTEST = 2
Side = Literal["source", "target"]


class Perturbations:
    """Sentences of one model, and the tokens that may stand in the place of theirs.

    Attributes:
        batches: the same sentences, each batch padded on another side: behind, and before too where a prompt is read, since a
            batch of prompts is padded there.
        tried: what each sentence is.
        notes: what was left out of them.
    """

    def __init__(self, model: LoadedModel, texts: Sequence[str] | None, replacements: int, rng: np.random.Generator) -> None:
        """Takes a person's texts, without any those of the model's task, else random tokens; replaces each position so often.

        Raises:
            OptionError: too many texts, or none.
            InputError: a text that cannot be read.
        """
        reader, sizes, task, tokenizer = model.network, model.network.sizes, model.task, model.tokenizer
        self._rng, self._replacements, self._is_by_one = rng, replacements, task is not None
        self.notes: list[str] = []
        self.tried: Literal["pairs", "texts"] = "pairs" if reader.kind is ModelKind.ENCODER_DECODER else "texts"
        # Without those that mean something to the model itself.
        special = {reader.start_id, *reader.end_ids, reader.pad_id, tokenizer.mask_id}
        special |= set() if task is None else set(range(len(SPECIAL_TOKENS)))
        vocabularies = {"source": sizes.source_vocabulary or sizes.vocabulary, "target": sizes.vocabulary}
        self._ids = {side: torch.tensor([i for i in range(n) if i not in special]) for side, n in vocabularies.items()}
        start, most = reader.start_id, min(MOST_TOKENS, sizes.longest_source, sizes.longest_target)
        if texts is not None:
            if isinstance(texts, str) or not 1 <= len(texts) <= MOST_TEXTS:
                given = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
                raise OptionError(f"texts must be a list of 1 to {MOST_TEXTS} texts, not {given}")
            sources, targets = [tokenizer.encode_source(text) for text in texts], [list[int]() for _ in texts]
            if start is not None:
                # The answer where one is known, else the text itself: a mask cannot tell them apart.
                known = [tokenizer.task_answer(text, 0).expected for text in texts]
                answers = [text if answer is None else answer for text, answer in zip(texts, known, strict=True)]
                targets = [[start, *tokenizer.encode_target(answer)] for answer in answers]
            if any(len(ids) > most for ids in (*sources, *targets)):
                self.notes.append(f"Note: of longer texts the first {most} tokens were read.")
            sources, targets = [ids[:most] for ids in sources], [ids[:most] for ids in targets]
        elif task is not None:
            lengths = np.linspace(task.evaluated_lengths[0], task.evaluated_lengths[-1], _PAIRS).round().astype(int)
            symbols = [task.symbols(text) for text in task.mixed(lengths.tolist(), rng)]
            sources = [task.source_vocabulary.encode(task.frame(s)) for s in symbols]
            targets = [task.target_vocabulary.encode([START, *(task.answer(s) or [])]) for s in symbols]
        else:
            # A mask knows no token, so that any will do.
            lengths = np.linspace(min(_SHORTEST, most), most, MOST_TEXTS).round().astype(int)
            sources, targets = (
                [ids[torch.from_numpy(rng.integers(0, len(ids), n))].tolist() for n in lengths] for ids in self._ids.values()
            )
            targets = [[*([] if start is None else [start]), *ids][:most] for ids in targets]
        sources, targets = sides_of(reader.kind, sources, targets)
        self.batches: list[TokenBatch] = []
        for on_left in (False, True) if moves_behind_padding(reader) else (False,):
            # Every one of them is padded, as far as the model has positions.
            longest = (max(map(len, sources)), sizes.longest_source), (max(map(len, targets)), sizes.longest_target)
            widths = [n + max(0, min(_EXTRA_PADDING, most - n)) if n else 0 for n, most in longest]
            self.batches.append(TokenBatch.padded(sources, targets, reader.pad_id, widths, on_left=on_left))

    @property
    def lengths(self) -> tuple[int, int]:
        """Tokens of a source and of a target, padding included."""
        return self.batches[0].source.shape[1], self.batches[0].target.shape[1]

    @property
    def n_passes(self) -> int:
        """The number of passes that all rules need together: each batch twice and with each perturbation, and once each pair
        alone and each length."""
        sides: tuple[Side, ...] = ("source", "target")
        perturbed = sum(2 + sum(len(list(self._places(batch, side))) for side in sides) for batch in self.batches)
        return perturbed + len(self.batches[0].source) + len(self.cut_lengths(self.batches[0]))

    def perturbed(self, batch: TokenBatch, side: Side) -> Iterator[tuple[TokenBatch, Tensor, Tensor]]:
        """The batch with other tokens: any of the target, and where the source is padded.

        Of a task's pairs each position by itself. Other models are large: in each of their targets all tokens from a position
        on are replaced at once, at another position in each, so that all of them together try every one so many times; and all
        padding at once.

        Yields:
            the batch, the first position that was replaced, (batch,), and in which pairs something was, bool (batch,).
        """
        ids, real = (batch.source if side == "source" else batch.target), self._ids[side]
        for where, keys, pairs in self._places(batch, side):
            drawn = torch.from_numpy(self._rng.integers(0, len(real), ids.shape))
            # Never the one that stands there, where there is another.
            others = torch.where(real[drawn] == ids, real[(drawn + 1) % len(real)], real[drawn])
            others = torch.where(where, others, ids)
            yield replace(batch, source=others) if side == "source" else replace(batch, target=others), keys, pairs

    def _places(self, batch: TokenBatch, side: Side) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The replaced tokens, bool (batch, position), and as `perturbed`."""
        is_target, padding = side == "target", batch.target_padding if side == "target" else batch.source_padding
        (n, width), times = padding.shape, range(self._replacements)
        positions, all_pairs = torch.arange(width), torch.ones(n, dtype=torch.bool)
        if not width:
            return
        if self._is_by_one:
            for key in range(width):
                pairs = padding[:, key]
                if (is_target and key) or bool(pairs.any()):
                    pairs = all_pairs if is_target else pairs
                    for _ in times:
                        yield pairs[:, None] & (positions == key), torch.full((n,), key), pairs
        elif not is_target or bool(padding[:, 0].any()):
            first = torch.zeros(n, dtype=torch.long) if is_target else (~padding).sum(-1)
            for _ in times:
                yield padding, first, first < width
        else:
            for turn in range(-(-self._replacements * (width - 1) // n)):
                keys = 1 + (turn * n + torch.arange(n)) % (width - 1)
                yield positions >= keys[:, None], keys, all_pairs

    def cut_lengths(self, batch: TokenBatch) -> list[int]:
        """Lengths at which the targets end once more, spread evenly: each needs a pass."""
        longest, most = batch.target.shape[1], 8 if self._is_by_one else 4
        if not longest:
            return []
        return sorted({int(n) for n in np.linspace(1, longest - 1, min(most, longest - 1)).round()})
