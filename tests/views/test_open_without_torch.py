"""A trace file is looked at where torch cannot even be imported: the picture, every tab, a beam search's tree."""

import subprocess
import sys
from pathlib import Path

import pytest

from transformer_viz import decode
from transformer_viz.trace.store import to_bytes

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''
import sys
from pathlib import Path

import pytest

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "safetensors"):
            raise ImportError(name + " is not here")

sys.meta_path.insert(0, NoTorch())
from streamlit.testing.v1 import AppTest
from tests.views.drawn import pictures
from tests.views.viewer import content, weights

from transformer_viz.views.explore.tables import OF_A_FILE

SCRIPT = """
from transformer_viz.views.explore import trace_file
from transformer_viz.views.state import display_options

display_options.popover("explore")
trace_file.show()
"""

for file in map(Path, sys.argv[1:]):
    at = AppTest.from_string(SCRIPT, default_timeout=60).run()
    assert not at.exception, at.exception
    at.file_uploader[0].set_value([(file.name, file.read_bytes(), "")]).run()
    for tab in OF_A_FILE:
        at.session_state["explore_tab"] = tab
        at.run()
        assert not at.exception and not at.error, (tab, at.exception, at.error)
        print(file.stem, tab, len(pictures(at)))
    for kind in content(at)["kinds"]:
        print(file.stem, kind, *weights(at, kind).shape)
    at.session_state["explore_tab"], at.session_state["code_of_tab"] = "Export", True
    at.run()
    for made in ("csv", "npz", "focus"):
        at.button(key=f"data-{made}").click().run()
        assert not at.exception and at.code and at.get("download_button"), made
assert "torch" not in sys.modules
'''


@pytest.mark.slow
def test_everything_that_is_drawn_of_a_file_needs_no_torch(tiny, tmp_path):
    runs = {strategy: decode(tiny, "hello", strategy=strategy) for strategy in ("greedy", "beam")}
    for strategy, run in runs.items():
        (tmp_path / f"{strategy}.npz").write_bytes(to_bytes(run))
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *map(str, tmp_path.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    # The heads' tiles, or three masks; the tree of a search. All else is drawn by the viewer, of the numbers that it is sent.
    want = {"Inside": 0, "Heads": 1, "Masks": 3, "Export": 0}
    said = {f"greedy {tab} {n}" for tab, n in want.items()} | {f"beam {tab} {n + 1}" for tab, n in want.items()}
    for strategy, run in runs.items():
        said |= {" ".join(map(str, (strategy, kind, *run.attentions[kind].weights.shape))) for kind in run.kinds}
    assert said <= set(done.stdout.splitlines())
