"""Every weight of a run as a table, and the run itself, as bytes of a file."""

import importlib.util
import io
from typing import Literal, get_args

from transformer_viz.errors import ExportError, OptionError, listed
from transformer_viz.trace.store import to_bytes
from transformer_viz.trace.trace import Trace

TableFormat = Literal["csv", "parquet", "npz"]
TABLE_FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)


def table(trace: Trace, format: str = "csv") -> bytes:
    """The tidy frame, one row a weight, as CSV (UTF-8) or Parquet; or the whole run as `.npz`.

    Layers, heads and positions count from 0, as in `trace.to_frame()`.

    Raises:
        OptionError: no such format.
        ExportError: Parquet without pyarrow.
    """
    if format not in TABLE_FORMATS:
        raise OptionError(f"format {format!r} is no table; choose one of {listed(TABLE_FORMATS)}")
    if format == "npz":
        return to_bytes(trace)
    frame = trace.to_frame()
    if format == "csv":
        return frame.to_csv(index=False).encode()
    if importlib.util.find_spec("pyarrow") is None:
        raise ExportError("Parquet needs pyarrow: pip install pyarrow. CSV holds the same numbers.")
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()
