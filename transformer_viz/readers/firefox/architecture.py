"""The drawing of one of Firefox's translators."""

from dataclasses import replace

from transformer_viz.model.architecture import Architecture, Block, Sublayer, architecture_of, with_parameters
from transformer_viz.model.config import ModelConfig

_WHY_NO_SELF_ATTENTION = (
    "The decoder has no self-attention: what was written before reaches each step through a recurrence, "
    "a memory that every token fades and adds to, so there are no weights between written tokens"
)
_MODULES = {"embedding": "embedding", "output": "output_bias"}
"""What blocks outside of the layers are called in our module, by their role."""


def architecture_of_translator(config: ModelConfig) -> Architecture:
    """The drawing: the paper's architecture, with a norm after each sublayer and a recurrence for masked self-attention."""
    encoder, decoder = architecture_of(config).stacks
    width = config.d_model
    n_parameters = 2 * width * width + width
    words = f"{_WHY_NO_SELF_ATTENTION}: {width:,} units{with_parameters(n_parameters)}."
    layers = []
    for number, (attention, *others) in enumerate(decoder.layers):
        assert attention.after is not None
        place = f"decoder.{number}.recurrence"
        block = Block(
            role="recurrence",
            title="Recurrence (SSRU)",
            sentence=words,
            place=place,
            module=place,
            n_parameters=n_parameters,
            layer=number,
        )
        norm = replace(attention.after, place=f"{place}.after", module=f"decoder.{number}.around_recurrence.norm")
        layers.append((Sublayer(block, after=norm), *others))

    def named_blocks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(replace(block, module=_MODULES.get(block.role, block.module)) for block in blocks)

    decoder = replace(decoder, begin=named_blocks(decoder.begin), layers=tuple(layers), end=named_blocks(decoder.end))
    return Architecture((replace(encoder, begin=named_blocks(encoder.begin)), decoder))
