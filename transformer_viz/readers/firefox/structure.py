"""How one of Firefox's translators is built, as a drawing has it."""

from dataclasses import replace

from transformer_viz.model.architecture import Architecture, Block, Layer, Sublayer, architecture_of, with_parameters
from transformer_viz.model.config import ModelConfig

WHY_NO_SELF_ATTENTION = (
    "The decoder has no self-attention: what was written before reaches each step through a recurrence, "
    "a memory that every token fades and adds to, so there are no weights between written tokens"
)


def architecture_of_translator(config: ModelConfig) -> Architecture:
    """That of the paper with norms behind each sublayer, and a recurrence in the place of masked self-attention."""
    encoder, decoder = architecture_of(config).stacks
    layers = tuple(_layer(layer, config, number) for number, layer in enumerate(decoder.layers))
    decoder = replace(decoder, layers=layers, end=tuple(map(_named, decoder.end)))
    return Architecture(tuple(replace(stack, begin=tuple(map(_named, stack.begin))) for stack in (encoder, decoder)))


def _named(block: Block) -> Block:
    """A block outside of the layers, by the name of its parameter in our module."""
    return replace(block, module={"embedding": "embedding", "output": "output_bias"}.get(block.role, block.module))


def _layer(layer: Layer, config: ModelConfig, number: int) -> Layer:
    attention, *others = layer
    assert attention.after is not None
    place, width = f"decoder.{number}.recurrence", config.d_model
    n = 2 * width * width + width
    block = Block(
        role="recurrence",
        title="Recurrence (SSRU)",
        sentence=f"{WHY_NO_SELF_ATTENTION}: {width:,} units{with_parameters(n)}.",
        place=place,
        module=place,
        n_parameters=n,
        layer=number,
    )
    norm = replace(attention.after, place=f"{place}.after", module=f"decoder.{number}.around_recurrence.norm")
    return (Sublayer(block, after=norm), *others)
