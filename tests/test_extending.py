"""What docs/extending.md promises: one new file, and it is there. In a copy of the package, in a process of its own.

And with a few lines of a script, which leave the package as it is.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import transformer_viz

ADDED = {
    "tasks/shout.py": """
        from transformer_viz.tasks.reverse import TASK as Reverse

        class Shout(Reverse):
            def answer(self, symbols):
                return tuple(symbols) * 2

        TASK = Shout
        """,
    "model/variants/plain.py": """
        '''As it is by default.

        Source: nobody.
        '''
        SETTINGS = {}
        """,
    "commands/hello.py": """
        def run(name: str = "you") -> None:
            '''Say hello.'''
            print(f"hello {name}")
        """,
    "attribution/methods/weights.py": """
        import torch
        from transformer_viz.attribution.methods import Method

        def of(run, kind, mode):
            return torch.from_numpy(run.trace.attentions[kind].weights)

        METHOD = Method(of, title="what attention says", help="What attention itself says", cannot="what it is for", order=9)
        """,
    "figures/row_sums.py": """
        import plotly.graph_objects as go

        from transformer_viz.addresses import find_map
        from transformer_viz.figures.theme import Style

        def row_sums(trace, head="cross", *, style=Style()):
            kind, layer, number = find_map(head, trace.grid)
            return go.Figure(go.Bar(y=trace.attentions[kind].weights[layer, number].sum(-1)))
        """,
    "views/explore/notes_tab.py": """
        TITLE, ORDER = "Notes", 9
        def show(shown): pass
        """,
    "views/masks/notes_tab.py": """
        TITLE, ORDER = "Notes", 9
        def show(setup): pass
        """,
    "views/notes/page.py": """
        TITLE, ICON, ORDER = "Notes", ":material/edit:", 8
        def show(): pass
        """,
}
SEEN = """
import json
import transformer_viz as tv
from transformer_viz import commands, tasks, views
from transformer_viz.attribution.methods import METHODS
from transformer_viz.export.drawings import WHATS
from transformer_viz.model import variants
from transformer_viz.views.explore.tables import OF_A_FILE, TABS
from transformer_viz.views.masks.page import TABS as MASKS_TABS

weights = [[[[0.75, 0.25], [0.5, 0.5]]]]
trace = tv.Trace.from_arrays(cross=weights, source_tokens=["a", "b"], target_tokens=["x", "y"])
figure, saved = tv.figures.row_sums(trace), tv.export.save(trace, "run.html", "row_sums")
print(json.dumps({
    "task": tasks.make_task("shout").answer(("a", "b")),
    "variant": "plain" in variants.names(),
    "command": commands.main(["hello", "--name", "Ada"]),
    "method": METHODS["weights"].title,
    "figure": [list(map(float, figure.data[0].y)), "row_sums" in WHATS, saved.stat().st_size > 1000],
    "tabs": ["Notes" in TABS, "Notes" in OF_A_FILE, "Notes" in MASKS_TABS],
    "page": "Notes" in [page.TITLE for page in views.pages()],
}))
"""


@pytest.mark.slow
def test_each_is_one_new_file(tmp_path: Path) -> None:
    package = tmp_path / "transformer_viz"
    shutil.copytree(Path(transformer_viz.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, code in ADDED.items():
        path = package / name
        path.parent.mkdir(exist_ok=True)
        indent = " " * 8
        path.write_text("\n".join(line.removeprefix(indent) for line in code.splitlines()), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", SEEN], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, found = done.stdout.splitlines()[0], json.loads(done.stdout.splitlines()[-1])
    assert said == "hello Ada"
    assert found == {
        "task": ["a", "b", "a", "b"],
        "variant": True,
        "command": 0,
        "method": "what attention says",
        "figure": [[1.0, 1.0], True, True],
        "tabs": [True, True, True],
        "page": True,
    }


TWICE = """
from transformer_viz.tasks.letters import Letters

class Twice(Letters):
    name, about, all_examples = "twice", "writes each letter twice", ()
    max_target_length = 64

    def answer(self, symbols):
        return [letter for letter in symbols for _ in range(2)]

    def alignment(self, symbols, n_steps):
        return [t // 2 + 1 if t < 2 * len(symbols) else None for t in range(n_steps)]

TASK = Twice
"""
TOLD = """
weights = trace.attentions["decoder"].weights[0, 0]
print(json.dumps({
    "attended": (tv.attribute(model, trace, "attended").values == trace.attentions["cross"].weights).all().item(),
    "previous": abs(tv.analysis.alignment(trace).at("decoder.1.1").previous - weights.diagonal(-1).mean()).item() < 1e-6,
    "surveyed": tv.survey(model, ["hello", "planet"], verdict_texts=0).at("decoder.1.1", "previous").n,
    "trained": tv.load_checkpoint("./twice").task.answer("ab"),
}))
"""


@pytest.mark.slow
def test_a_script_adds_to_the_package_as_it_is(tmp_path: Path) -> None:
    document = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.+?)```", document, flags=re.DOTALL)
    script = script.replace("/home/me/my_tasks", str(tmp_path)).replace('"--steps", "20"', '"--steps", "1"')
    (tmp_path / "twice.py").write_text(TWICE, encoding="utf-8")
    code = f"import json\n{script}\n{TOLD}"
    env = {**os.environ, "PYTHONPATH": str(Path(transformer_viz.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"attended": True, "previous": True, "surveyed": 2, "trained": ["a", "a", "b", "b"]}
