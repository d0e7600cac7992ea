"""A model as a drawing has it: its blocks in the order in which they run, where each stands, and what it does in a sentence.

Made from a configuration alone, without the model: no torch. The order is that of Vaswani et al. 2017, figure 1, with the norms
where this variant has them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from transformer_viz.language import later, say, sentences
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
        """Yields all blocks, in the order in which they run."""
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
    return " → ".join(
        say("{side} {layers}", side=say(stack.side), layers=count_words(len(stack.layers), "layer"))
        for stack in architecture.stacks
    )


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
    is_tied = config.tied_embeddings == "all" and is_source
    words = say("Each token becomes a vector of d_model {width}, its row of a table of {size:,} tokens", width=width, size=size)
    words = say("{words}, which the target has too", words=words) if is_tied else words
    words = say("{words}, times √{width}", words=words, width=width) if is_scaled else words
    sentence, title = _ended(words, size * width), say("Embedding × √d") if is_scaled else say("Embedding")
    module = "source_embedding" if is_source and not is_tied else "target_embedding"
    yield Block("embedding", title, sentence, f"{side}.embedding", module, size * width)
    if config.position != "none":
        is_learned = config.position == "learned"
        n = config.max_positions * width if is_learned else 0
        words = (
            say("Where the token stands is added to its vector, as a learned vector for each of {n:,}", n=config.max_positions)
            if is_learned
            else say("Where the token stands is added to its vector, as sines of base {base:,.6g}", base=config.sinusoid_base)
        )
        words, title = _ended(words, n), say("+ learned positions") if is_learned else say("+ sinusoid positions")
        yield Block("positions", title, words, f"{side}.positions", "positions", n)
    if config.embedding_norm:
        module = "source_norm" if is_source else "target_norm"
        words = say("The embeddings, positions included:")
        yield _norm(config, f"{side}.embedding-norm", module, say("Embedding norm"), words)


def _sublayers(config: ModelConfig, side: Side, number: int) -> Iterator[Sublayer]:
    """The sublayers of one layer: its attention, and the feed-forward layer."""
    width, inner = config.d_model, config.d_ff
    keys, values = config.n_heads * config.key_width, config.n_heads * config.value_width
    n = 2 * width * (keys + values) + config.attention_bias * (2 * keys + values + width)
    heads = say(
        "{heads} × d_k {d_k}, d_v {d_v}, from d_model {width}",
        heads=count_words(config.n_heads, "head"),
        d_k=config.key_width,
        d_v=config.value_width,
        width=width,
    )
    kinds: tuple[tuple[Kind, str], ...] = (("decoder", "attention"), ("cross", "cross_attention"))
    for kind, name in (("encoder", "attention"),) if side == "encoder" else kinds:
        place = f"{side}.{number}.{name}"
        words = say("{looks}: {heads}", looks=say(LOOKS[kind]), heads=heads)
        sentence = _with_biases(_ended(words, n, "{words}"), config.attention_bias)
        block = Block("attention", say(TITLES[kind]), sentence, place, place, n, kind, number)
        yield _with_norm(config, block, f"{side}.{number}", name)

    place = f"{side}.{number}.feed_forward"
    n = 2 * width * inner + config.feed_forward_bias * (width + inner)
    function = {"relu": "ReLU", "gelu": "GELU"}[config.activation]
    words = say(
        "Each vector by itself goes from d_model {width} to d_ff {inner}, through {function}, and back",
        width=width,
        inner=inner,
        function=function,
    )
    sentence = _with_biases(_ended(words, n, "{words}"), config.feed_forward_bias)
    block = Block("feed-forward", say("Feed-forward"), sentence, place, place, n, layer=number)
    yield _with_norm(config, block, f"{side}.{number}", "feed_forward")


def _with_norm(config: ModelConfig, block: Block, layer: str, name: str) -> Sublayer:
    """The sublayer of a block, with the norm where this variant has it."""
    module = f"{layer}.{'norm' if config.shared_norm else f'around_{name}.norm'}"
    title = say("Shared norm") if config.shared_norm else say("Norm")
    more = say("All sublayers of this layer have the same norm.") if config.shared_norm else ""
    position, what = {
        "pre": ("before", say("A copy of the stream, before it is read:")),
        "post": ("after", say("The stream, after the addition:")),
        "residual-post": ("within", say("What is added, before the addition:")),
    }[config.norm]
    norms: dict[str, Any] = {position: _norm(config, f"{block.place}.{position}", module, title, what, block.layer, more)}
    return Sublayer(block, **norms)


def _norm(
    config: ModelConfig, place: str, module: str, title: str, what: str, layer: int | None = None, more: str = ""
) -> Block:
    n = 2 * config.d_model if config.norm_affine else 0
    words = (
        say("{what} each vector is brought to mean 0 and variance 1, then scaled and shifted by learned numbers", what=what)
        if config.norm_affine
        else say("{what} each vector is brought to mean 0 and variance 1, with nothing learned", what=what)
    )
    sentence = sentences(filter(None, [_ended(words, n), more]))
    title = title if config.norm_affine else say("{title} (fixed)", title=title)
    return Block("norm", title, sentence, place, module, n, layer=layer)


def _end(config: ModelConfig, side: Side) -> Iterator[Block]:
    """The blocks from the output of the last layer to the logits, or to the memory that a decoder reads."""
    if config.final_norm:
        what = say("What leaves the {side}'s last layer:", side=say(side))
        yield _norm(config, f"{side}.final-norm", f"{side}_norm", say("Final norm"), what)
    if side == "decoder":
        size, is_tied = config.target_vocabulary_size, config.tied_embeddings != "none"
        n = (0 if is_tied else config.d_model * size) + config.output_bias * size
        words = say(
            "The vector of d_model {width} becomes a logit for each of {size:,} tokens", width=config.d_model, size=size
        )
        words = say("{words}, with the target embedding's own table", words=words) if is_tied else words
        words = _ended(words, n, "{words}")
        sentence = (
            say("{words}, with biases; a softmax makes probabilities of them.", words=words)
            if config.output_bias
            else say("{words}, without biases; a softmax makes probabilities of them.", words=words)
        )
        yield Block(
            "output", say("Output (tied)") if is_tied else say("Output projection"), sentence, "decoder.output", "output", n
        )


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
                looks, heads = say(LOOKS[kind]), count_words(sizes.heads[kind], "head")
                looks = say("{looks}, {n:,} positions far", looks=looks, n=window) if window else looks
                sentence = say("{sentence}.", sentence=say("{looks}: {heads}", looks=looks, heads=heads))
                block = Block("attention", say(TITLES[kind]), sentence, f"{side}.{number}.{kind}", kind=kind, layer=number)
                layers[number].append(Sublayer(block, is_residual=False))
        n_read = sizes.vocabulary if side == "decoder" else sizes.source_vocabulary or sizes.vocabulary
        words = say("Each token becomes a vector, its row of a table of {n:,} tokens.", n=n_read)
        begin, end = Block("embedding", say("Embedding"), words, f"{side}.embedding"), ()
        if sizes.vocabulary and (side == "decoder" or sizes.kinds == ("encoder",)):
            words = say("The vector becomes a logit for each of {n:,} tokens.", n=sizes.vocabulary)
            end = (Block("output", say("Output projection"), words, f"{side}.output"),)
        stacks.append(Stack(side, (begin,), tuple(layers), tuple(map(tuple, layers.values())), end))
    untold = say("Feed-forward layers, norms and residual connections are not drawn: its reader does not tell them.")
    return Architecture(tuple(stacks), untold)


TITLES: dict[Kind, str] = {
    "encoder": later("Self-attention"),
    "decoder": later("Masked self-attention"),
    "cross": later("Cross-attention"),
}
LOOKS: dict[Kind, str] = {
    "encoder": later("Each token looks at all of them"),
    "decoder": later("Each token looks at itself and at those before it"),
    "cross": later("Each written token looks at what the encoder made of the source"),
}


def with_parameters(n_parameters: int) -> str:
    """`; 1,024 parameters`, or nothing."""
    return f"; {count_words(n_parameters, 'parameter')}" if n_parameters else ""


def _ended(words: str, n_parameters: int, end: str = later("{words}.")) -> str:
    """`Each token …; 1,024 parameters.`, or without them where there are none.

    Args:
        words: a sentence without its end.
        n_parameters: of the block.
        end: a template for its end.
    """
    if n_parameters:
        words = say("{words}; {parameters}", words=words, parameters=count_words(n_parameters, "parameter"))
    return say(end, words=words)


def _with_biases(words: str, has: bool) -> str:
    return say("{words}, with biases.", words=words) if has else say("{words}, without biases.", words=words)
