"""ES modules as one script: what it holds, in which order, and what is refused."""

import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from tests.node import node
from transformer_viz.viewer.modules import FOLDER, ModuleError, one_script, script

ROOT = FOLDER.parent


def made(folder: Path, **texts: str) -> Path:
    """Writes modules, the first of which is the entry."""
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.js"


@needs("playwright", "libatomic1")
def test_a_script_does_what_its_modules_do(tmp_path: Path) -> None:
    entry = made(
        tmp_path,
        entry='import { twice } from "./twice.js";\nimport {\n  Counter,\n  START,\n} from "./counter.js";\n'
        "console.log(twice(START), new Counter().next());\n",
        twice='import { START } from "./counter.js";\nexport const twice = (n) => 2 * n + 0 * START;\n',
        counter="// import and export are named in a comment\nexport const START = 21;\n"
        "export class Counter {\n  next() {\n    return 'export me';\n  }\n}\n"
        "export async function later() {}\nexport function* all() {}\n",
    )
    program = node()
    assert program is not None
    bundle = tmp_path / "bundle.js"
    bundle.write_text(one_script(entry), encoding="utf-8")
    for file in (bundle, entry):
        done = subprocess.run([program, file], capture_output=True, text=True, check=True)
        assert done.stdout == "42 export me\n"
    assert one_script(entry).count("START = 21") == 1
    assert "a comment" not in one_script(entry)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"a": "export default 1;\n"}, "export default"),
        ({"a": "const b = 1;\nexport { b };\n"}, r"export \{ b \}"),
        ({"a": 'import b from "./b.js";\n', "b": ""}, "import b"),
        ({"a": 'import * as b from "./b.js";\n', "b": ""}, "import \\*"),
        ({"a": 'import { b as c } from "./b.js";\n', "b": "export const b = 1;\n"}, "b as c"),
        ({"a": 'import { c } from "./b.js";\n', "b": "export const b = 1;\n"}, "imports c, which b.js does not export"),
        ({"a": 'import { c } from "./b.js";\n', "b": "const c = 1;\n"}, "imports c, which b.js does not export"),
        ({"a": 'const b = import("./b.js");\n', "b": ""}, "import"),
        ({"a": 'export * from "./b.js";\n', "b": ""}, "export"),
        ({"a": 'import { b } from "./b.js";\nfunction one() {}\n', "b": "export const b = 1;\nconst one = 1;\n"}, "called one"),
        (
            {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\nexport const b = 1;\n'},
            "a.js → b.js → a.js",
        ),
        ({"a": "const [b, c] = [1, 2];\n"}, "a declaration of its own"),
    ],
)
def test_what_cannot_stand_in_one_script_is_refused(tmp_path: Path, texts: dict[str, str], words: str) -> None:
    with pytest.raises(ModuleError, match=words):
        one_script(made(tmp_path, **texts))


def test_all_modules_of_a_page_come_before_what_needs_them() -> None:
    whole = script("live.js")
    places = [whole.index(f"class {name} ") for name in ("Kind", "Viewer", "Page", "LivePage")]
    assert places == sorted(places)
    assert whole.count("class Viewer ") == 1


def test_every_module_has_its_types_checked_by_an_editor() -> None:
    files = [*FOLDER.glob("*.js"), *(ROOT / "live" / "engine").glob("*.js")]
    assert len(files) > 20
    assert [file.name for file in files if not file.read_text(encoding="utf-8").startswith("// @ts-check\n")] == []
