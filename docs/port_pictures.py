"""Makes the two pictures of `port-masks.md`: `python -m docs.port_pictures`."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plotly.subplots import make_subplots

import transformer_viz as tv
from tests.mask_checks.ports import Decoder
from transformer_viz.export.masks_page import masks_bytes
from transformer_viz.export.saving import picture

IMAGES = Path(__file__).resolve().parent / "images"
GEMMA = {"model_type": "gemma3_text", "num_hidden_layers": 6, "sliding_window": 4, "hidden_size": 64, "vocab_size": 100}
N = 7
FAULTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("1. window one too wide", "window too wide", {"window": 3}),
    ("3. cache knows no window", "cache without window", {"window": 3}),
    ("4. prefix seen too late", "prefix too short", {"prefix": 4}),
)
_SEEN, _HIDDEN, _WRONG = "#3f78a8", "#eef2f6", "#c8450c"


def seen(port: Decoder) -> np.ndarray:
    """What each query sees in the first layer, read token by token, bool (query, key)."""
    rows = [port.seen(0, n, torch.ones(1, n + 1, dtype=torch.bool))[0, -1] for n in range(N)]
    return torch.stack([torch.nn.functional.pad(row, (0, N - len(row))) for row in rows]).numpy()


def at_once(port: Decoder) -> np.ndarray:
    """The same in one pass."""
    return port.seen(0, 0, torch.ones(1, N, dtype=torch.bool))[0].numpy()


def main(folder: Path) -> None:
    """Writes both as PNG."""
    (folder / "config-masks.png").write_bytes(masks_bytes(tv.masks(GEMMA, lengths=[8, 5]), "png"))
    titles = [title for title, _, _ in FAULTS] + ["what it should be"] * len(FAULTS)
    figure = make_subplots(2, len(FAULTS), subplot_titles=titles, vertical_spacing=0.14, horizontal_spacing=0.08)
    places = [str(place) for place in range(1, N + 1)]
    for column, (_, fault, settings) in enumerate(FAULTS, 1):
        read = seen if "cache" in fault else at_once
        right, port = at_once(Decoder(**settings)), read(Decoder(fault, **settings))
        for row, cells in enumerate((port, right), 1):
            z = np.where(cells, 1, 0) + 2 * (cells != right)  # 2: hidden and should not be, 3: seen and should not be
            colours = [[0, _HIDDEN], [0.25, _HIDDEN], [0.25, _SEEN], [0.5, _SEEN], [0.5, _WRONG], [1, _WRONG]]
            text = np.where(z == 2, "hidden", np.where(z == 3, "seen", ""))
            figure.add_heatmap(
                row=row, col=column, x=places, y=places, z=z, zmin=-0.5, zmax=3.5, colorscale=colours, showscale=False,
                xgap=1, ygap=1, text=text, texttemplate="%{text}", textfont={"size": 10, "color": "white"},
            )  # fmt: skip
    figure.update_yaxes(autorange="reversed", type="category", title="query", title_standoff=4)
    figure.update_xaxes(type="category", title="key", title_standoff=4)
    looks = {"size": 13, "color": "#1b222c"}
    figure.update_layout(width=960, height=700, template="plotly_white", font=looks, margin={"t": 40, "r": 20})
    (folder / "port-faults.png").write_bytes(picture(figure, "png", width=960, height=700))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
