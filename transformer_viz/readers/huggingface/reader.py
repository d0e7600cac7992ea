"""A Hugging Face model as a reader: encoder-decoders, decoders alone and encoders alone."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from transformer_viz.decoding.reader import Rules
from transformer_viz.model.attention_block import AttentionBlock
from transformer_viz.model.sizes import Sizes
from transformer_viz.model.tap import Tap
from transformer_viz.readers.huggingface import attention
from transformer_viz.readers.huggingface.attention import Pass, Place
from transformer_viz.readers.huggingface.generation import Generation
from transformer_viz.readers.huggingface.layer_hooks import hook_layers
from transformer_viz.readers.huggingface.probe import ProbedModel, model_errors, refusal, tokens_of
from transformer_viz.terms import Kind, ModelKind

_TOLERANCE = 1e-3
"""The tolerance between logits with a cache and those without, of the largest: sums in another order round differently."""


@dataclass(frozen=True)
class HuggingFaceReader:
    """See `decoding.reader.Reader`. Padding is what the mask says, whichever id stands there.

    Attributes:
        model: in eval mode, with our attention in its place.
        probed: what the probe found.
        generation: what its generation config decides.
        separator: of an encoder alone that tells two texts apart by token types: the token that ends the first; else None.
    """

    model: Any
    probed: ProbedModel
    generation: Generation
    separator: int | None = None

    @cached_property
    def kind(self) -> ModelKind:
        """The kind by its config; which of the two a model with one stack is, the probe found."""
        if self.model.config.is_encoder_decoder:
            return ModelKind.ENCODER_DECODER
        return ModelKind.DECODER if self.probed.decoder else ModelKind.ENCODER

    @property
    def start_id(self) -> int | None:
        """The token that decoding starts with; None for a decoder without an encoder, and for an encoder alone."""
        return self.generation.start_id

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The ends that its generation config says."""
        return self.generation.end_ids

    @property
    def pad_id(self) -> int:
        """The id that fills the rows of shorter sentences."""
        return self.generation.pad_id

    @property
    def rules(self) -> Rules | None:
        """The rules of its generation config, or None. Raises an OptionError where they cannot be followed."""
        return self.generation.rules

    @property
    def sizes(self) -> Sizes:
        """The sizes that the probe found."""
        return self.probed.sizes

    @property
    def training(self) -> bool:
        """Tells whether the model is in train mode."""
        return self.model.training

    def encode(self, source: Tensor, source_padding: Tensor | None = None, *, tap: Tap | None = None) -> Any:
        """Hidden states of an encoder; of an encoder alone the logits at each place; nothing of a decoder alone."""
        if not self.kind.has_encoder:
            return None
        module = self.model.get_encoder() if self.kind.writes else self.model
        with self._seen_by(self.probed.encoder, tap):
            returned = module(input_ids=source, attention_mask=_real(source, source_padding), **self._types(source))
        return returned.last_hidden_state if self.kind.writes else getattr(returned, "logits", None)

    def _types(self, source: Tensor) -> dict[str, Tensor]:
        """The token types of a batch in which some texts are two: 1 for what comes after the first."""
        if self.separator is None:
            return {}
        is_end = source == self.separator
        types = is_end.long().cumsum(1) - is_end.long()
        return {"token_type_ids": types.clamp(max=1)} if bool(types.any()) else {}

    def start_decoding(self, memory: Any, source_padding: Tensor | None = None) -> "HuggingFaceDecoder":
        """Begins to write, with a cache of keys and values."""
        return HuggingFaceDecoder(self, memory, source_padding)

    def decode(
        self,
        target: Tensor,
        memory: Any,
        source_padding: Tensor | None = None,
        target_padding: Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> Tensor:
        """Computes all rows at once, without a cache."""
        real = _real(target, target_padding)
        with self._seen_by(self.probed.decoder, tap):
            if self.kind.has_encoder:
                given = self.of_encoder(memory, source_padding)
                return self.model(**given, decoder_input_ids=target, decoder_attention_mask=real, use_cache=False).logits
            return self.model(input_ids=target, attention_mask=real, **self.positions(real, target), use_cache=False).logits

    def attention_block(self, kind: Kind, layer: int) -> AttentionBlock:
        """The output projection, norm and residual of one layer's attention, as far as they were found."""
        return self.probed.modules[kind, layer].attention_block

    @contextmanager
    def _seen_by(self, places: tuple[Place, ...], tap: Tap | None) -> Generator[None]:
        """Shows a tap the attention at these places, and what surrounds it, inside the `with` block."""
        now = _pass(places, tap)
        with attention.observe_attention(now), hook_layers(now, self.probed.modules):
            yield

    def of_encoder(self, memory: Any, source_padding: Tensor | None) -> dict[str, Any]:
        """The arguments with which a decoder gets its source."""
        # Some families take a tuple for what their encoder returns, and some only the class itself.
        assert self.probed.encoder_output is not None
        returned = self.probed.encoder_output(last_hidden_state=memory)
        return {"encoder_outputs": returned, "attention_mask": _real(memory[..., 0], source_padding)}

    def positions(self, real: Tensor, tokens: Tensor) -> dict[str, Tensor]:
        """The positions of the last tokens, padding not counted, for a model that is told."""
        if "position_ids" not in signature(self.model.forward).parameters:
            return {}
        return {"position_ids": (real.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]}


class HuggingFaceDecoder:
    """See `decoding.reader.IncrementalDecoder`."""

    def __init__(self, reader: HuggingFaceReader, memory: Any, padding: Tensor | None) -> None:
        from transformers import DynamicCache, EncoderDecoderCache

        self._reader, self._memory, self._padding = reader, memory, padding
        # Plain: one that knows of sliding windows returns the keys of the window alone.
        self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache()) if reader.kind.has_encoder else DynamicCache()
        self._n_read = 0
        self._real: Tensor | None = None

    def read(self, tokens: Tensor, *, tap: Tap | None = None) -> Tensor:
        options: dict[str, Any] = {"past_key_values": self._cache, "use_cache": True}
        if self._reader.kind.has_encoder:
            options |= self._reader.of_encoder(self._memory, self._padding) | {"decoder_input_ids": tokens}
        else:
            new = _real(tokens, self._padding if self._real is None else None)
            self._real = new if self._real is None else torch.cat([self._real, new], 1)
            options |= {"input_ids": tokens, "attention_mask": self._real, **self._reader.positions(self._real, tokens)}
        with attention.observe_attention(_pass(self._reader.probed.decoder, tap, self._n_read)):
            logits = self._reader.model(**options).logits
        self._n_read += tokens.shape[1]
        return logits

    def reorder(self, rows: Tensor) -> None:
        """Keys, values and padding of each row; the memory too, whose keys may not be cached."""
        self._cache.batch_select_indices(rows)
        self._memory = None if self._memory is None else self._memory.index_select(0, rows)
        self._padding = None if self._padding is None else self._padding.index_select(0, rows)
        self._real = None if self._real is None else self._real.index_select(0, rows)


@torch.inference_mode()
def check_decoding(reader: HuggingFaceReader) -> None:
    """Decodes three tokens of a padded sentence with a cache, the last in a step of its own, and again in one pass without.

    Raises:
        ModelError: that fails, or the two differ.
    """
    if not reader.kind.writes:
        return
    with model_errors(reader.model, "a step of decoding"):
        tokens = tokens_of(reader.model, 3)
        whole = reader.decode(tokens, reader.encode(tokens))
        # As in a batch: a prompt is padded before, and a source after.
        n_read = 3 if reader.kind.has_encoder else 2
        pads = torch.arange(n_read + 1, device=tokens.device)[None] == (n_read if reader.kind.has_encoder else 0)
        padded = tokens.new_full(pads.shape, reader.pad_id).masked_scatter(~pads, tokens[:, :n_read])
        reading = reader.start_decoding(reader.encode(padded, pads), pads)
        opening = tokens[:, :2] if reader.kind.has_encoder else padded
        steps = torch.cat([reading.read(opening)[:, -2:], reading.read(tokens[:, 2:])], 1)
        # Logits of tokens that are never written may be −∞.
        largest = float(whole[whole.isfinite()].abs().max())
        if not torch.allclose(steps, whole, rtol=0, atol=_TOLERANCE * largest):
            raise refusal(reader.model, "its logits are others token by token in a padded batch than in one pass")


def _pass(places: tuple[Place, ...], tap: Tap | None, first_query: int = 0) -> Pass | None:
    return None if tap is None else Pass(places, tap, first_query)


def _real(like: Tensor, padding: Tensor | None) -> Tensor:
    """Their mask: 1 where there is a token."""
    return torch.ones(like.shape, dtype=torch.long, device=like.device) if padding is None else (~padding).long()
