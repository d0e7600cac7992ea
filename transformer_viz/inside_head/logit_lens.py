"""The token that each layer would write (the logit lens), in words. nostalgebraist 2020, "interpreting GPT: the logit lens"."""

from transformer_viz.language import later, say
from transformer_viz.sentences.run_sentences import Sentence, of_run, say_sentence
from transformer_viz.trace.inside import Inside

CANNOT_SAY = later(
    "The row's state after each layer, read as if it were the last: through the final norm, where the model has one, and "
    "the output (the logit lens). Only the last layer was trained to be read so. An earlier one may hold the answer in a form "
    "that this reading does not show, and the state is of all heads together, not of the one above."
)
"""The caveat of this reading."""


def state_name(state: int) -> str:
    """The name of a state in `Inside.lens`: the first is before every layer."""
    return say("layer {layer}", layer=state) if state else say("the embeddings")


def decided(inside: Inside) -> int | None:
    """The state from which on the token that was written is the most probable; None where it is not, even after the last."""
    if inside.lens is None or inside.lens[-1].rank != 0:
        return None
    others = [state for state, step in enumerate(inside.lens) if step.rank != 0]
    return others[-1] + 1 if others else 0


def lens_summary(inside: Inside) -> Sentence:
    """A sentence about the layer from which on the written token is the most probable."""
    assert inside.lens is not None
    last = inside.lens[-1]
    written, state = of_run(last.token), decided(inside)
    if state is None:
        return say_sentence(
            "{written} stands in the run, and the model's own reading of the last state has {first} on top: it was given or "
            "drawn, or a rule kept the first one out.",
            written=written,
            first=of_run(last.candidates[0][0]),
        )
    if state == len(inside.lens) - 1:
        return say_sentence("{written} is on top only after the last layer.", written=written)
    return say_sentence("{written} is on top from {state} on, and stays there.", written=written, state=state_name(state))
