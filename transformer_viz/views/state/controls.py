"""Every widget of every page that says what is on the screen, and its key in a link.

A test goes through all pages and fails for a widget that is neither here nor, with a reason, among the exceptions.
A widget whose key in the session is new needs three things: a line here, its key in `link.KEYS`, and the reading and
writing in the part that draws it.
"""

from transformer_viz.views.train.form import FIELDS

_OF_A_SIDE = [f"{side}_{name}" for side in "ab" for name in ("file", "snapshot", "strategy", "beam", "temperature", "seed")]
CONTROLS: dict[str, str] = {
    # the bar
    "text": "text",
    "checkpoint": "checkpoint",
    "device": "device",
    "projector": "projector",
    "hide_answer": "answer",
    # the code, of the page, of the open tab below a step player, of a training
    "code": "code",
    "code_of_tab": "code_of_tab",
    "code_of_job": "code_of_job",
    # the focus; its step, and Replay's moment, are the player's
    "kind": "kind",
    "layer": "layer",
    "head": "head",
    "position": "position",
    # the tabs of Explore and Search
    "tables": "tables",
    "search_tables": "tables",
    "what_if_how": "change",
    "what_if_step": "at",
    "what_if_begin": "begin",
    "what_if_ban": "ban",
    "what_if_target": "target",
    "tint": "tint",
    "by_length_samples": "samples",
    "export_format": "file",
    # Masks
    "lab_sources": "sources",
    "lab_targets": "targets",
    "sentence": "sentence",
    "mistake": "mistake",
    "lab_edits": "mask",
    "lab_tab": "tab",
    "lab_view": "show",
    "lab_fill": "fill",
    "lab_precision": "precision",
    "lab_row": "row",
    "lab_click": "click",
    "lab_reach": "reach",
    # Search
    "beam": "beam",
    "alpha": "alpha",
    "stop": "stop",
    "search_node": "node",
    # Compare; A's text, checkpoint, kind, layer and head are those above
    "b_text": "b_text",
    "b_checkpoint": "b_checkpoint",
    "b_layer": "b_layer",
    "b_head": "b_head",
    "scale": "scale",
    **{name: name for name in _OF_A_SIDE},
    # Open
    "open_name": "opened",
    "open_tables": "tables",
    # Train
    "train_task": "task",
    "train_variant": "variant",
    **{f"train_{name}": "set" for name in FIELDS},
    "train_name": "name",
    "train_job": "job",
    "train_probe": "probe",
}
