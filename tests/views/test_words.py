"""One vocabulary: each sentence of the glossary is on its pages."""

import re
from html import escape

import pytest

from tests.views.rooms import OPENINGS
from transformer_viz.model import variants
from transformer_viz.views import pages, path
from transformer_viz.views.explore.on_trial import QUESTIONS
from transformer_viz.views.glossary import BASICS, PAGES, TERMS, of_page, sentence

ROOMS = {
    **{page: [{}] for page in PAGES},
    "train": [{}, {"where": "true"}],
    "survey": [{"survey_tab": tab} for tab in ("This head", "Agreement", "Outputs", "On trial", "How it was made")],
    "explore": [
        {"measure": "cause"},
        *({"decoding": name} for name in ("beam", "sample", "forced")),
        *({"explore_tab": tab} for tab in ("Inside", "What if", "Heads", "Masks", "Export")),
        *(
            {"explore_tab": "Heads", "heads_part": "On trial", "question": name, toggle: "true", "trial_every": "true"}
            for name, toggle in zip(QUESTIONS, ("verdict", "knock_out", "curves"), strict=True)
        ),
    ],
    "masks": [{"masks_tab": tab} for tab in ("Masks", "Scores to weights", "Change and run again", "Mistakes", "Loss")],
}


def test_the_glossary_is_short_and_names_pages():
    assert tuple(path(view) for view in pages()) == (*PAGES, "learn"), "a lesson explains its terms itself"
    for name, term in TERMS.items():
        assert name == name.lower() or "QK" in name
        assert term.pages
        assert set(term.pages) <= set(PAGES)
        assert 5 < len(sentence(name)) < 160
        assert not term.sentence.endswith(".")
    assert set(variants.names()) <= set(TERMS)
    assert of_page("explore")[: len(BASICS)] == (*BASICS,), "what one meets first stands first"


def test_a_word_is_looked_up_among_the_terms_of_all_pages(start):
    """Those that have it in their name come first; what is typed is text."""
    at = start("masks")
    at.text_input(key="glossary_wanted").set_value("  Beam ").run()
    (said,) = [part.proto.body for part in at.get("html") if 'aria-label="Glossary"' in part.proto.body]
    names = re.findall("<b>(.*?)</b>", said)
    assert names[:2] == ["beam", "beam size"] and "decoding" in names and "mask" not in names
    at.text_input(key="glossary_wanted").set_value("<i>x").run()
    assert any("No term has “&lt;i&gt;x”." in part.proto.body for part in at.get("html"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_its_words(start, page):
    path = None if page == "explore" else page
    for query in ROOMS[page]:
        at = start(path, **{**OPENINGS.get(path, {}), **query})
        said = "\n".join(part.proto.body for part in at.get("html"))
        assert not [name for name in of_page(page) if f"<b>{escape(name)}</b>: {escape(sentence(name))}<" not in said]
