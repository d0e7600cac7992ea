"""Run by `test_fuzz.py` in a process of its own: `python -m tests.fuzz.program {checkpoints,traces} FOLDER N SEED`.

Prints as JSON what became of the files.
"""

import json
import os
import resource
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from transformer_viz import checkpoints

_MOST_ADDRESSES = 8 * 2**30


def main(kind: str, folder: str, n: str, seed: str) -> None:
    # Nothing that a file makes us do may take the machine down with it.
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    os.environ["TRANSFORMER_VIZ_DEBUG"] = "1"
    os.chdir(folder)
    with patch.object(checkpoints, "folders", lambda: [Path(folder) / "home"]):
        watch = import_module(f"tests.fuzz.{kind}").run(Path(folder), int(n), int(seed), budget=True)
    print(json.dumps(watch.outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
