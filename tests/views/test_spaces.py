"""A space of a text or a token is something to see wherever a page shows one; data, and what is typed, has the space itself."""

import json
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from transformer_viz import app_folders

TEXT = "two  words"
"""Its two spaces are one in Markdown and in a browser where they are not drawn as signs."""
PAGES: list[tuple[str | None, dict[str, str]]] = [
    (None, {"text": TEXT}),
    (None, {"text": TEXT, "explore_tab": "Export", "export_format": "table"}),
    (None, {"text": TEXT, "target": TEXT[::-1], "explore_tab": "What if"}),
    (None, {"text": TEXT, "checkpoint": "reverse", "decoding": "beam"}),
    ("compare", {"text": TEXT, "b_text": "words  two", "checkpoint": "reverse", "b_checkpoint": "reverse"}),
    ("masks", {"sources": TEXT}),
    ("masks", {"sources": TEXT, "mistake": "no_causal_mask"}),
]


def said(at: AppTest) -> str:
    """All words of a page, but those in boxes that are typed into and in programs."""
    kinds = (at.markdown, at.caption, at.text, at.info, at.warning, at.error, at.success, at.button)
    words = [str(getattr(each, "value", "")) + str(getattr(each, "label", "")) for kind in kinds for each in kind]
    tables = [frame.value.to_string(header=False, index=False) for frame in at.dataframe]
    protos = [element.proto for element in at.get("bidi_component")]
    sent = [json.dumps(json.loads(proto.bytes or proto.json or "null"), ensure_ascii=False) for proto in protos]
    return "\n".join([*words, *tables, *sent])


@pytest.fixture
def shipped(only: Callable) -> None:
    only(app_folders.ROOT / "checkpoints")


@pytest.mark.parametrize(("page", "link"), PAGES, ids=[f"{page} {' '.join(link)}" for page, link in PAGES])
def test_a_space_is_seen(start: Callable[..., AppTest], shipped: None, page: str | None, link: dict[str, str]) -> None:
    at = start(page, **link)
    assert not at.exception
    words = said(at)
    shown = [text for text in (TEXT, TEXT[::-1], "words  two", "owt  sdrow") if text in words]
    assert not shown
    assert "␣␣" in words
