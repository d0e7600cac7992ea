"""The tab From a configuration on Masks draws what `tv.masks` gives, and says in words what cannot be."""

import json
import threading

import pytest

import transformer_viz as tv
from tests.config_masks.test_masks import MISTRAL
from tests.needs import needs
from tests.views.drawn import finished, said
from tests.views.test_masks_view import titles
from transformer_viz.views.masks import config_tab

pytestmark = needs("transformers")
TAB = "From a configuration"


def test_a_pasted_configuration_is_drawn_and_linked(start):
    text = json.dumps(MISTRAL)
    at = finished(start("masks", masks_tab=TAB, config=text, config_lengths="6, 3", config_padding="padded behind"))
    assert not at.error
    found = tv.masks(text, lengths=[6, 3], padding="right")
    assert all(group.title in said(at) for group in found.groups)
    masked = int((found.of("decoder.1").reasons[1] > 0).sum())
    assert f"{found.groups[0].title}<br>{masked} of 36 cells" in titles(at)


@pytest.mark.parametrize(
    ("config", "lengths", "words"),
    [
        ("{", "8", "not JSON"),
        ("/etc", "8", "begins with {"),
        ('{"model_type": "none-such"}', "8", "does not know"),
        (json.dumps(MISTRAL), "many", "as in 8, 5"),
    ],
)
def test_what_cannot_be_drawn_is_said(start, config, lengths, words):
    at = finished(start("masks", masks_tab=TAB, config=config, config_lengths=lengths))
    assert words in " ".join(str(error.value) for error in at.error)


def test_an_impossible_padding_of_a_link_is_said_while_the_configuration_is_read_and_after_it(start, monkeypatch):
    masks, goes_on = config_tab.masks, threading.Event()

    def wait_and_read(*args, **kwargs):
        goes_on.wait()
        return masks(*args, **kwargs)

    monkeypatch.setattr(config_tab, "masks", wait_and_read)
    try:
        at = start("masks", masks_tab=TAB, config=json.dumps(MISTRAL), config_padding="above")
        assert said(at).count("config_padding=above") == 1
    finally:
        goes_on.set()
    assert said(finished(at)).count("config_padding=above") == 1
