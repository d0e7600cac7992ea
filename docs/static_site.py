"""Writes the project's site, a folder of static files for GitHub Pages or a static Hugging Face Space. `make site`.

Its first page is a live page. Every link is relative: the folder also works under a longer address, and from a disk without any
server.
"""

import argparse
import base64
import hashlib
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import transformer_viz as tv
from docs import attention_page, lesson_pages
from docs.demonstrations import DEMONSTRATIONS
from transformer_viz.language import ENGLISH, current, later, speaking, translation
from transformer_viz.learn.sheet import sheet_html
from transformer_viz.learn.words import words
from transformer_viz.viewer import modules, plotly_js

DOCS = Path(__file__).resolve().parent
FRONT = "reverse"
"""The model of the first page."""
MODELS = {
    "reverse": later("Writes a word backwards. Nobody told it how: see which letter each head looks at."),
    "german": later("Translates German sentences about a small world. Where the verb comes last, the lines cross."),
    "numbers": later("Writes a German number word in digits. German says the units before the tens."),
}
"""The models that the first page names, and what a visitor reads of each. Those of the lessons' cards have pages too."""
_FRONTS = {ENGLISH: "index.html", "zh": "zh.html"}
"""The first page in each language."""
_OWN_NAMES, _NAMES = {ENGLISH: "English", "zh": "中文"}, {ENGLISH: later("English"), "zh": later("Chinese")}
"""What each language calls itself, and what it is called in a sentence."""
PICTURES = ("crossing-light.png", "crossing-dark.png")
_MAIN, _END = "<main>\n", "</main>"
_BAR_STYLE = (DOCS / "static" / "bar.css").read_text(encoding="utf-8")


def main(folder: Path, docs: Path | None = None, address: str = "") -> None:
    """Writes the site into `folder`.

    Args:
        folder: where it goes; files of an earlier site are replaced.
        docs: the folder of the built documentation, which becomes `docs/` of the site; without it the site has no docs.
        address: where the site will be, with a slash at its end: whoever shows a preview of a link asks for the whole address
            of its picture, and the sheets for a class print it. By default what `pyproject.toml` says.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = _about()
    address = address or about["site"]
    # One copy for all live pages: their maps are drawn by it.
    shutil.copy(plotly_js.path(), folder)
    templates = Environment(loader=FileSystemLoader(DOCS / "static"), autoescape=True, undefined=StrictUndefined)
    cast(dict[str, Any], templates.globals)["say"] = say
    of_site = {"address": address, "version": tv.__version__, "plotly": plotly_js.path().name}

    def bar(language: str, pages: Mapping[str, str]) -> Markup:
        """What stands above every page: the ways through the site, and the page in its other languages."""
        with speaking(language):
            fields = {"front": _FRONTS[language], "suffix": lesson_pages.suffix(language), "switch": _switch(pages, language)}
            return Markup(templates.get_template("bar.html").render(**fields, has_docs=docs is not None))

    def write(name: str, template: str, language: str = ENGLISH, other: str = "", **fields: Any) -> None:
        pages = {one: other for one in lesson_pages.LANGUAGES if other and one != language}
        fields |= {"language": language, "bar": bar(language, {language: name, **pages})}
        (folder / name).write_text(templates.get_template(template).render(**of_site, **fields), encoding="utf-8")

    of_front = {
        "models": MODELS,
        "n_lessons": len(lesson_pages.lessons(ENGLISH)),
        "has_docs": docs is not None,
        **about,
        **of_site,
    }
    for name in dict.fromkeys([*MODELS, *lesson_pages.models()]):
        checkpoint = tv.load_checkpoint(name)
        for language in lesson_pages.LANGUAGES:
            page = tv.live_html(checkpoint, plotlyjs=False, language=language)
            (folder / lesson_pages.live_page(name, language)).write_text(
                _of_site(page, name, bar(language, _pages_of(name)), address), encoding="utf-8"
            )
            if name != FRONT:
                continue
            with speaking(language):
                fields = {**of_front, **_languages(language), "bar": bar(language, _FRONTS)}
                around = [templates.get_template(f"front_{part}.html").render(**fields) for part in ("head", "foot")]
                (folder / _FRONTS[language]).write_text(_front(page, *around, address), encoding="utf-8")
    write("demonstrations.html", "demonstrations.html", demonstrations=DEMONSTRATIONS)
    for language in lesson_pages.LANGUAGES:
        _write_lessons(write, language)
        sheet = sheet_html(language=language, lessons_at=address)
        (folder / f"sheet-{language}.html").write_text(sheet, encoding="utf-8")
    for name in PICTURES:
        shutil.copy(DOCS / "images" / name, folder)
    if docs is not None:
        shutil.copytree(docs, folder / "docs", dirs_exist_ok=True)
    # What a static Space of Hugging Face reads. GitHub's own page builder, which would leave files out, is not wanted.
    shutil.copy(DOCS / "static" / "space.md", folder / "README.md")
    (folder / ".nojekyll").touch()


def run(words: Sequence[str]) -> None:
    """`python -m docs.static_site FOLDER [DOCS [ADDRESS]]`."""
    parser = argparse.ArgumentParser("python -m docs.static_site", description="Writes the project's site.")
    parser.add_argument("folder", type=Path, help="where it goes")
    parser.add_argument(
        "docs", type=Path, nargs="?", help="the folder of the built documentation; without it the site has none"
    )
    parser.add_argument("address", nargs="?", default="", help="where the site will be, with a slash at its end")
    main(**vars(parser.parse_args(words)))


def _write_lessons(write: Any, language: str) -> None:
    """The pages of a language: the list of lessons, each lesson, and *What is attention?*."""
    other_language = next(other for other in lesson_pages.LANGUAGES if other != language)
    lessons, here, there = lesson_pages.lessons(language), lesson_pages.suffix(language), lesson_pages.suffix(other_language)
    common = {"language": language, "other_language": other_language, "words": words(language), "front": _FRONTS[language]}
    script = modules.without_comments((DOCS / "static" / "lesson.js").read_text(encoding="utf-8"))
    digest = f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
    for lesson in lessons:
        write(
            lesson.page_name(language),
            "lesson.html",
            **common,
            lesson=lesson,
            data=lesson_pages.lesson_data(lesson, language),
            other=lesson.page_name(other_language),
            script=script,
            digest=digest,
        )
    pages = [(lesson, lesson.page_name(language)) for lesson in lessons]
    attention = f"attention{here}.html"
    write(f"lessons{here}.html", "lessons.html", **common, lessons=pages, attention=attention, other=f"lessons{there}.html")
    write(
        attention,
        "attention.html",
        **common,
        texts=attention_page.TEXTS[language],
        parts=attention_page.parts(language),
        lesson_title=lessons[0].title,
        lesson_page=pages[0][1],
        other=f"attention{there}.html",
    )


def say(template: str, /, **fields: object) -> Markup:
    """`say` of a template of HTML, in whose sentences links stand: what is not markup becomes text."""
    return Markup(escape(translation(template, current()) or template)).format(**fields)


def _switch(pages: Mapping[str, str], language: str) -> Markup:
    """The links to a page's other languages."""
    link = Markup('<a href="{page}" hreflang="{other}" lang="{other}" target="_top">{name}</a>')
    others = [(other, page) for other, page in pages.items() if other != language]
    return Markup(" ").join(link.format(page=page, other=other, name=_OWN_NAMES[other]) for other, page in others)


def _languages(language: str) -> dict[str, str]:
    """What a page's template is told of its language, and of the other one."""
    other = next(other for other in lesson_pages.LANGUAGES if other != language)
    suffixes = {"suffix": lesson_pages.suffix(language), "other_suffix": lesson_pages.suffix(other)}
    names = {"own_name": _OWN_NAMES[language], "other_own_name": _OWN_NAMES[other], "other_name": _NAMES[other]}
    return {"language": language, "other": other, **suffixes, **names}


def _pages_of(model: str) -> dict[str, str]:
    """The live page of a model in each language."""
    return {each: lesson_pages.live_page(model, each) for each in lesson_pages.LANGUAGES}


def _of_site(page: str, name: str, bar: str, address: str) -> str:
    """A live page with the ways through the site, and the picture that a link to it is shown with."""
    before, _, after = page.partition(_MAIN)
    before = before.replace("</style>", f"{_BAR_STYLE}</style>", 1)
    return _with_preview(before, f"{name} · Transformer Viz", address) + str(bar) + _MAIN + after


def _front(page: str, head: str, foot: str, address: str) -> str:
    """The live page that is the first one: what it is above it, and where to go on below it."""
    before, _, after = page.partition(_MAIN)
    inside, _, end = after.partition(_END)
    before = before.replace("</style>", f"{_BAR_STYLE}{(DOCS / 'static' / 'front.css').read_text(encoding='utf-8')}</style>", 1)
    before = before.replace("img-src data: blob:", "img-src &#39;self&#39; file: data: blob:", 1)
    words = say("See a Transformer think: every attention head of every step, live in your browser.")
    about = f'<meta name="description" content="{words}">\n'
    # The page has a heading in sight.
    inside = inside.replace('<h1 data-part="title"></h1>', '<p data-part="title" hidden></p>', 1)
    before = _with_preview(before, say("Transformer Viz: see a Transformer think"), address, about)
    return before + head + _MAIN + inside + _END + "\n" + foot + end


def _with_preview(before: str, title: str, address: str, more: str = "") -> str:
    preview = (
        f'<meta property="og:title" content="{title}">\n<meta property="og:image" content="{address}crossing-light.png">\n'
    )
    preview += '<meta name="twitter:card" content="summary_large_image">\n'
    return before.replace("<title>", f"{more}{preview}<title>", 1)


def _about() -> dict[str, str]:
    """The addresses of the repository and of the site; nothing of what is nowhere yet."""
    with (DOCS.parent / "pyproject.toml").open("rb") as file:
        known = tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    return {name: "" if "example.org" in known[name] else known[name] for name in ("repository", "site")}


if __name__ == "__main__":
    run(sys.argv[1:])
