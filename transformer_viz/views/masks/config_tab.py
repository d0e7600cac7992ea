"""The masks of any Hugging Face model from its configuration alone, as somebody pastes it."""

from typing import Any

import streamlit as st

from transformer_viz.config_masks.inputs import LONGEST, MOST_TEXTS
from transformer_viz.config_masks.masks import masks
from transformer_viz.errors import TransformerVizError
from transformer_viz.export.masks_page import masks_figure
from transformer_viz.language import later, say
from transformer_viz.views.cache.computing import compute
from transformer_viz.views.components import chart, code
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.components.recorded_calls import Call
from transformer_viz.views.masks.setup import Setup
from transformer_viz.views.state import link

TITLE, ORDER = later("From a configuration"), 6
_EXAMPLE = '{"model_type": "gemma3_text", "num_hidden_layers": 6, "sliding_window": 4}'
_MOST, _MOST_OF_LENGTHS = 20_000, 60
_COST = 1e12
"""More than is computed at once: transformers is loaded, and the model is built."""
_SIDES = {"own": later("the model's own side"), "left": later("padded before"), "right": later("padded behind")}


def show(setup: Setup) -> None:
    """Draws a box for a configuration, and its masks."""
    st.markdown(
        say(
            "The masks of any Hugging Face model from its `config.json` alone: its own code runs without its "
            "weights, and nothing is downloaded."
        )
    )
    left, right = st.columns([3, 1])
    with left:
        pasted = link.text_area(say("The content of a config.json"), _EXAMPLE, key="config", most=_MOST, height=130)
    with right:
        help_words = say(
            "At most {most_texts}, of up to {longest} tokens each. Shorter ones are padded.",
            most_texts=MOST_TEXTS,
            longest=LONGEST,
        )
        typed = link.text_input(
            say("Lengths of the texts"), "8, 5", key="config_lengths", most=_MOST_OF_LENGTHS, help=help_words
        )
        side = link.selectbox(say("Padding"), _SIDES, key="config_padding")
    words = [word.strip() for word in typed.split(",") if word.strip()]
    if not words or not all(word.isdecimal() for word in words):
        st.error(say("The lengths are numbers with commas between them, as in 8, 5."), icon=":material/keyboard:")
        return
    if not pasted.lstrip().startswith("{"):
        # Or it would be read as the path of a folder.
        st.error(say("A config.json begins with {{ and ends with }}. Paste its whole content."), icon=":material/keyboard:")
        return
    given: dict[str, Any] = {"lengths": [int(word) for word in words], "padding": None if side == "own" else side}
    try:
        result = compute(say("Reading the configuration"), _COST, masks, pasted, **given)
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    about = {"model_class": literal(result.model_class), "family": literal(result.family)}
    if result.padding == "left":
        st.markdown(say("**{model_class}** of the family {family}, padded on the left.", **about))
    else:
        st.markdown(say("**{model_class}** of the family {family}, padded on the right.", **about))
    st.markdown("\n".join(f"- {literal(group.title)}" for group in result.groups))
    for note in result.notes:
        st.markdown(literal(note))
    st.caption(say("A row is a query, a column a key: its place and its token. Behind a query stands how many keys it sees."))
    words_of = say("The mask of each kind of layer, each cell by its reason; the number is how many keys a query sees")
    figure = chart.draw(masks_figure, result, key="config-masks-chart", words=words_of, file="masks")
    code.show(figure, Call("print({})", result))
