"""The sizes of a model on which a run depends: layers, heads, vocabulary, longest texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from transformer_viz.addresses import Grid
from transformer_viz.model.config import ModelConfig
from transformer_viz.terms import KINDS, Kind


@dataclass(frozen=True)
class Sizes:
    """Layers, heads and limits.

    Attributes:
        layers: for each kind of attention that the model has, the numbers of its layers from 0, ascending.
        heads: of one layer, for each of these kinds.
        vocabulary: tokens that it may write.
        longest_source: the most tokens that the encoder reads; of a model without one, that the decoder does.
        longest_target: the most tokens that the decoder reads.
        cached: numbers that one position adds to the keys and values of all layers.
        windows: for each kind with layers that look only so far: of these, how many positions, the query's own included. A
            decoder looks back, an encoder to both sides.
        recurrences: layers of a decoder that remember what was read in a recurrence, in the place of self-attention.
        source_vocabulary: tokens that an encoder may read, where these are others than `vocabulary`; else 0.
    """

    layers: Mapping[Kind, tuple[int, ...]]
    heads: Mapping[Kind, int]
    vocabulary: int
    longest_source: int
    longest_target: int
    cached: int
    windows: Mapping[Kind, Mapping[int, int]] = field(default_factory=dict)
    source_vocabulary: int = 0
    recurrences: tuple[int, ...] = ()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that the model has."""
        return tuple(self.layers)

    @property
    def grid(self) -> Grid:
        """The layers and the number of heads of each kind."""
        return {kind: (numbers, self.heads[kind]) for kind, numbers in self.layers.items()}


def sizes_of(config: ModelConfig) -> Sizes:
    """The sizes of a model of ours, from its configuration."""
    encoder, decoder = tuple(range(config.n_encoder_layers)), tuple(range(config.n_decoder_layers))
    return Sizes(
        layers={"encoder": encoder, "decoder": decoder, "cross": decoder},
        heads=dict.fromkeys(KINDS, config.n_heads),
        vocabulary=config.target_vocabulary_size,
        longest_source=config.max_positions,
        longest_target=config.max_positions,
        cached=config.n_decoder_layers * config.n_heads * (config.key_width + config.value_width),
        source_vocabulary=config.source_vocabulary_size,
    )
