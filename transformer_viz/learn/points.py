"""The parts of pages that a step of a lesson can highlight: their names, and where they are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A part of a page.

    Attributes:
        pages: that have it.
        selector: of its element, in CSS.
    """

    pages: tuple[str, ...]
    selector: str


_EXPLORE = ("explore",)
_VIEWER = ".st-key-picture"
_SMALL = f"{_VIEWER} [data-part=mosaics] > [data-kind="
_WITH_TEXT = ("explore", "train")
POINTS: dict[str, Point] = {
    "text": Point(_WITH_TEXT, ".st-key-text"),
    "model": Point(("explore", "masks", "train"), ".st-key-checkpoint"),
    "decoding": Point(_EXPLORE, ".st-key-decoding-popover"),
    "settings": Point(("explore", "masks"), ".st-key-bar"),
    "player": Point(("explore", "train"), f"{_VIEWER} .player"),
    "map": Point(("explore", "train"), f"{_VIEWER} [data-part=maps]"),
    "kind": Point(("explore", "compare", "train", "survey"), f"{_VIEWER} [data-box=kind]"),
    "small maps": Point(_EXPLORE, f"{_VIEWER} [data-part=mosaics]"),
    "cross-attention maps": Point(_EXPLORE, f"{_SMALL}cross]"),
    "decoder maps": Point(_EXPLORE, f"{_SMALL}decoder]"),
    "encoder maps": Point(_EXPLORE, f"{_SMALL}encoder]"),
    "tree": Point(_EXPLORE, ".st-key-search-tree-chart"),
    "tabs": Point(_EXPLORE, ".st-key-explore_tab"),
    "inside": Point(_EXPLORE, ".st-key-inside"),
    "mistake": Point(("masks",), ".st-key-mistake"),
    "sentence": Point(("masks",), ".st-key-sentence"),
    "masks": Point(("masks",), ".st-key-masks_tab, [class*=st-key-lesson-masks]"),
    "texts": Point(("compare",), ".st-key-side-A, .st-key-side-B"),
}
"""By the names that lessons use. A test opens each page and finds them."""
