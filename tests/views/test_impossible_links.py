"""What a link cannot mean here is said in one sentence, and the page opens all the same; what it cannot hold is said too."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.views.rooms import OPENINGS
from tests.views.widgets import link_of

Start = Callable[..., AppTest]

IMPOSSIBLE: dict[str | None, dict[str, str]] = {
    None: {
        **{"text": "a" * 10_001, "checkpoint": "../x", "device": "gpu9", "projector": "yes", "hide_answer": "42"},
        **{"kind": "sideways", "layer": "0", "head": "4", "step": "²", "explore_tab": "Attic", "pin": "99,99", "keep": "all"},
        **{"code_of_tab": "shut", "lines": "wavy", "measure": "weight", "colours": "pink", "unit": "letters"},
        **{
            "decoding": "guess",
            "beam": "0",
            "alpha": "nan",
            "stop": "soon",
            "refill": "often",
            "temperature": "hot",
            "seed": "-1",
        },
    },
    "masks": {
        **{"sources": "a" * 10_001, "targets": "a" * 10_001, "edits": "a" * 4_001, "sentence": "9", "mistake": "big"},
        **{"masks_tab": "Attic", "masks_of": "all"},
    },
    "train": {
        "train_task": "cook",
        "train_variant": "mid-norm",
        "train_d_model": "x",
        "train_name": "a" * 101,
        "where": "up",
        "learned": "often",
    },
    "survey": {"survey": "../../reverse", "survey_beside": "/etc/passwd", "survey_number": "size", "survey_tab": "Attic"},
    "compare": {
        **{"b_text": "a" * 10_001, "b_checkpoint": "nobody", "b_layer": "0", "b_head": "9", "scale": "huge"},
        **{f"{side}_file": "gone" for side in "ab"},
        **{f"{side}_snapshot": "2" for side in "ab"},
        **{f"{side}_strategy": "guess" for side in "ab"},
        **{f"{side}_beam": "99" for side in "ab"},
        **{f"{side}_temperature": "hot" for side in "ab"},
        **{f"{side}_seed": "-1" for side in "ab"},
        **{f"{side}_edits": "a" * 4_001 for side in "ab"},
    },
}
IN_A_TAB: list[tuple[str | None, dict[str, str], str, str]] = [
    *(
        ("train", {"learned": "true", "checkpoint": "reverse-small"}, key, word)
        for key, word in (("moment", "2"), ("position", "99"), ("head", "mean"))
    ),
    (None, {"explore_tab": "Heads"}, "tint", "pink"),
    (None, {"explore_tab": "Heads"}, "aligner", "a head"),
    (None, {"explore_tab": "What if"}, "what_if_how", "all"),
    (None, {"explore_tab": "What if"}, "what_if_step", "99"),
    (None, {"explore_tab": "What if"}, "what_if_prefix", "é"),
    (None, {"explore_tab": "What if", "what_if_how": "banned tokens"}, "what_if_ban", "é"),
    (None, {"explore_tab": "What if", "what_if_how": "a beginning of your own"}, "what_if_begin", "a" * 513),
    (None, {"explore_tab": "Heads", "heads_part": "By length"}, "by_length_samples", "33"),
    (None, {"explore_tab": "Inside"}, "explained", "é"),
    (None, {"explore_tab": "Export"}, "export_format", "exe"),
    (None, {"explore_tab": "Heads", "heads_part": "On trial"}, "question", "why"),
    ("masks", {"masks_tab": "Scores to weights"}, "fill", "0"),
    ("masks", {"masks_tab": "Scores to weights"}, "precision", "int8"),
    ("masks", {"masks_tab": "Scores to weights"}, "row", "99"),
    ("masks", {"masks_tab": "Change and run again"}, "click", "twice"),
    ("masks", {"masks_tab": "Change and run again"}, "reach", "far"),
]


def said(at: AppTest) -> str:
    return " ".join(str(element.value) for element in at.warning).replace("\\", "")


@pytest.mark.parametrize("page", list(IMPOSSIBLE))
def test_all_of_a_page_is_said_in_one_sentence(start: Start, everything: Path, page: str | None) -> None:
    given = dict(IMPOSSIBLE[page])
    # With these the page has nothing to show.
    texts = {key: given.pop(key) for key in list(given) if len(given[key]) > 1_000}
    at = start(page, **{**OPENINGS.get(page, {}), **given})
    assert not at.exception
    assert said(at).count("Not possible here") == 1
    assert [key for key, word in given.items() if f"{key}={word}"[:40] not in said(at)] == []
    # What a first run corrects, a second one does not say anew, and nothing of it is left in the address.
    at.run()
    assert not {key: link_of(at)[key] for key, word in given.items() if link_of(at).get(key) == word}
    for key, word in texts.items():
        assert f"{key}={word}"[:40] in said(start(page, **{key: word})), key


@pytest.mark.parametrize(("page", "query", "key", "given"), IN_A_TAB)
def test_it_is_said_in_a_tab(
    start: Start, everything: Path, page: str | None, query: dict[str, str], key: str, given: str
) -> None:
    at = start(page, **{**OPENINGS.get(page, {}), **query, key: given})
    assert not at.exception
    assert f"{key}={given}"[:40] in said(at)


def test_what_is_possible_of_a_link_holds(start: Start, everything: Path) -> None:
    at = start(
        text="abc", checkpoint="gone", layer="99", kind="decoder", head="nine", step="2", explore_tab="Heads", tint="pink"
    )
    assert said(at).count("Not possible here") == 1
    assert (at.session_state["text"], at.session_state["kind"], at.session_state["step"]) == ("abc", "decoder", "2")
    assert at.session_state["explore_tab"] == "Heads"


def test_a_link_of_20_kb(start: Start, everything: Path) -> None:
    at = start("masks", sources="hello\nab", edits="cross:1-2, " * 2_000, layer="2", masks_tab="Scores to weights")
    assert said(at).count("Not possible here") == 1 and "edits=cross" in said(at)
    assert at.session_state["sources"] == "hello\nab" and at.session_state["layer"] == 1
    assert len("".join(link_of(at).values())) < 200


def test_what_was_seen_goes_when_the_person_goes_on(start: Start, everything: Path) -> None:
    at = start("masks", sources="hello\nab", sentence="9")
    assert "sentence=9" in said(at)
    at.run()
    assert "sentence=9" in said(at)
    # As the browser does.
    at.query_params["mistake"] = "No causal mask"
    at.selectbox(key="mistake").set_value("no-causal").run()
    assert not said(at)


def test_a_text_too_long_for_a_link_is_said_above_the_page(start: Start, everything: Path) -> None:
    at = start("masks", sources="hello")
    at.text_area(key="sources").set_value("hello\n" + "a" * 1_600).run()
    captions = " ".join(element.value for element in at.caption).replace("\\", "")
    assert "Too long for it: sources (1,606 characters)" in captions
    assert "sources" not in link_of(at)
    at.text_area(key="sources").set_value("hello\nabc").run()
    assert link_of(at)["sources"] == "hello\nabc"


def test_a_page_that_there_is_not_is_said_in_one_sentence_with_all_else(start: Start) -> None:
    at = start(page="nosuch", layer="77")
    (said,) = [warning.value for warning in at.warning]
    assert "page\\=nosuch" in said and "Masks" in said and "layer\\=77" in said
    assert "page" not in at.query_params
