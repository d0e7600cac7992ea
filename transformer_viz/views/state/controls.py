"""Every control of every page, declared once: its keys, how a link says it, its default, and where it is.

A new one is a line here and the widget with that key. `link.open_page` starts it before the page is drawn, from the session,
the link or its default, and `link.values` has it for `link.write`. One whose options or default depend on the run has neither
here: the page hands them to `link.start`. A test fails for a widget of any page that is not in this table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_viz.analysis.softmax import FILLS, PRECISIONS
from transformer_viz.terms import INSTEAD, MODES
from transformer_viz.views.state import training_fields
from transformer_viz.views.state.values import Address, Cell, Decimal, Elsewhere, Number, Options, Text, Tokens, Value, Words

MOST_TYPED = 10_000
"""A stranger's text is cut here; every real limit is the task's and is said in words."""
MOST_OF_A_CHANGE, MOST_OF_EDITS, LONGEST_NAME, LONGEST_PROBE, LONGEST_CHOICE = 512, 4_000, 100, 200, 1_000
WIDEST, HOTTEST, LARGEST_SEED = 64, 100.0, 2**31 - 1
SAMPLES = (20, 50, 100, 200)
"""Strings per length that a visitor may ask for."""
LENGTHS = (AUTO_LENGTH := 0, 5, 10, 20, 50, 100, 200)
"""The most tokens that a search writes; the first is what suits the model."""
FORMATS = ("html", "png", "svg", "pdf", "csv", "parquet", "npz")
HOWS = {
    "token": "another token",
    "begin": "a beginning of your own",
    "ban": "banned tokens",
    "target": "a target of your own",
}
CLICKS = {
    "cell": "flips the cell",
    "row": "flips the row",
    "column": "flips the column",
    "force": "forces the row onto the key",
}
REACHES = {"all": "all layers and heads", "layer": "this layer", "head": "this head"}
MEASURES = ("weights", "value", "cause", "more")
"""What the maps of Explore show; the last one stands for those that have a box of their own."""
BY_VALUE, BY_CAUSE, BY_SHARES = "value_weighted", "occlusion", "alti"
OF_SWITCH = {"value": BY_VALUE, "cause": BY_CAUSE}
"""The measures that have a button of their own, and the one that bars above the written tokens are of."""
UNITS = ("tokens", "words")
QUESTIONS = {
    "verdict": "Does it point at the cause?",
    "knock-out": "Is it needed?",
    "curves": "Is its order faithful?",
    "counter-proof": "Could it look elsewhere?",
}
TOGETHER = {"kind": "all heads of its kind", "layer": "the heads of its layer"}
STRATEGIES = ("greedy", "beam", "sample", "forced")
PATCHED = {"heads": "head", "layers": "layer"}
"""What is put into the other run, by the word of a link."""
A_RUN, FINISHED, SAME = "", "finished", "same"
"""What boxes of Compare hold where no file, no snapshot and no other layer or head is chosen: an empty box would hold None."""


@dataclass(frozen=True)
class Control:
    """One control."""

    key: str
    """Of its value in the session, and of its widget."""
    name: str
    """In a link."""
    value: Value
    pages: tuple[str, ...]
    options: Options = None
    default: Any = None
    """None is the first option."""
    when: Mapping[str, Any] = field(default_factory=dict)
    """A link has it only while other controls, by their keys, have these values."""
    said_with: tuple[str, ...] = ()
    """Beside one of these names a link has it even where it is the default: alone they would mean another one."""
    widget: str | None = ""
    """The widget's key, where it is another one; None for no widget."""
    is_late: bool = False
    """The page starts it, since what it begins with depends on others, although its options are known here."""

    @property
    def is_fixed(self) -> bool:
        """Whether it can be started without the page."""
        return not self.is_late and (self.options is not None or self.default is not None)


_RUN = ("explore", "masks", "search", "compare", "replay")
"""Pages that run a model, whose bar is above them."""
_SHOWN = (*_RUN, "open")
_LOOKED_AT = (*_SHOWN, "survey")
_CODE = (*_LOOKED_AT, "train")
_STEPPED = ("explore", "search", "open")
_CHANGE = {"tables": "What if"}
_INSIDE = dict.fromkeys(("tables", "search_tables", "open_tables"), "Inside")

BAR = (
    Control("text", "text", Text(MOST_TYPED), ("explore", "search", "compare", "replay"), when={"a_file": A_RUN}),
    Control("checkpoint", "checkpoint", Words(), _RUN, when={"a_file": A_RUN}),
    Control("device", "device", Words(), _RUN),
    Control("projector", "projector", Words(), _LOOKED_AT, {"on": True}, default=False),
    Control("hide_answer", "answer", Words(), _LOOKED_AT, {"hidden": True}, default=False),
    Control("where", "where", Words(), ("explore", "train"), {"open": True}, default=False),
    Control("keep", "keep", Text(LONGEST_CHOICE), _RUN, default="", widget=None),
)
_IT_WRITES = ("explore", "search", "masks", "compare")
SWITCHES = (
    Control("generation", "generation", Words("models that have one"), _IT_WRITES, {"off": False}, default=True, is_late=True),
    Control("chat", "chat", Words("models that have a chat template"), _IT_WRITES, {"on": True}, default=False, is_late=True),
    Control("shortlist", "shortlist", Words("models that have one"), _IT_WRITES, {"off": False}, default=True, is_late=True),
    Control("source_language", "reads", Words(), _IT_WRITES),
    Control("target_language", "writes", Words(), _IT_WRITES),
)
CODE = (
    Control("code", "code", Words(), _CODE, {"open": True}, default=False),
    Control("code_of_tab", "code_of_tab", Words(), _STEPPED, {"open": True}, default=False),
    Control("code_of_job", "code_of_job", Words(), ("train",), {"open": True}, default=False),
)
FOCUS = (
    Control("kind", "kind", Words(), _LOOKED_AT),
    Control("layer", "layer", Number(), _LOOKED_AT, said_with=("head",)),
    Control("head", "head", Number(), _LOOKED_AT, said_with=("layer",)),
    Control("unit", "by", Words(), (*_STEPPED, "compare"), UNITS),
    Control("step", "step", Number(), _STEPPED, widget=None),
    Control("pin", "pin", Cell(), _STEPPED, widget=None),
    Control("colours", "colours", Words(), _STEPPED, ("fixed", "head", "log")),
    Control("head_order", "order", Words(), _STEPPED),
    Control("heads_page", "heads", Number(), _STEPPED),
    Control("overview_of", "overview", Words(), _STEPPED),
    Control("lines", "lines", Words(), _STEPPED, ("auto", "on", "off"), widget=None),
    Control("measure", "measure", Words(), ("explore", "open"), MEASURES, widget=None),
    Control("cause_mode", "without", Words(), ("explore", "open"), MODES, when={"measure": "cause"}),
    Control("other_measure", "which", Words(), ("explore", "open"), when={"measure": "more"}),
    Control("moment", "moment", Words(), ("replay",), widget=None),
    Control("position", "position", Number(), ("replay",)),
)
_OPENS_A_TAB = ("explain", "tint", "aligned_by", "change", "at", "prefix", "begin", "ban", "target")
_ON_TRIAL = {"tables": "On trial"}
_WITHOUT = {**_ON_TRIAL, "trial": QUESTIONS["knock-out"]}
_TITLES = Words(formerly={"Numbers": "Table"})
TABS = (
    Control("tables", "tables", _TITLES, ("explore",), said_with=_OPENS_A_TAB),
    Control("search_tables", "tables", _TITLES, ("search",), said_with=_OPENS_A_TAB),
    Control("open_tables", "tables", _TITLES, ("open",), said_with=_OPENS_A_TAB),
    Control("explained", "explain", Address(), _STEPPED, when=_INSIDE, is_late=True, widget=None),
    Control("what_if_how", "change", Words(), ("explore",), HOWS, is_late=True),
    Control("what_if_step", "at", Number(first=0), ("explore",), when={**_CHANGE, "what_if_how": HOWS["token"]}),
    Control("what_if_prefix", "prefix", Tokens(), ("explore",), when={"what_if_how": HOWS["token"]}, widget=None),
    Control("what_if_begin", "begin", Text(MOST_OF_A_CHANGE), ("explore",), when={"what_if_how": HOWS["begin"]}),
    Control("what_if_ban", "ban", Tokens(), ("explore",), when={"what_if_how": HOWS["ban"]}),
    Control("what_if_target", "target", Text(MOST_OF_A_CHANGE), ("explore",), when={"what_if_how": HOWS["target"]}),
    Control("tint", "tint", Words(), _STEPPED),
    Control("aligner", "aligner", Words(possible="a head of cross-attention, such as 2.1 or 2.1.reads"), _STEPPED),
    Control("aligned_by", "aligned_by", Words(), ("explore",)),
    Control("by_length_samples", "samples", Words(), ("explore",), SAMPLES, default=50),
    Control("trial", "question", Words(), ("explore",), QUESTIONS, when=_ON_TRIAL),
    Control("trial_samples", "texts", Words(), ("explore",), SAMPLES, default=50, when=_WITHOUT),
    Control("trial_texts", "lines_of_text", Text(MOST_TYPED), ("explore",), default="", when=_WITHOUT),
    Control("trial_how", "instead", Words(), ("explore",), INSTEAD, when=_WITHOUT),
    Control("trial_every", "every", Words(), ("explore",), {"head": True}, default=False, when=_WITHOUT),
    Control(
        "trial_together", "together", Words(), ("explore",), TOGETHER, when={**_ON_TRIAL, "trial": QUESTIONS["counter-proof"]}
    ),
    Control("export_format", "file", Words(), _STEPPED, FORMATS),
)
MASKS = (
    Control("lab_sources", "sources", Text(MOST_TYPED), ("masks",)),
    Control("lab_targets", "targets", Text(MOST_TYPED), ("masks",), default=""),
    Control("sentence", "sentence", Number(), ("masks",)),
    Control("mistake", "mistake", Words(), ("masks",)),
    Control("lab_edits", "mask", Text(MOST_OF_EDITS), ("masks",), default=""),
    Control("lab_many", "many", Text(MOST_TYPED), ("masks",), default=""),
    Control("lab_tab", "tab", Words(), ("masks",)),
    Control("lab_view", "show", Words(), ("masks",), ("batch", "sentence")),
    Control("lab_fill", "fill", Words(), ("masks",), FILLS),
    Control("lab_precision", "precision", Words(), ("masks",), PRECISIONS),
    Control("lab_row", "row", Number(), ("masks",)),
    Control("lab_click", "click", Words(), ("masks",), CLICKS),
    Control("lab_reach", "reach", Words(), ("masks",), REACHES),
)
SEARCH = (
    Control("beam", "beam", Number(first=0), ("search",), range(1, WIDEST + 1), default=5),
    Control("alpha", "alpha", Decimal(-10, 10), ("search",), default=0.6),
    Control("stop", "stop", Words(), ("search",), ("bound", "first", "never")),
    Control("search_length", "length", Number(first=0), ("search",), LENGTHS, default=AUTO_LENGTH),
    Control("refill", "refill", Words(), ("search",), {"on": True}, default=False),
    Control("chosen_node", "node", Number(), ("search", "open"), widget=None),
)


_PLACE = Address(
    re.compile(r"(encoder|decoder|cross)(\.[1-9]\d{0,3}){1,2}:[1-9]\d{0,3}", re.ASCII),
    "a head or a layer, and a position, as cross.1.2:3 or cross.1:3",
)


def _of_a_side(side: str) -> tuple[Control, ...]:
    """What a side of Compare has beside a text and a checkpoint."""
    compare, file, strategy = ("compare",), f"{side}_file", f"{side}_strategy"
    opened = Words(possible="a file that is opened in this session: open it again")
    by = {name: {file: A_RUN, strategy: name} for name in STRATEGIES}
    beam, seed = range(1, WIDEST + 1), range(LARGEST_SEED + 1)
    return (
        Control(file, file, opened, compare),
        Control(f"{side}_snapshot", f"{side}_snapshot", Words(), compare, when={file: A_RUN}),
        Control(strategy, strategy, Words(), compare, STRATEGIES, when={file: A_RUN}),
        Control(f"{side}_beam", f"{side}_beam", Number(0), compare, beam, default=5, when=by["beam"]),
        Control(f"{side}_temperature", f"{side}_temperature", Decimal(0, HOTTEST), compare, default=1.0, when=by["sample"]),
        Control(f"{side}_seed", f"{side}_seed", Number(0), compare, seed, default=0, when=by["sample"]),
        Control(f"{side}_edits", f"{side}_edits", Text(MOST_OF_EDITS), compare, default="", when={file: A_RUN}),
    )


COMPARE = (
    # A's text, checkpoint, kind, layer and head are those above.
    Control("b_text", "b_text", Text(MOST_TYPED), ("compare",), when={"b_file": A_RUN}),
    Control("b_checkpoint", "b_checkpoint", Words(), ("compare",), when={"b_file": A_RUN}),
    Control("b_layer", "b_layer", Number(), ("compare",)),
    Control("b_head", "b_head", Number(), ("compare",)),
    Control("scale", "scale", Words(), ("compare",), ("fixed", "largest")),
    *_of_a_side("a"),
    *_of_a_side("b"),
    Control("patch_by", "patch", Words(), ("compare",), PATCHED, is_late=True),
    Control("patch_layers", "patch_layers", Number(), ("compare",), range(1000), default=0),
    Control("patch_place", "patch_at", _PLACE, ("compare",), default="", widget=None),
)
SURVEY = (
    Control("survey", "survey", Words(), ("survey",)),
    Control("survey_beside", "with", Words(), ("survey",)),
    Control("survey_number", "number", Words(), ("survey",)),
    Control("survey_tables", "tables", _TITLES, ("survey",)),
)
_ONE_OF_ALL = Elsewhere("one name has all settings that are not the recipe's own: training_fields.py")
TRAIN = (
    Control("train_task", "task", Words(), ("train",)),
    Control("train_variant", "variant", Words(), ("train",)),
    *(Control(f"train_{name}", "set", _ONE_OF_ALL, ("train",)) for name in training_fields.FIELDS),
    Control("train_name", "name", Text(LONGEST_NAME), ("train",)),
    Control("train_beside", "beside", Words(), ("train",), when={"where": True}),
    Control("train_job", "job", Words(), ("train",)),
    Control("train_probe", "probe", Text(LONGEST_PROBE), ("train",), default=""),
)
OTHERS = (
    Control("open_name", "opened", Elsewhere("a link names the file it was made with, and cannot hold it"), ("open",)),
    Control(
        "asked", "asked", Elsewhere("names of what buttons made: on_demand.py"), ("explore", "masks", "compare"), widget=None
    ),
)
TABLE = (*BAR, *SWITCHES, *CODE, *FOCUS, *TABS, *MASKS, *SEARCH, *COMPARE, *TRAIN, *SURVEY, *OTHERS)
BY_KEY = {control.key: control for control in TABLE}
CONTROLS = {control.widget or control.key: control.name for control in TABLE if control.widget is not None}
"""The widgets, by their keys, and the name of each in a link."""
LONGEST = {control.widget or control.key: control.value.most for control in TABLE if isinstance(control.value, Text)}
"""Characters that a session keeps of what was typed, by the widget's key."""
KEYS = tuple(dict.fromkeys(control.name for control in TABLE))
"""All names in a link."""
