"""The masks of a configuration are those that a tiny model of it applied, in each layer and cell."""

import pytest

from tests.config_masks.applied import differences
from tests.needs import needs, slow
from tests.readers.every_family import names
from tests.readers.test_every_family import SAID
from transformer_viz.errors import ModelError

pytestmark = needs("transformers")

FIRST = ("bart", "bert", "gemma3_text", "llama4_text", "gpt_neo")
"""An encoder-decoder, an encoder, windows, chunks, and a mask that its authors wrote out themselves."""
REFUSED = {
    **dict.fromkeys(("axk2", "deepseek_v32", "git", "glm_moe_dsa"), "depends on the weights"),
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
