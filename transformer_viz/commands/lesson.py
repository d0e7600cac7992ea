"""The command `lesson`."""

from pathlib import Path
from typing import Annotated, Literal

from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import SEED, Force, print_lines
from transformer_viz.errors import OptionError


def run(
    what: Literal["check", "sheet"],
    files: Annotated[
        list[str] | None, "check: lessons, or folders of them; by default all that are shipped", Option(is_argument=True)
    ] = None,
    output: Annotated[Path | None, "sheet: where to write, a page that ends in .html", Option("-o")] = None,
    language: Annotated[str, "sheet: of the questions, a folder of the shipped lessons"] = "en",
    seed: Annotated[int, "sheet: another seed draws other texts, and so other questions", SEED] = 0,
    force: Force = False,
) -> int:
    """Check lessons, or write a sheet of questions for a class.

    `lesson check FILE…` opens what each step links, asks its questions of these runs, and says what is wrong, a line each.
    `lesson sheet -o FILE.html` writes eight questions for before and eight for after the lessons, with the key, to print.
    """
    return _check(files or []) if what == "check" else _sheet(files or [], output, language, seed, force)


def _check(names: list[str]) -> int:
    from transformer_viz.learn.check import check_lesson
    from transformer_viz.learn.lesson import LESSONS, find_lessons
    from transformer_viz.untrusted_files import is_folder, list_folder

    given = [Path(name) for name in names] or [folder for folder in list_folder(LESSONS) if is_folder(folder)]
    lessons = [file for path in given for file in (find_lessons(path) if is_folder(path) else [path])]
    if not lessons:
        raise OptionError("there is no lesson in what was given; a lesson is a file such as 03-masks.md")
    n_bad = 0
    for file in lessons:
        found, name = check_lesson(file), f"{file.parent.name}/{file.name}"
        n_bad += bool(found.faults)
        print_lines("\n".join(f"{name}: {fault}" for fault in found.faults) or f"{name}: good, {found.n_steps} steps, "
                    f"{found.n_questions} questions")  # fmt: skip
    return int(n_bad > 0)


def _sheet(names: list[str], output: Path | None, language: str, seed: int, force: bool) -> int:
    from transformer_viz.atomic_files import check_target, write_text

    if names or output is None or output.suffix != ".html":
        raise OptionError("lesson sheet takes no FILE but -o with a name that ends in .html, as in: lesson sheet -o class.html")
    check_target(output, force=force)
    from transformer_viz.learn.sheet import sheet_html

    write_text(sheet_html(seed, language), output)
    print_lines(f"{output}: 8 questions before, 8 after, and the key")
    return 0
