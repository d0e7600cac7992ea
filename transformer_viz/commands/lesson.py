"""The command `lesson`."""

from pathlib import Path
from typing import Annotated, Literal

from transformer_viz.commands._options import Option
from transformer_viz.commands._shared import SEED, Force, print_lines
from transformer_viz.errors import OptionError


def run(
    what: Literal["check", "sheet"],
    files: Annotated[
        list[str] | None, "check: lesson files, or folders of them (all shipped lessons)", Option(is_argument=True)
    ] = None,
    output: Annotated[Path | None, "sheet: the page to write, a name that ends in .html", Option("-o")] = None,
    language: Annotated[str, "sheet: language of the questions"] = "en",
    seed: Annotated[int, "sheet: draw other questions", SEED] = 0,
    address: Annotated[str | None, "sheet: where the site is, with a slash at its end, for a link to each lesson"] = None,
    force: Force = False,
) -> int:
    """Check lessons, or write a sheet of questions for a class.

    `lesson check FILE…` runs each step, its question and its claims, and prints what is wrong, one line each. `lesson sheet
    -o FILE.html` writes a page to print: eight questions for before the lessons, eight for after, and the answers.
    """
    return _check(files or []) if what == "check" else _sheet(files or [], output, language, seed, address, force)


def _check(names: list[str]) -> int:
    from transformer_viz.learn.check import check_lesson
    from transformer_viz.learn.lesson import LESSONS, find_lessons
    from transformer_viz.untrusted_files import is_folder, list_folder

    given = [Path(name) for name in names] or [folder for folder in list_folder(LESSONS) if is_folder(folder)]
    lessons = [file for path in given for file in (find_lessons(path) if is_folder(path) else [path])]
    if not lessons:
        raise OptionError("no lesson was found there; a lesson is a file such as 03-masks.md")
    n_bad = 0
    for file in lessons:
        report, name = check_lesson(file), f"{file.parent.name}/{file.name}"
        n_bad += bool(report.faults)
        print_lines("\n".join(f"{name}: {fault}" for fault in report.faults) or f"{name}: good, {report.n_steps} steps, "
                    f"{report.n_questions} questions")  # fmt: skip
    return int(n_bad > 0)


def _sheet(names: list[str], output: Path | None, language: str, seed: int, address: str | None, force: bool) -> int:
    from transformer_viz.atomic_files import check_target, write_text

    if names or output is None or output.suffix != ".html":
        raise OptionError("lesson sheet takes -o and a name that ends in .html, as in: lesson sheet -o class.html")
    if address is not None and not (address.startswith(("https://", "http://")) and address.endswith("/")):
        raise OptionError("--address begins with https:// and ends with a slash, as https://name.github.io/transformer-viz/")
    check_target(output, force=force)
    from transformer_viz.learn.sheet import sheet_html

    write_text(sheet_html(seed, language, address), output)
    print_lines(f"{output}: 8 questions before, 8 after, and the key")
    return 0
