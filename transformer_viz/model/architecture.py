"""A model as a drawing has it: its blocks in the order in which they run, where each stands, and what it does in a sentence.

Made from a configuration alone, without the model: no torch. The order is that of Vaswani et al. 2017, figure 1, with the norms
where this variant has them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from transformer_viz.model.config import ModelConfig
from transformer_viz.model.sizes import Sizes
from transformer_viz.numbers_in_words import count_words
from transformer_viz.terms import Kind

Side = Literal["encoder", "decoder"]
Role = Literal["embedding", "positions", "norm", "attention", "recurrence", "feed-forward", "output"]
_MOST_OPEN = 3
"""Layers of a stack that are all drawn; of a deeper one these many around the focus."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One step of the computation.

    Attributes:
        role: what kind of step.
        title: its name in the drawing.
        sentence: what it does, and its sizes.
        place: names it within the model; the same in two models where they have the same step.
        module: by which name the model has it; empty = not known. One module may be several blocks.
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
    """What is drawn of a stack: places of layers in `numbers`, the one in focus and its neighbours, and folds between."""
    n = len(numbers)
    at = min(range(n), key=lambda place: abs(numbers[place] - focus), default=0)
    first = 0 if n <= _MOST_OPEN else max(0, min(at - 1, n - _MOST_OPEN))
    last = min(n, first + _MOST_OPEN)
    below = [Folded(numbers[0], numbers[first - 1])] if first else []
    above = [Folded(numbers[last], numbers[-1])] if last < n else []
    return [*below, *range(first, last), *above]


def differing(architecture: Architecture, other: Architecture) -> set[str]:
    """Places of blocks that the other model does not have, or has in another way."""
    there = {block.place: block.sentence for block in other}
    return {block.place for block in architecture if there.get(block.place) != block.sentence}


def summary(architecture: Architecture) -> str:
    """`encoder 2 layers → decoder 2 layers`."""
    return " → ".join(f"{stack.side} {count_words(len(stack.layers), 'layer')}" for stack in architecture.stacks)


def architecture_of(config: ModelConfig) -> Architecture:
    """Of a model of ours."""
    return Architecture(tuple(_OfConfig(config, side).stack() for side in ("encoder", "decoder")))


def architecture_of_sizes(sizes: Sizes) -> Architecture:
    """Of a model of which no more is known than its attention and its vocabulary."""
    sides: tuple[tuple[Side, tuple[Kind, ...]], ...] = (("encoder", ("encoder",)), ("decoder", ("decoder", "cross")))
    stacks = tuple(_stack_of_sizes(sizes, side, kinds) for side, kinds in sides if set(kinds) & set(sizes.kinds))
    return Architecture(
        stacks, "Feed-forward layers, norms and residual connections are not drawn: its reader does not tell them."
    )


@dataclass(frozen=True)
class _OfConfig:
    """Makes the blocks of one side of a model of ours."""

    config: ModelConfig
    side: Side
    number: int | None = field(default=None, kw_only=True)
    """Of the layer that is being made."""

    def stack(self) -> Stack:
        n = self.config.n_encoder_layers if self.side == "encoder" else self.config.n_decoder_layers
        layers = tuple(tuple(replace(self, number=number).layer()) for number in range(n))
        return Stack(self.side, tuple(self.begin()), tuple(range(n)), layers, tuple(self.end()))

    def begin(self) -> Iterator[Block]:
        yield self.embedding()
        if self.config.position != "none":
            yield self.positions()
        if self.config.embedding_norm:
            module = "source_norm" if self.side == "encoder" else "target_norm"
            yield self.norm(f"{self.side}.embedding-norm", module, "Embedding norm", "The embeddings, positions included:")

    def end(self) -> Iterator[Block]:
        if self.config.final_norm:
            yield self.norm(
                f"{self.side}.final-norm", f"{self.side}_norm", "Final norm", f"What leaves the {self.side}'s last layer:"
            )
        if self.side == "decoder":
            yield self.output()

    def layer(self) -> Iterator[Sublayer]:
        if self.side == "encoder":
            yield self.around("attention", self.attention("encoder", "attention"))
        else:
            yield self.around("attention", self.attention("decoder", "attention"))
            yield self.around("cross_attention", self.attention("cross", "cross_attention"))
        yield self.around("feed_forward", self.feed_forward())

    def around(self, name: str, block: Block) -> Sublayer:
        config = self.config
        where = {
            "pre": ("before", "A copy of the stream, before it is read:"),
            "post": ("after", "The stream, after the addition:"),
            "residual-post": ("within", "What is added, before the addition:"),
        }
        slot, what = where[config.norm]
        module = f"{self.side}.{self.number}.{'norm' if config.shared_norm else f'around_{name}.norm'}"
        title = "Shared norm" if config.shared_norm else "Norm"
        more = " All sublayers of this layer have the same norm." if config.shared_norm else ""
        norm = self.norm(f"{block.place}.{slot}", module, title, what, more)
        return replace(Sublayer(block), **{slot: norm})

    def norm(self, place: str, module: str, title: str, what: str, more: str = "") -> Block:
        width = self.config.d_model
        learned = "then scaled and shifted by learned numbers" if self.config.norm_affine else "with nothing learned"
        n = 2 * width if self.config.norm_affine else 0
        sentence = f"{what} each vector is brought to mean 0 and variance 1, {learned}{with_parameters(n)}.{more}"
        title = title if self.config.norm_affine else f"{title} (fixed)"
        return Block(role="norm", title=title, sentence=sentence, place=place, module=module, n_parameters=n, layer=self.number)

    def embedding(self) -> Block:
        config, is_source = self.config, self.side == "encoder"
        size = config.source_vocabulary_size if is_source else config.target_vocabulary_size
        is_scaled = config.embedding_scale == "both" or (config.embedding_scale == "encoder" and is_source)
        scaled = f", times √{config.d_model}" if is_scaled else ""
        tied = ", which the target has too" if config.tied_embeddings == "all" and is_source else ""
        n = size * config.d_model
        words = f"Each token becomes a vector of d_model {config.d_model}, its row of a table of {size:,} tokens"
        return Block(
            role="embedding",
            title="Embedding × √d" if is_scaled else "Embedding",
            sentence=f"{words}{tied}{scaled}{with_parameters(n)}.",
            place=f"{self.side}.embedding",
            module="source_embedding" if is_source and config.tied_embeddings != "all" else "target_embedding",
            n_parameters=n,
        )

    def positions(self) -> Block:
        config, is_learned = self.config, self.config.position == "learned"
        n = config.max_positions * config.d_model if is_learned else 0
        way = (
            f"a learned vector for each of {config.max_positions:,}"
            if is_learned
            else f"sines of base {config.sinusoid_base:,.6g}"
        )
        return Block(
            role="positions",
            title=f"+ {'learned' if is_learned else 'sinusoid'} positions",
            sentence=f"Where the token stands is added to its vector, as {way}{with_parameters(n)}.",
            place=f"{self.side}.positions",
            module="positions",
            n_parameters=n,
        )

    def attention(self, kind: Kind, name: str) -> Block:
        config, heads = self.config, self.config.n_heads
        keys, values = heads * config.key_width, heads * config.value_width
        n = 2 * config.d_model * (keys + values) + config.attention_bias * (2 * keys + values + config.d_model)
        widths = f"{count_words(heads, 'head')} × d_k {config.key_width}, d_v {config.value_width}"
        widths += f", from d_model {config.d_model}"
        return Block(
            role="attention",
            title=TITLES[kind],
            sentence=f"{LOOKS[kind]}: {widths}{with_parameters(n)}, {_biases(config.attention_bias)}.",
            place=f"{self.side}.{self.number}.{name}",
            module=f"{self.side}.{self.number}.{name}",
            n_parameters=n,
            kind=kind,
            layer=self.number,
        )

    def feed_forward(self) -> Block:
        config = self.config
        width, inner = config.d_model, config.d_ff
        n = 2 * width * inner + config.feed_forward_bias * (width + inner)
        function = {"relu": "ReLU", "gelu": "GELU"}[config.activation]
        words = f"Each vector by itself goes from d_model {width} to d_ff {inner}, through {function}, and back"
        return Block(
            role="feed-forward",
            title="Feed-forward",
            sentence=f"{words}{with_parameters(n)}, {_biases(config.feed_forward_bias)}.",
            place=f"{self.side}.{self.number}.feed_forward",
            module=f"{self.side}.{self.number}.feed_forward",
            n_parameters=n,
            layer=self.number,
        )

    def output(self) -> Block:
        config, size = self.config, self.config.target_vocabulary_size
        is_tied = config.tied_embeddings != "none"
        n = (0 if is_tied else config.d_model * size) + config.output_bias * size
        tied = ", with the target embedding's own table" if is_tied else ""
        words = f"The vector of d_model {config.d_model} becomes a logit for each of {size:,} tokens{tied}"
        return Block(
            role="output",
            title="Output (tied)" if is_tied else "Output projection",
            sentence=f"{words}{with_parameters(n)}, {_biases(config.output_bias)}; a softmax makes probabilities of them.",
            place="decoder.output",
            module="output",
            n_parameters=n,
        )


def _stack_of_sizes(sizes: Sizes, side: Side, kinds: tuple[Kind, ...]) -> Stack:
    numbers = tuple(sorted({number for kind in kinds for number in sizes.layers.get(kind, ())}))
    layers = tuple(
        tuple(
            Sublayer(_attention_of_sizes(sizes, side, kind, number), is_residual=False)
            for kind in kinds
            if number in sizes.layers.get(kind, ())
        )
        for number in numbers
    )
    n_read = sizes.vocabulary if side == "decoder" else sizes.source_vocabulary or sizes.vocabulary
    embedding = _plain("embedding", "Embedding", side, f"Each token becomes a vector, its row of a table of {n_read:,} tokens.")
    words = f"The vector becomes a logit for each of {sizes.vocabulary:,} tokens."
    is_last = side == "decoder" or sizes.kinds == ("encoder",)
    end = (_plain("output", "Output projection", side, words),) if is_last and sizes.vocabulary else ()
    return Stack(side, (embedding,), numbers, layers, end)


def _plain(role: Role, title: str, side: Side, sentence: str) -> Block:
    return Block(role=role, title=title, sentence=sentence, place=f"{side}.{role}")


def _attention_of_sizes(sizes: Sizes, side: Side, kind: Kind, number: int) -> Block:
    window = sizes.windows.get(kind, {}).get(number)
    far = f", {window:,} positions far" if window else ""
    return Block(
        role="attention",
        title=TITLES[kind],
        sentence=f"{LOOKS[kind]}{far}: {count_words(sizes.heads[kind], 'head')}.",
        place=f"{side}.{number}.{kind}",
        kind=kind,
        layer=number,
    )


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
