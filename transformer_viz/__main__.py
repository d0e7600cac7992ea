"""`python -m transformer_viz`.

A signal always ends it without a traceback, with exit code 128 + the signal's number. While a command runs, the signal becomes
an exception, so that the command cleans up. During an import there is nothing to clean up, and an exception might be swallowed
or changed into another, so the process ends at once.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def run() -> None:
    """Entry point: exits with the command's code."""
    code = 130
    try:
        _listen()
        code = _command()
    except KeyboardInterrupt:  # from before somebody listened
        pass
    sys.exit(code)


def _command() -> int:
    import io

    from transformer_viz.commands import main

    # A terminal or pipe that is not UTF-8 gets an escape instead of an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return main()


def _listen() -> None:
    import signal

    for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
        # What is to be ignored, as a shell wants it of a program in the background, stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: "FrameType | None") -> None:
    import os
    import signal

    if not _is_at_work(frame):
        os._exit(128 + number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _is_at_work(frame: "FrameType | None") -> bool:
    """Tells whether a command is running that may have something to clean up, outside its imports."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib."):
        if frame.f_code is _command.__code__:
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    run()
