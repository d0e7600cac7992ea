"""What is sent to a browser of a figure, read back."""

import base64
import json
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go


def numbers(value: Any) -> np.ndarray:
    """An array of a figure's JSON, typed base64 or list, as float64."""
    if isinstance(value, dict):
        flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return flat.reshape([int(n) for n in str(value.get("shape", len(flat))).split(",")]).astype(np.float64)
    return np.array(value, dtype=np.float64)


def spec(figure: go.Figure) -> dict[str, Any]:
    """What is sent to the browser."""
    return json.loads(figure.to_json())


def texts(value: Any) -> list[str]:
    """Every string in a figure that Plotly could render as text."""
    if isinstance(value, dict):
        return [t for key, entry in value.items() if key not in ("bdata", "hovertemplate", "template") for t in texts(entry)]
    if isinstance(value, list):
        return [t for entry in value for t in texts(entry)]
    return [value] if isinstance(value, str) else []


def assert_no_markup(figure: go.Figure) -> None:
    """Our own bold, superscript and line breaks around an escaped token are all the markup there is."""
    for text in texts(spec(figure)):
        bare = re.sub(r"</?(b|sup)>|<br>", "", text) if not re.search(r"<b><b>|<b>\$", text) else text
        assert not {"<", "$", "\u202e"} & set(bare), text


def heatmaps(figure: go.Figure) -> list[Any]:
    return [drawn for drawn in figure.data if drawn.type == "heatmap"]


def axis_of(figure: go.Figure, drawn: Any, which: str) -> Any:
    """The axis `x` or `y` on which something is drawn."""
    return figure.layout[f"{which}axis{(drawn[f'{which}axis'] or which)[1:]}"]
