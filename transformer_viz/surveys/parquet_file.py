"""A survey as `survey.parquet`: a row for each head and statistic, the same bytes for the same survey."""

import io
from importlib.util import find_spec

from transformer_viz.errors import SurveyError
from transformer_viz.surveys.result import Survey

NAME = "survey.parquet"


def check_can_write() -> None:
    """Raises a SurveyError, before the work and not after it, where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise SurveyError(f"{NAME} is written by pyarrow, which is not installed: pip install pyarrow")


def parquet(survey: Survey) -> bytes:
    """The file, with the columns of `Survey.to_frame`."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.Table.from_pandas(survey.to_frame(), preserve_index=False)
    file = io.BytesIO()
    # What pandas would add says the versions of programs.
    parquet.write_table(rows.replace_schema_metadata(None), file)
    return file.getvalue()
