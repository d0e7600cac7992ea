"""File names that say what is in the file and are possible everywhere."""

import re

from transformer_viz.analysis.sentences import step_name
from transformer_viz.export.content import View
from transformer_viz.trace.trace import Trace

_LONGEST = 40
_TABLES = ("csv", "parquet", "npz", "html")


def file_name(trace: Trace, format: str, now: View) -> str:
    """`attention-hello-reverse-cross-layer2-head1-step4.png`; what holds the whole run names no head. Counts from 1."""
    parts = ["attention", _plain(trace.source) or "run", _plain(str(trace.made_by.get("checkpoint") or ""))]
    if format not in _TABLES:
        head = now.head if isinstance(now.head, str) else f"head{now.head + 1}"
        parts += [now.kind, f"layer{now.layer + 1}", head, f"{step_name(trace)}{now.step + 1}"]
    return "-".join(filter(None, parts)) + f".{format}"


def _plain(text: str) -> str:
    """ASCII letters, digits and `_`; anything else is `_`, and a long text is cut."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text[:_LONGEST]).strip("_")
