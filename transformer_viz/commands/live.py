"""The command `live`."""

from pathlib import Path
from typing import Annotated, Literal

from transformer_viz.atomic_files import check_target, write_export
from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import Checkpoint, Force, terminal_text
from transformer_viz.errors import OptionError
from transformer_viz.numbers_in_words import bytes_words


def run(
    output: Annotated[Path, "where to write: a name in .html", Option("-o")],
    checkpoint: Checkpoint = "reverse",
    source: Annotated[str | None, "the text with which the page opens (the task's first example)"] = None,
    precision: Annotated[Literal["int16", "float32"], "how weights are stored: rounded to 16 bits, or as they are"] = "int16",
    theme: Annotated[Literal["auto", "light", "dark"], "auto follows the reader's system"] = "auto",
    large: Annotated[bool, "bigger letters, for a projector"] = False,
    without_plotlyjs: Annotated[bool, "load plotly.js from the same folder, and write it there if it is missing"] = False,
    force: Force = False,
) -> None:
    """Make one HTML file that runs the model: whoever opens it types a text and sees every head of every step.

    It needs a browser of 2023 or later and nothing else, and asks nothing of the network. Checkpoints of this program of up to
    20 million parameters can be in such a page.
    """
    if output.suffix.lower() != ".html":
        raise OptionError(f"{output.name} does not end in .html, as a page does.")
    check_target(output, force=force)

    from transformer_viz.checkpoints import load_checkpoint
    from transformer_viz.live.page import live_page
    from transformer_viz.viewer import plotly_js

    loaded = load_checkpoint(checkpoint, device="cpu")
    plotlyjs = False if without_plotlyjs else "packed"
    live_page(loaded, output, source, precision=precision, theme=theme, large=large, plotlyjs=plotlyjs)
    plotly = plotly_js.path()
    written, beside = [output], output.with_name(plotly.name)
    if without_plotlyjs and not beside.exists():
        write_export(beside, plotly.read_bytes())
        written.append(beside)
    for path in written:
        print(terminal_text(f"{path}: {bytes_words(path.stat().st_size)}"))
