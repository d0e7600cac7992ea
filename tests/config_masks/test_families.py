"""The masks of a configuration are those that a tiny model of it applied, in each layer and cell."""

import re

import pytest

from tests.config_masks.applied import differences
from tests.needs import needs, slow
from tests.readers.every_family import names
from tests.readers.test_every_family import DOCUMENT, SAID
from transformer_viz.errors import ModelError

pytestmark = needs("transformers")

FIRST = ("bart", "bert", "gemma3_text", "llama4_text", "gpt_neo")
"""An encoder-decoder, an encoder, windows, chunks, and a mask that its authors wrote out themselves."""
REFUSED = {
    **dict.fromkeys(("axk2", "deepseek_v32", "glm_moe_dsa", "hy_v4"), "depends on the weights"),
    "jetmoe": "numbers that only the weights give",
    **dict.fromkeys(("falcon_mamba", "fnet", "mamba", "mamba2", "mra", "reformer", "rwkv", "yoso"), "no attention with a mask"),
    **dict.fromkeys(("cpmant", "inkling2_text", "led", "longformer"), "so that no mask of tokens shows it"),
    **dict.fromkeys(("longt5", "pegasus_x", "prophetnet"), "works on parts of the text"),
    "deepseek_v4": "in another order for texts of other lengths",
    "t5gemma2": "over the source and what is written together",
}
"""Families whose masks cannot be read without weights, and words of the reason."""


@pytest.mark.parametrize("name", [name if name in FIRST else slow(name) for name in SAID])
def test_a_configuration_says_what_its_model_applies(name: str) -> None:
    if name not in names():
        pytest.skip(f"this version of transformers has no {name}")
    if name in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[name]):
            differences(name)
    else:
        assert differences(name) == []


def test_the_document_names_those_that_are_refused() -> None:
    said = DOCUMENT.read_text(encoding="utf-8").partition("## Masks without weights")[2].partition("\n\n| ")[2]
    assert set(re.findall("`([a-z0-9_]+)`", said.partition("\n\n")[0])) == {*REFUSED}
