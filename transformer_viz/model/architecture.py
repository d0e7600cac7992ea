"""A model as a drawing has it: its blocks in the order in which they run, where each stands, and what it does in a sentence.

Made from a configuration alone, without the model: no torch. The order is that of Vaswani et al. 2017, figure 1, with the norms
where this variant has them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from transformer_viz.model.config import ModelConfig
from transformer_viz.model.sizes import Sizes
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import Kind

Side = Literal["encoder", "decoder"]
Role = Literal["embedding", "positions", "norm", "attention", "recurrence", "feed-forward", "output", "fold"]
_MOST_OPEN = 3
"""Layers of a stack that are all drawn; of a deeper one these many around the focus."""


@dataclass(frozen=True)
class Block:
    """One step of the computation.

    Attributes:
        role: the kind of step; `fold` replaces layers that are not drawn one by one.
        title: its name in the drawing.
        sentence: what it does, and its sizes.
        place: its address within the model, the same in two models that both have this step.
        module: the name of its module in the model; empty = not known. One module may be several blocks.
        n_parameters: trained numbers of the module.
        kind: of an attention.
        layer: from 0, of what is in one.
    """

    role: Role
    title: str
    sentence: str
    place: str
    module: str = ""
    n_parameters: int = 0
    kind: Kind | None = None
    layer: int | None = None


@dataclass(frozen=True)
class Sublayer:
    """Attention or feed-forward, the residual connection around it, and norms where they stand.

    Attributes:
        block: what is computed, on a copy of the stream, and added to it.
        before: a norm of what it is given (pre-norm).
        within: a norm of what it gives, before that is added (residual-post-norm).
        after: a norm of the stream, after the addition (post-norm).
        is_residual: whether it is known that there is a residual connection.
    """

    block: Block
    before: Block | None = None
    within: Block | None = None
    after: Block | None = None
    is_residual: bool = True

    def __iter__(self) -> Iterator[Block]:
        """Its blocks, in order."""
        return (block for block in (self.before, self.block, self.within, self.after) if block is not None)


Layer = tuple[Sublayer, ...]


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder, from its tokens to what it gives; `numbers` are those of the layers, from 0."""

    side: Side
    begin: tuple[Block, ...]
    numbers: tuple[int, ...]
    layers: tuple[Layer, ...]
    end: tuple[Block, ...]

    def __iter__(self) -> Iterator[Block]:
        """Its blocks, in order."""
        return chain(self.begin, *chain.from_iterable(self.layers), self.end)


@dataclass(frozen=True)
class Architecture:
    """Both stacks, or one; `untold` says what is not known of the model, as a sentence."""

    stacks: tuple[Stack, ...]
    untold: str = ""

    def __iter__(self) -> Iterator[Block]:
        """All blocks, in the order in which they run."""
        return chain(*self.stacks)


@dataclass(frozen=True)
class Folded:
    """Layers that are not drawn one by one, from the first to the last of them."""

    first: int
    last: int


def unfolded(numbers: Sequence[int], focus: int) -> list[int | Folded]:
    """The drawn parts of a stack: places of layers in `numbers`, the one in focus and its neighbours, and folds between."""
    n = len(numbers)
    at = min(range(n), key=lambda place: abs(numbers[place] - focus), default=0)
    first = 0 if n <= _MOST_OPEN else max(0, min(at - 1, n - _MOST_OPEN))
    last = min(n, first + _MOST_OPEN)
    below = [Folded(numbers[0], numbers[first - 1])] if first else []
    above = [Folded(numbers[last], numbers[-1])] if last < n else []
    return [*below, *range(first, last), *above]


def summary(architecture: Architecture) -> str:
    """`encoder 2 layers → decoder 2 layers`."""
    return " → ".join(f"{stack.side} {count_words(len(stack.layers), 'layer')}" for stack in architecture.stacks)


def architecture_of(config: ModelConfig) -> Architecture:
    """The drawing of a model of ours, from its configuration."""
    return Architecture((_stack(config, "encoder"), _stack(config, "decoder")))


def _stack(config: ModelConfig, side: Side) -> Stack:
    n_layers = config.n_encoder_layers if side == "encoder" else config.n_decoder_layers
    layers = tuple(tuple(_sublayers(config, side, number)) for number in range(n_layers))
    return Stack(side, tuple(_begin(config, side)), tuple(range(n_layers)), layers, tuple(_end(config, side)))


def _begin(config: ModelConfig, side: Side) -> Iterator[Block]:
    """The blocks from the tokens to the input of the first layer."""
    width, is_source = config.d_model, side == "encoder"
    size = config.source_vocabulary_size if is_source else config.target_vocabulary_size
    is_scaled = config.embedding_scale == "both" or (config.embedding_scale == "encoder" and is_source)
    scaled = f", times √{width}" if is_scaled else ""
    is_tied = config.tied_embeddings == "all" and is_source
    tied = ", which the target has too" if is_tied else ""
    words = f"Each token becomes a vector of d_model {width}, its row of a table of {size:,} tokens{tied}{scaled}"
    sentence, title = f"{words}{with_parameters(size * width)}.", "Embedding × √d" if is_scaled else "Embedding"
    module = "source_embedding" if is_source and not is_tied else "target_embedding"
    yield Block("embedding", title, sentence, f"{side}.embedding", module, size * width)
    if config.position != "none":
        is_learned = config.position == "learned"
        n = config.max_positions * width if is_learned else 0
        learned, sines = f"a learned vector for each of {config.max_positions:,}", f"sines of base {config.sinusoid_base:,.6g}"
        words = f"Where the token stands is added to its vector, as {learned if is_learned else sines}{with_parameters(n)}."
        title = f"+ {'learned' if is_learned else 'sinusoid'} positions"
        yield Block("positions", title, words, f"{side}.positions", "positions", n)
    if config.embedding_norm:
        module = "source_norm" if is_source else "target_norm"
        words = "The embeddings, positions included:"
        yield _norm(config, f"{side}.embedding-norm", module, "Embedding norm", words)


def _sublayers(config: ModelConfig, side: Side, number: int) -> Iterator[Sublayer]:
    """The sublayers of one layer: its attention, and the feed-forward layer."""
    width, inner = config.d_model, config.d_ff
    keys, values = config.n_heads * config.key_width, config.n_heads * config.value_width
    n = 2 * width * (keys + values) + config.attention_bias * (2 * keys + values + width)
    heads = f"{count_words(config.n_heads, 'head')} × d_k {config.key_width}, d_v {config.value_width}, from d_model {width}"
    kinds: tuple[tuple[Kind, str], ...] = (("decoder", "attention"), ("cross", "cross_attention"))
    for kind, name in (("encoder", "attention"),) if side == "encoder" else kinds:
        place = f"{side}.{number}.{name}"
        sentence = f"{LOOKS[kind]}: {heads}{with_parameters(n)}, {_biases(config.attention_bias)}."
        block = Block("attention", TITLES[kind], sentence, place, place, n, kind, number)
        yield _with_norm(config, block, f"{side}.{number}", name)

    place = f"{side}.{number}.feed_forward"
    n = 2 * width * inner + config.feed_forward_bias * (width + inner)
    function = {"relu": "ReLU", "gelu": "GELU"}[config.activation]
    words = f"Each vector by itself goes from d_model {width} to d_ff {inner}, through {function}, and back"
    sentence = f"{words}{with_parameters(n)}, {_biases(config.feed_forward_bias)}."
    block = Block("feed-forward", "Feed-forward", sentence, place, place, n, layer=number)
    yield _with_norm(config, block, f"{side}.{number}", "feed_forward")


def _with_norm(config: ModelConfig, block: Block, layer: str, name: str) -> Sublayer:
    """The sublayer of a block, with the norm where this variant has it."""
    module = f"{layer}.{'norm' if config.shared_norm else f'around_{name}.norm'}"
    title = "Shared norm" if config.shared_norm else "Norm"
    more = " All sublayers of this layer have the same norm." if config.shared_norm else ""
    position, what = {
        "pre": ("before", "A copy of the stream, before it is read:"),
        "post": ("after", "The stream, after the addition:"),
        "residual-post": ("within", "What is added, before the addition:"),
    }[config.norm]
    norms: dict[str, Any] = {position: _norm(config, f"{block.place}.{position}", module, title, what, block.layer, more)}
    return Sublayer(block, **norms)


def _norm(
    config: ModelConfig, place: str, module: str, title: str, what: str, layer: int | None = None, more: str = ""
) -> Block:
    learned = "then scaled and shifted by learned numbers" if config.norm_affine else "with nothing learned"
    n = 2 * config.d_model if config.norm_affine else 0
    sentence = f"{what} each vector is brought to mean 0 and variance 1, {learned}{with_parameters(n)}.{more}"
    title = title if config.norm_affine else f"{title} (fixed)"
    return Block("norm", title, sentence, place, module, n, layer=layer)


def _end(config: ModelConfig, side: Side) -> Iterator[Block]:
    """The blocks from the output of the last layer to the logits, or to the memory that a decoder reads."""
    if config.final_norm:
        what = f"What leaves the {side}'s last layer:"
        yield _norm(config, f"{side}.final-norm", f"{side}_norm", "Final norm", what)
    if side == "decoder":
        size, is_tied = config.target_vocabulary_size, config.tied_embeddings != "none"
        n = (0 if is_tied else config.d_model * size) + config.output_bias * size
        tied = ", with the target embedding's own table" if is_tied else ""
        words = f"The vector of d_model {config.d_model} becomes a logit for each of {size:,} tokens{tied}{with_parameters(n)}"
        sentence = f"{words}, {_biases(config.output_bias)}; a softmax makes probabilities of them."
        yield Block("output", "Output (tied)" if is_tied else "Output projection", sentence, "decoder.output", "output", n)


def architecture_of_sizes(sizes: Sizes) -> Architecture:
    """The drawing of a model of which no more is known than its attention and its vocabulary."""
    sides: tuple[tuple[Side, tuple[Kind, ...]], ...] = (("encoder", ("encoder",)), ("decoder", ("decoder", "cross")))
    stacks = []
    for side, all_kinds in sides:
        kinds = [kind for kind in all_kinds if kind in sizes.kinds]
        if not kinds:
            continue
        layers = {number: list[Sublayer]() for number in sorted({n for kind in kinds for n in sizes.layers[kind]})}
        for kind in kinds:
            for number in sizes.layers[kind]:
                window = sizes.windows.get(kind, {}).get(number)
                far = f", {window:,} positions far" if window else ""
                sentence = f"{LOOKS[kind]}{far}: {count_words(sizes.heads[kind], 'head')}."
                block = Block("attention", TITLES[kind], sentence, f"{side}.{number}.{kind}", kind=kind, layer=number)
                layers[number].append(Sublayer(block, is_residual=False))
        n_read = sizes.vocabulary if side == "decoder" else sizes.source_vocabulary or sizes.vocabulary
        words = f"Each token becomes a vector, its row of a table of {n_read:,} tokens."
        begin, end = Block("embedding", "Embedding", words, f"{side}.embedding"), ()
        if sizes.vocabulary and (side == "decoder" or sizes.kinds == ("encoder",)):
            words = f"The vector becomes a logit for each of {sizes.vocabulary:,} tokens."
            end = (Block("output", "Output projection", words, f"{side}.output"),)
        stacks.append(Stack(side, (begin,), tuple(layers), tuple(map(tuple, layers.values())), end))
    untold = "Feed-forward layers, norms and residual connections are not drawn: its reader does not tell them."
    return Architecture(tuple(stacks), untold)


TITLES: dict[Kind, str] = {"encoder": "Self-attention", "decoder": "Masked self-attention", "cross": "Cross-attention"}
LOOKS: dict[Kind, str] = {
    "encoder": "Each token looks at all of them",
    "decoder": "Each token looks at itself and at those before it",
    "cross": "Each written token looks at what the encoder made of the source",
}


def with_parameters(n_parameters: int) -> str:
    """`; 1,024 parameters`, or nothing."""
    return f"; {count_words(n_parameters, 'parameter')}" if n_parameters else ""


def _biases(has: bool) -> str:
    return "with biases" if has else "without biases"
