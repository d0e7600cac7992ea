"""The masks of a configuration as a file: a page, a picture or a table."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from transformer_viz.analysis.mask_parts import MaskPart
from transformer_viz.config_masks.result import PAD, ConfigMasks
from transformer_viz.errors import OptionError, join_names
from transformer_viz.export.pages import PlotlyJs, figure_html
from transformer_viz.export.saving import picture
from transformer_viz.figures.files import PICTURE_FORMATS
from transformer_viz.figures.masks import mask_grid
from transformer_viz.figures.theme import Style

FORMATS = ("html", *PICTURE_FORMATS, "csv", "json")
_COLUMNS, _WIDTH = 3, 1400


def masks_figure(masks: ConfigMasks, *, columns: int = _COLUMNS, style: Style = Style()) -> Any:
    """Draws the masks of a configuration: a row of pictures for each text, one for each mask that layers share, and behind each
    query how many keys it sees.

    Args:
        masks: from `tv.masks`.
        columns: pictures side by side.
        style: theme and size.
    """
    columns = max(1, min(columns, len(masks.groups)))
    parts = [[_counted(part) for part in masks.parts(text)] for text in range(len(masks.tokens))]
    return mask_grid(parts, masks.names, columns=columns, style=style)


def _counted(part: MaskPart) -> MaskPart:
    """The same with the number of keys that each query sees behind its label; padding asks for nothing."""
    sees: Sequence[int] = (part.reasons == 0).sum(-1).tolist()
    counted = [token if token == PAD else f"{token}({n})" for token, n in zip(part.queries, sees, strict=True)]
    return replace(part, queries=tuple(counted))


def masks_bytes(masks: ConfigMasks, format: str, *, style: Style = Style(), plotlyjs: PlotlyJs = True) -> bytes:
    """Makes a file of the masks of a configuration.

    Args:
        masks: from `tv.masks`.
        format: `html` is a page, `png`, `svg` and `pdf` are pictures, `csv` is a table with a row for each text, layer and
            query, and `json` all cells.
        style: theme and size of a page or a picture.
        plotlyjs: of a page, as in `html`.

    Raises:
        OptionError: no such format.
        ExportError: a picture without what draws it.
    """
    if format not in FORMATS:
        raise OptionError(f"format {format!r} is not known; choose one of {join_names(FORMATS)}")
    if format == "csv":
        table = io.StringIO()
        writer = csv.DictWriter(table, list(masks.rows()[0]))
        writer.writeheader()
        writer.writerows(masks.rows())
        return table.getvalue().encode()
    if format == "json":
        return json.dumps(masks.to_json()).encode()
    figure = masks_figure(masks, style=style)
    if format == "html":
        return figure_html(figure, title=f"Masks of {masks.name}", plotlyjs=plotlyjs).encode()
    return picture(figure, format, width=_WIDTH)
