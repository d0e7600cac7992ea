"""Loads folders that somebody has spoiled and writes with them, in a process of its own.

`python hostile_program.py SOUND FOLDER …`; SOUND is one that nobody has spoiled: loading it brings the libraries into memory.
Prints a line of JSON for each: what came of it, and the processor seconds and bytes that it took. A network that is asked for
ends the program, and so does a kernel: a package of that name is there.
"""

import json
import os
import resource
import socket
import sys
import time
from typing import Any

from tests.memory import forget_peak, peak


def forbidden(*given: Any, **options: Any) -> None:
    os.write(2, b"the network was asked for\n")
    os._exit(3)


def outcome(folder: str) -> str:
    import transformer_viz as tv
    from transformer_viz.errors import TransformerVizError
    from transformer_viz.model_options import ModelOptions

    try:
        model: Any = tv.load_model(folder, "cpu")
    except TransformerVizError as error:
        return f"refused: {error}"
    try:
        tv.decode(model, "w1 w2 the house", max_length=4)
    except TransformerVizError as error:
        said = f"loaded, but: {error}"
    else:
        said = "usable"
    try:
        tv.decode(
            model.with_options(ModelOptions(generation=False)) if model.options.generation else model, "w1 e", max_length=2
        )
    except TransformerVizError as error:
        said += f" | {error}"
    return said


def main() -> None:
    for place, names in ((socket.socket, ("connect", "connect_ex", "bind", "sendto")), (socket, ("getaddrinfo",))):
        for name in names:
            setattr(place, name, forbidden)
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, resource.RLIM_INFINITY))
    assert outcome(sys.argv[1]) == "usable"
    for folder in sys.argv[2:]:
        bytes_before, begun = forget_peak(), time.process_time()
        try:
            said = outcome(folder)
        except BaseException as error:
            said = f"FAILED: {type(error).__name__}: {str(error)[:300]}"
        took = {"seconds": time.process_time() - begun, "bytes": peak() - bytes_before}
        print(json.dumps({"folder": folder, "said": said, **took}), flush=True)


if __name__ == "__main__":
    main()
