"""The protocol of a model that decoding runs.

Greedy decoding, sampling, beam search and teacher forcing take any `Reader`; our Transformer is one. Ids are the reader's own:
what is read first, which tokens end a sentence, and what stands in the rows of those that have ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Tap
from transformer_viz.terms import Kind, ModelKind


@dataclass(frozen=True)
class DecodingState:
    """The state of a batch of sentences that is being written.

    Attributes:
        ids: int (batch, position), all that the decoder read; padding before shorter prompts included.
        n_opening: how many of the positions were read before anything was written.
        max_length: the most tokens to write.
        source: int (batch, source), of each sentence.
        source_padding: bool (batch, source), or None when nothing is padded.
    """

    ids: Tensor
    n_opening: int
    max_length: int
    source: Tensor
    source_padding: Tensor | None


Rules = Callable[[DecodingState, Tensor], Tensor]
"""A function that changes logits or log-probabilities, float (batch, vocabulary), by what was read so far; a token at −∞ is
never written."""


class IncrementalDecoder(Protocol):
    """A batch of sentences that is being written, token by token."""

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        """Logits of the token after each new one: int (batch, position) -> (batch, position, vocabulary).

        At first the opening is given, which may be a prompt, then one token of each sentence. The tap sees their attention.
        """

    def reorder(self, rows: Tensor) -> None:
        """Row i of the batch becomes the former row `rows[i]`; rows may repeat or be left out, as a beam search goes on."""


class Reader(Protocol):
    """A model in eval mode that reads a source and writes a target."""

    @property
    def kind(self) -> ModelKind:
        """The parts that it has."""

    @property
    def start_id(self) -> int | None:
        """The token that an encoder-decoder reads before it writes; None for others, since a decoder alone reads a prompt."""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Tokens after which a sentence has ended."""

    @property
    def pad_id(self) -> int:
        """Stands after the end in the rows of shorter sentences. It may be one of `end_ids`: masks tell what is padding."""

    @property
    def sizes(self) -> Sizes:
        """Its sizes."""

    @property
    def rules(self) -> Rules | None:
        """The model's own rules about the next token, such as those of a generation config; None = there are none."""

    @property
    def training(self) -> bool:
        """Tells whether the model is in train mode, with dropout, which would falsify every decoding."""

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Any:
        """Reads the sources once: int (batch, source), and bool of the same shape, True = padding. Returns the memory.

        Where there is no encoder nothing is read. Where there is nothing else, the memory is the logits of what may stand in
        the place of each token, (batch, source, vocabulary), or None.
        """

    def start_decoding(self, memory: Any, source_padding: Tensor | None = None) -> IncrementalDecoder:
        """Begins to write."""

    def decode(
        self,
        target: Tensor,
        memory: Any,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        """Logits of the token after each target token, all rows at once: int (batch, step) -> (batch, step, vocabulary)."""

    def attention_block(self, kind: Kind, layer: int) -> AttentionBlock:
        """Projection, norm and residual around the attention of one kind in one layer, as far as it can be told."""
