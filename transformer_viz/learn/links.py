"""Links of the app, as a lesson holds them: a page, and values of its controls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from transformer_viz.errors import LessonError, join_names
from transformer_viz.terms import KIND_TITLES, KINDS, Head, Kind
from transformer_viz.text_display import quote_text

LONGEST = 2_000
_MOST_VALUES = 40
_OF_ALL = "all_controls checkpoint device head hide_answer kind layer projector text where"
_OF_PAGES = {
    "explore": "step pin lines measure cause_mode unit tint aligned_by aligner decoding beam alpha "
    "search_length temperature seed forced_target node explore_tab heads_part overview_of head_order heads_page row "
    "explained question verdict knock_out curves trial_how trial_every trial_samples trial_texts "
    "export_format what_if_how what_if_step what_if_prefix what_if_ban "
    "what_if_begin what_if_target",
    "masks": "sources targets sentence mistake edits masks_tab masks_of row precision click fill reach certificate effect "
    "gallery many config config_lengths config_padding",
    "compare": "a_beam a_edits a_seed a_snapshot a_strategy a_temperature b_beam b_checkpoint b_edits b_seed "
    "b_snapshot b_strategy b_temperature b_text scale unit patching patch_by patch_place patch_layers",
    "train": "learned form moment position train_job train_probe train_task train_variant train_steps",
    "survey": "survey survey_beside survey_number survey_tab",
}
"""The controls that a link of each page may name; a test compares them with the pages."""
PAGES = tuple(_OF_PAGES)
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)


@dataclass(frozen=True)
class Link:
    """A page as the address names it, `explore` for the bare one, and values by the names of controls.

    Raises:
        LessonError: no page of the app, or a control that the page does not have.
    """

    page: str = PAGES[0]
    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.page not in PAGES:
            raise LessonError(f"the app has no page {quote_text(self.page)}; it has {join_names(PAGES)}")
        known = names_of_page(self.page)
        if unknown := [name for name in self.values if name not in known]:
            words = f"the page {self.page} has no control {quote_text(unknown[0])}; a link to it may name"
            raise LessonError(f"{words} {join_names(sorted(known))}")

    @property
    def address(self) -> str:
        """The link as the browser has it behind the server's name: `/masks?sentence=2`."""
        path = "/" if self.page == PAGES[0] else f"/{self.page}"
        return f"{path}?{urlencode(self.values)}" if self.values else path

    @property
    def kind(self) -> Kind | None:
        """The kind of attention that it names."""
        said = self.values.get("kind")
        return next((kind for kind in KINDS if said in (kind, KIND_TITLES[kind])), None)

    def number(self, name: str) -> int | None:
        """The number in a value, from 1 as people write it: 2 of `layer 2`."""
        match = _NUMBER.search(self.values.get(name, ""))
        return None if match is None else int(match[0])

    @property
    def head(self) -> Head | None:
        """The head that it names, from 0, or `mean` or `max`."""
        said, number = self.values.get("head", ""), self.number("head")
        combined: dict[str, Head] = {"mean of heads": "mean", "max of heads": "max"}
        return combined.get(said, None if number is None else number - 1)


def names_of_page(page: str) -> list[str]:
    """Lists the controls that a link to a page may name."""
    return [*_OF_ALL.split(), *_OF_PAGES[page].split()]


def read_link(text: str) -> Link:
    """A link of the app from what a lesson says, such as `/?text=hello&step=3`.

    Raises:
        LessonError: it leads elsewhere, is no link, or names what no page has.
    """
    if len(text) > LONGEST:
        raise LessonError(f"a link has {len(text):,} characters; at most {LONGEST:,} are possible")
    # A browser takes what follows two slashes for a server's name, and reads a backslash as a slash.
    if not text.startswith("/") or text.startswith("//") or "\\" in text or not text.isprintable():
        raise LessonError(
            f"{quote_text(text, 60)} is not a link of this app; leave out the server, as in /?text=hello or /masks?sources=ab"
        )
    parts = urlsplit(text)
    pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=None)
    if len(pairs) > _MOST_VALUES or len(dict(pairs)) < len(pairs):
        raise LessonError(f"{quote_text(text, 60)} names a control twice, or more than {_MOST_VALUES} controls")
    if parts.fragment:
        raise LessonError(f"{quote_text(text, 60)} has a part after #; leave that out")
    return Link(parts.path.strip("/") or PAGES[0], dict(pairs))
