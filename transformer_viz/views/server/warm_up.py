"""Does while the browser is still starting what the first visitor would wait for: imports, weights, a first run."""

import gc
import threading
from contextlib import suppress

LONGEST = 30.0
_threads: list[threading.Thread] = []


def begin() -> None:
    """In a thread of its own, as the server starts."""
    _threads[:] = [threading.Thread(target=_get_ready, daemon=True)]
    _threads[0].start()


def wait() -> None:
    """Until it is done, at most `LONGEST` seconds: a page that imports the same beside it would be no earlier."""
    for thread in _threads:
        thread.join(LONGEST)


def _get_ready() -> None:
    # What fails here fails again when somebody comes, and is said to them.
    with suppress(Exception):
        from transformer_viz.checkpoints import load_checkpoint
        from transformer_viz.tracing.decode import decode
        from transformer_viz.views import pages
        from transformer_viz.views.components import bar, term_tips

        pages()
        term_tips.meanings()
        decode(load_checkpoint(bar.DEFAULT_CHECKPOINT), bar.DEFAULT_TEXT)
    # Or the garbage collector would look at 300,000 imported objects again and again, 150 ms each time.
    gc.collect()
    gc.freeze()
