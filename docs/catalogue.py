"""The catalogues of translations in `transformer_viz/locale`; see docs/translating.md.

`python -m docs.catalogue` brings every catalogue up to date: what is said anew stands there without a translation, what is not
said any more is gone, and what is read at run time (`.mo`) is made of what people write (`.po`). `--check` changes nothing and
says what is wrong; `make lint` asks it.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from babel.messages.catalog import Catalog
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po
from jinja2 import Environment
from jinja2.ext import extract_from_ast

from transformer_viz.language import DOMAIN, FOLDER
from transformer_viz.viewer import script_words

ROOT = Path(__file__).resolve().parents[1]
_ONE, _SEVERAL = ("say", "say_sentence", "later"), ("say_count", "later_count")
"""The functions whose first argument is an English text, and those that have two."""
_HOMES = ("transformer_viz.language", "transformer_viz.sentences.run_sentences")
"""The modules that have them. They name each other, so that both are looked through too."""
_WIDTH = 132
Id = str | tuple[str, str]
"""An English text; of one that is another for several things, both."""


class CatalogueError(ValueError):
    """A text that cannot be translated as it stands in the code."""


def texts() -> dict[Id, list[str]]:
    """All English texts that are said, each with the files that say it.

    Raises:
        CatalogueError: a text is put together where it should be one.
    """
    found: dict[Id, list[str]] = defaultdict(list)
    for file in _files():
        code = file.read_text(encoding="utf-8")
        for text in {".py": _of_python, ".js": _of_script, ".html": _of_template}[file.suffix](code, file.name):
            if (name := file.relative_to(ROOT).as_posix()) not in found[text]:
                found[text].append(name)
    return dict(found)


def _files() -> list[Path]:
    package, docs = ROOT / "transformer_viz", ROOT / "docs"
    python = [ROOT / "app.py", *package.rglob("*.py"), *docs.glob("*.py")]
    return sorted(
        [*python, *package.rglob("*.js"), *package.rglob("*.html"), *docs.glob("static/*.js"), *docs.glob("static/*.html")]
    )


def _of_python(code: str, name: str) -> Iterator[Id]:
    """Of a module that has imported these functions by their names, or has them itself."""
    if not any(home in code for home in _HOMES):
        return
    nodes = [*ast.walk(ast.parse(code))]
    known = {each.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module in _HOMES for each in node.names}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in known:
            continue
        if node.func.id in _ONE and node.args:
            yield from filter(None, [_text(node.args[0], name)])
        elif node.func.id in _SEVERAL:
            one, several = (_text(arg, name) for arg in node.args[:2])
            if one and several:
                yield one, several


def _text(node: ast.expr, name: str) -> str | None:
    """A text that stands in the code; None for a value, which is some text that is said later."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr | ast.BinOp | ast.IfExp):
        raise CatalogueError(
            f"{name}, line {node.lineno}: `{ast.unparse(node)[:60]}` is put together; say one template with places"
        )
    return None


def _of_script(code: str, _name: str) -> Iterator[Id]:
    yield from (text for _, text in script_words.texts(code))


def _of_template(code: str, _name: str) -> Iterator[Id]:
    for _, _, found in extract_from_ast(Environment().parse(code), _ONE):
        # With fields it is the first of several.
        text = found[0] if isinstance(found, tuple) else found
        if text is not None:
            yield text


def catalogues() -> list[Path]:
    """The files that people write, one for each language."""
    return sorted(FOLDER.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def read(file: Path) -> Catalog:
    """A catalogue."""
    with file.open("rb") as opened:
        return read_po(opened, locale=file.parts[-3])


def renewed(old: Catalog, said: dict[Id, list[str]]) -> Catalog:
    """The catalogue with exactly what is said, in the order of the files, and every translation that is there."""
    new = Catalog(locale=old.locale, charset="utf-8", fuzzy=False, header_comment="")
    for text, files in sorted(said.items(), key=lambda item: (item[1][0], str(item[0]))):
        known = old.get(text)
        flags = known.flags & {"fuzzy"} if known else ()
        new.add(text, known.string if known else "", [(name, 0) for name in files], flags)
    return new


def write(file: Path, catalogue: Catalog) -> None:
    """Writes a catalogue, and what is read of it at run time."""
    language, plural = catalogue.locale_identifier, f"nplurals={catalogue.num_plurals}; plural={catalogue.plural_expr};"
    header = {"Language": language, "Content-Type": "text/plain; charset=utf-8", "Plural-Forms": plural}
    lines = ['msgid ""', 'msgstr ""', *(f'"{name}: {value}\\n"' for name, value in header.items())]
    with file.open("wb") as opened:
        opened.write("\n".join([*lines, "", ""]).encode())
        write_po(opened, catalogue, width=_WIDTH, include_lineno=False, omit_header=True)
    with file.with_suffix(".mo").open("wb") as opened:
        write_mo(opened, catalogue)


def faults(file: Path, said: dict[Id, list[str]]) -> list[str]:
    """What is wrong with a catalogue, a sentence each."""
    catalogue, language = read(file), file.parts[-3]
    found = []
    for text, files in said.items():
        first = text if isinstance(text, str) else text[0]
        message = catalogue.get(text)
        if message is None or not _said(message.string):
            found.append(f"{language} lacks {first!r}, of {', '.join(files)}")
        elif message.fuzzy:
            found.append(f"{language} is not sure (fuzzy) of {first!r}")
        else:
            wanted = _places(text)
            # Of one for several things the number may be left out.
            free = set() if isinstance(text, str) else {"count"}
            found += [
                f"{language}: {each!r} has other places than {first!r}"
                for each in _said(message.string)
                if _places(each) - free != wanted - free
            ]
    found += [
        f"{language} has {message.id!r}, which nobody says" for message in catalogue if message.id and message.id not in said
    ]
    if not file.with_suffix(".mo").exists():
        return [*found, f"{language} has no .mo; make it with: python -m docs.catalogue"]
    with file.with_suffix(".mo").open("rb") as opened:
        made = read_mo(opened)
    if _strings(made) != _strings(catalogue):
        found.append(f"the .mo of {language} is not that of its .po; make it anew with: python -m docs.catalogue")
    return found


def _said(string: str | tuple[str, ...] | list[str] | None) -> list[str]:
    """The texts of a translation, one for each plural form; nothing where one is missing."""
    forms = [string] if isinstance(string, str) else [*(string or ())]
    return forms if all(forms) else []


def _places(text: Id | str) -> set[str]:
    """The places of a text, or of both texts for one thing and for several."""
    if not isinstance(text, str):
        return set().union(*map(_places, text))
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError:
        return {f"not a template: {text}"}


def _strings(catalogue: Catalog) -> dict[str, list[str]]:
    messages = ((m.id if isinstance(m.id, str) else m.id[0], _said(m.string)) for m in catalogue if m.id and not m.fuzzy)
    return {name: said for name, said in messages if said}


def main(arguments: list[str]) -> int:
    """Brings the catalogues up to date, or with `--check` says what is wrong with them."""
    said = texts()
    if arguments == ["--check"]:
        found = [fault for file in catalogues() for fault in faults(file, said)]
        print("\n".join([*found[:40], *([f"… and {len(found) - 40} more"] if len(found) > 40 else [])]), end="\n" * bool(found))
        return int(bool(found))
    for file in catalogues():
        new = renewed(read(file), said)
        write(file, new)
        missing = [message for message in new if message.id and not _said(message.string)]
        print(f"{file.parts[-3]}: {len(new)} texts, of which {len(missing)} lack a translation")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
