"""What the first visitor would wait for, done while the browser is still starting: imports, weights, a first run."""

import gc
import threading
from contextlib import suppress

LONGEST = 30.0
_is_ready = threading.Event()
_is_ready.set()


def begin() -> None:
    """In a thread of its own, as the server starts."""
    _is_ready.clear()
    threading.Thread(target=_get_ready, daemon=True).start()


def wait() -> None:
    """Until it is done, at most `LONGEST` seconds; at once where nothing was begun.

    A page that imports the same beside it would be no earlier. But where a device hangs, pages still come.
    """
    _is_ready.wait(LONGEST)


def _get_ready() -> None:
    try:
        # What fails here fails again when somebody comes, and is said to them.
        with suppress(Exception):
            from transformer_viz.checkpoints import load_checkpoint
            from transformer_viz.tracing.decode import decode
            from transformer_viz.views import pages
            from transformer_viz.views.components import bar

            pages()
            decode(load_checkpoint(bar.DEFAULT_CHECKPOINT), bar.DEFAULT_TEXT)
        # What is imported stays. The garbage collector would look at its 300,000 objects again and again, 150 ms each time,
        # in which the server sends nothing.
        gc.collect()
        gc.freeze()
    finally:
        _is_ready.set()
