"""Writes the project's site, a folder of static files for GitHub Pages or a static Hugging Face Space. `make site`.

Every link is relative: the folder also works under a longer address, and from a disk without any server.
"""

import shutil
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import transformer_viz as tv
from docs.demonstrations import DEMONSTRATIONS
from transformer_viz.learn.lesson import read_lessons
from transformer_viz.learn.sheet import sheet_html
from transformer_viz.viewer import plotly_js

DOCS = Path(__file__).resolve().parent
MODELS = {
    "reverse": "Writes a word backwards. Nobody told it how: see which letter each head looks at.",
    "german": "Translates German sentences about a small world. Where the verb comes last, the lines cross.",
    "numbers": "Writes a German number word in digits. German says the units before the tens.",
}
"""The models that have a live page of their own, and what a visitor reads of each."""
PICTURES = ("step-by-step.webp", "explore-light.png", "crossing-light.png", "crossing-dark.png")


_MAIN = "<main>\n"


def main(folder: Path, docs: Path | None = None, address: str = "") -> None:
    """Writes the site into `folder`.

    Args:
        folder: where it goes; files of an earlier site are replaced.
        docs: the folder of the built documentation, which becomes `docs/` of the site; without it the site has no docs.
        address: where the site will be, with a slash at its end: whoever shows a preview of a link asks for the whole address
            of its picture.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # One copy for all live pages: their maps are drawn by it.
    shutil.copy(plotly_js.path(), folder)
    for name in MODELS:
        page = tv.export.live_html(tv.load_checkpoint(name), plotlyjs=False)
        (folder / f"{name}.html").write_text(_of_site(page, name, address), encoding="utf-8")
    for language in ("en", "zh"):
        (folder / f"sheet-{language}.html").write_text(sheet_html(language=language), encoding="utf-8")
    for name in PICTURES:
        shutil.copy(DOCS / "images" / name, folder)
    if docs is not None:
        shutil.copytree(docs, folder / "docs", dirs_exist_ok=True)
    templates = Environment(loader=FileSystemLoader(DOCS / "static"), autoescape=True, undefined=StrictUndefined)
    about = {"models": MODELS, "lessons": read_lessons()[0], "has_docs": docs is not None}
    of_site = {"demonstrations": DEMONSTRATIONS, "address": address, "version": tv.__version__, "plotly": plotly_js.path().name}
    for name in ("index.html", "demonstrations.html"):
        (folder / name).write_text(templates.get_template(name).render(**about, **of_site), encoding="utf-8")
    # What a static Space of Hugging Face reads. GitHub's own page builder, which would leave files out, is not wanted.
    shutil.copy(DOCS / "static" / "space.md", folder / "README.md")
    (folder / ".nojekyll").touch()


def _of_site(page: str, name: str, address: str) -> str:
    """A live page with the way back to the site, and the picture that a link to it is shown with."""
    title = f'<meta property="og:title" content="{name} · Transformer Viz">\n'
    preview = f'<meta property="og:image" content="{address}crossing-light.png">\n'
    preview += '<meta name="twitter:card" content="summary_large_image">\n'
    home = '<a class="home" href="index.html">Transformer Viz</a>\n'
    before, _, after = page.partition(_MAIN)
    return before.replace("<title>", f"{title}{preview}<title>", 1) + _MAIN + home + after


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "".join(sys.argv[3:4]))
