"""A run as a picture that moves: the card of the viewer's *Share*, drawn by the same scripts in a browser of the system."""

import asyncio
import base64
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from transformer_viz.addresses import AttentionAddress
from transformer_viz.atomic_files import check_target, write_export
from transformer_viz.errors import OptionError, join_names
from transformer_viz.export.assets import FOLDER
from transformer_viz.export.content import content, focus_of, view
from transformer_viz.export.pages import PAGE_STYLES, page
from transformer_viz.figures.files import LARGEST_SIDE, drawing_browser
from transformer_viz.language import speaking
from transformer_viz.trace.trace import Trace

CardShape = Literal["wide", "square"]
SHAPES: dict[CardShape, tuple[int, int]] = {"wide": (16, 9), "square": (1, 1)}
WIDTH = 800
OF_A_GIF = {"head", "theme", "width", "language"}
"""The keywords of `save` that a moving picture has too."""
_MOST_SECONDS = 60.0
_PATIENCE = 120


def gif(
    trace: Trace,
    head: str | AttentionAddress | None = None,
    *,
    theme: Literal["auto", "light", "dark"] = "light",
    shape: CardShape = "wide",
    width: int = WIDTH,
    seconds: float | None = None,
    language: str | None = None,
) -> bytes:
    """Makes a GIF in which one head looks, step by step, and at the end all its looks are seen at once.

    A Chrome or Chromium of the system draws it, in some seconds.

    Args:
        trace: a run of at most 32 source tokens that writes at most 32.
        head: such as `cross.2.3` or `cross.2.mean`; by default the head that looks best at the right tokens.
        theme: `light` or `dark`; `auto` is light.
        shape: `wide` is 16 to 9, `square` as high as wide.
        width: in pixels.
        seconds: of a step; by default the shorter the more steps there are, about six seconds in all.
        language: as in `html`.

    Returns:
        The bytes of a GIF file that repeats for ever.

    Raises:
        OptionError: the run has no such head, an option is impossible, or no card has room for the run.
        ExportError: kaleido or a browser is missing, or the browser failed; the message says what to install.
    """
    now = view(trace, head)
    if shape not in SHAPES:
        raise OptionError(f"shape={shape!r} is not possible; choose one of {join_names(get_args(CardShape))}")
    if not 100 <= width <= LARGEST_SIDE // 4:
        raise OptionError(f"width={width} is not possible; it is 100 to {LARGEST_SIDE // 4} pixels")
    if seconds is not None and not 0.05 <= seconds <= _MOST_SECONDS:
        raise OptionError(f"seconds={seconds:g} is not possible; a step takes 0.05 to {_MOST_SECONDS:g} seconds")
    across, down = SHAPES[shape]
    looks = {"width": width, "height": round(width * down / across), "dark": theme == "dark"}
    options = {**looks, "msOfStep": None if seconds is None else 1000 * seconds}
    title = [f"{trace.source} → {trace.text}", str(trace.made_by.get("checkpoint") or "")]
    with speaking(language):
        data = content(trace, theme=theme, large=False, with_answer=False)
        data |= {"focus": focus_of(trace, now), "aligner": None, "saved": " · ".join(filter(None, title))}
        card = page("page.html", data, FOLDER / "film.js", PAGE_STYLES)
    with drawing_browser("GIF"), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "film.html"
        file.write_text(card, encoding="utf-8")
        with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
            made = thread.submit(lambda: asyncio.run(_film(file.as_uri(), options))).result()
    if made is None:
        raise OptionError(
            f"{_size(trace)} are not possible in a moving picture: it has room for 32 source and 32 written tokens of a run "
            "that writes step by step. A page has room for any"
        )
    return base64.b64decode(made)


def animation(trace: Trace, path: str | PathLike[str], *, force: bool = False, **options: Any) -> Path:
    """Writes a run as a GIF, to be put into a slide.

    Args:
        trace: the run.
        path: where to, with the ending `.gif`; the folder must be there.
        force: replace a file that is there.
        options: as in `gif`.

    Returns:
        The path.

    Raises:
        OptionError: another ending, or as in `gif`.
        ExportError: the file is there already, or cannot be made or written.

    Example:
        >>> import transformer_viz as tv
        >>> from transformer_viz import export
        >>> export.animation(tv.decode(tv.load_model("reverse"), "hello"), "hello.gif")  # doctest: +SKIP
        PosixPath('hello.gif')
    """
    path = Path(path)
    check_target(path, force=force)
    if path.suffix.lower() != ".gif":
        raise OptionError(f"{path.name} does not end in .gif; a moving picture is a GIF")
    write_export(path, gif(trace, **options))
    return path


async def _film(address: str, options: dict[str, Any]) -> str | None:
    """Draws what the page at this address makes of a run, in a browser that is closed again."""
    import choreographer

    async with asyncio.timeout(_PATIENCE), choreographer.Browser(headless=True) as browser:
        tab = await browser.create_tab("")
        await tab.send_command("Page.enable")
        loaded = tab.subscribe_once("Page.loadEventFired")
        await tab.send_command("Page.navigate", {"url": address})
        await loaded
        asked = {"expression": f"film({json.dumps(options)})", "awaitPromise": True, "returnByValue": True}
        answer = await tab.send_command("Runtime.evaluate", asked)
    result = answer["result"]
    if "exceptionDetails" in result:
        raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "its page failed"))
    return result["result"].get("value")


def _size(trace: Trace) -> str:
    return f"{len(trace.source_tokens)} source tokens and {trace.n_steps} steps"
