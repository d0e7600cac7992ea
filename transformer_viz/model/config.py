"""The settings that tell one encoder-decoder Transformer from another, as data.

The defaults are the modern `pre-norm` model; `variants/` names the published ones.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from transformer_viz.errors import ConfigError, join_names
from transformer_viz.schema import Range, check_fields, read_value

NormPlacement = Literal["pre", "post", "residual-post"]
PositionEncoding = Literal["sinusoid", "learned", "none"]
EmbeddingScale = Literal["none", "encoder", "both"]
Initialization = Literal["torch", "xavier-stacks", "xavier"]
Activation = Literal["relu", "gelu"]
DropoutPlace = Literal["everywhere", "embeddings", "encoder-attention"]
DropoutSite = Literal["embeddings", "encoder-attention", "elsewhere"]
TiedEmbeddings = Literal["none", "output", "all"]

MAX_POSITIONS = 4096
_VocabularySize = Annotated[int, Range(4, 1_000_000)]
_Width = Annotated[int, Range(1, 8192)]
_Layers = Annotated[int, Range(1, 64)]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Sizes and switches of a `Transformer`.

    Raises:
        ConfigError: a size or switch is out of range; the message names the allowed values.
    """

    source_vocabulary_size: _VocabularySize
    target_vocabulary_size: _VocabularySize
    d_model: _Width = 128
    """Width of the residual stream."""
    n_heads: Annotated[int, Range(1, 128)] = 4
    """Heads per attention; must divide `d_model` unless `d_k` is given."""
    d_k: _Width | None = None
    """Width of one head's queries and keys; None = d_model / n_heads."""
    d_v: _Width | None = None
    """Width of one head's values; None = the same as `d_k`."""
    n_encoder_layers: _Layers = 2
    """Layers of the encoder."""
    n_decoder_layers: _Layers = 2
    """Layers of the decoder."""
    d_ff: Annotated[int, Range(1, 65536)] = 512
    """Width of the feed-forward layer."""
    dropout: Annotated[float, Range(0, 1, below=True)] = 0.0
    """Probability with which a number is dropped in training."""
    dropout_in: DropoutPlace = "everywhere"
    """everywhere: embeddings, attention weights, feed-forward layer, what every sublayer adds; embeddings: only there, with
    their positions; encoder-attention: only on what the encoder's self-attention adds."""
    activation: Activation = "relu"
    """The activation of the feed-forward layer."""
    norm: NormPlacement = "pre"
    """pre: x + f(norm(x)); post: norm(x + f(x)); residual-post: x + norm(f(x))."""
    final_norm: bool = True
    """A norm after each stack, as pre-norm needs."""
    norm_affine: bool = True
    """True where norms have a weight and a bias."""
    shared_norm: bool = False
    """One norm for all sublayers of a block, instead of one for each."""
    embedding_norm: bool = False
    """A norm on both embeddings, positions included."""
    attention_bias: bool = True
    """Bias in the query, key, value and output projections of attention."""
    feed_forward_bias: bool = True
    """Biases in the feed-forward layer."""
    output_bias: bool = True
    """Bias in the projection onto the vocabulary."""
    embedding_scale: EmbeddingScale = "none"
    """The embeddings that are multiplied by √d_model."""
    tied_embeddings: TiedEmbeddings = "none"
    """output: the output projection is the target embedding; all: the source embedding too (Vaswani et al. 2017, 3.4)."""
    position: PositionEncoding = "sinusoid"
    """The encoding of positions."""
    sinusoid_base: Annotated[float, Range(1, 10**9, above=True)] = 10000.0
    """Base of the sinusoid's wavelengths."""
    max_positions: Annotated[int, Range(2, MAX_POSITIONS)] = 512
    """The longest sequence, special tokens included."""
    initialization: Initialization = "torch"
    """torch: each layer's own; xavier: uniform Xavier on every matrix; xavier-stacks: as `torch.nn.Transformer` draws its
    stacks, uniform Xavier with queries, keys and values as one matrix, and attention biases of 0."""

    def __post_init__(self) -> None:
        check_fields(self, ConfigError)
        if self.d_k is None and self.d_model % self.n_heads:
            divisors = [n for n in range(1, min(self.d_model, 128) + 1) if self.d_model % n == 0]
            raise ConfigError(
                f"n_heads={self.n_heads} does not divide d_model={self.d_model}; "
                f"possible numbers of heads are {join_names(divisors)}, or give d_k yourself"
            )
        if self.tied_embeddings == "all" and self.source_vocabulary_size != self.target_vocabulary_size:
            raise ConfigError(
                f"tied_embeddings='all' needs one vocabulary; the source has {self.source_vocabulary_size} tokens and "
                f"the target {self.target_vocabulary_size}. Take 'output' or 'none'"
            )
        if self.position == "sinusoid" and self.d_model % 2:
            raise ConfigError(f"d_model={self.d_model} is odd; sinusoid positions come in pairs: take an even width")

    @property
    def key_width(self) -> int:
        """d_k, filled in."""
        return self.d_k or self.d_model // self.n_heads

    def dropout_at(self, place: DropoutSite) -> float:
        """Dropout at one place in the model."""
        return self.dropout if self.dropout_in in (place, "everywhere") else 0.0

    @property
    def value_width(self) -> int:
        """d_v, filled in."""
        return self.d_v or self.key_width

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ModelConfig":
        """The inverse of `to_json`.

        Raises:
            ConfigError: unknown or missing settings, or impossible ones.
        """
        return read_value(cls, data, error=ConfigError)
