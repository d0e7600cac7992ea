"""Reads a lesson from its file: Markdown with settings in TOML at the top, and in each step a block of TOML.

`docs/lessons.md` teaches how one is written. A file may be anybody's: text is text, links are this app's, images lie in the
lesson's own folder.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from transformer_viz import untrusted_files
from transformer_viz.addresses import HIGHEST, parse
from transformer_viz.errors import FileError, LessonError, TransformerVizError, join_names
from transformer_viz.learn.actions import Action, read_action
from transformer_viz.learn.claims import Claim, read_claim
from transformer_viz.learn.links import Link, read_link
from transformer_viz.learn.points import POINTS
from transformer_viz.schema import Choice, Range, read_value
from transformer_viz.text_display import quote_text

LESSONS = Path(__file__).resolve().parent.parent / "lessons"
"""The shipped ones, a folder a language."""
MOST_WORDS, MOST_STEPS, LARGEST_FILE = 70, 30, 100_000
LEVELS = ("first steps", "further", "expert")
"""In the order in which one goes through them."""
IMAGES = (".png", ".webp", ".jpg", ".jpeg", ".svg")
Style = Literal["plain", "strong", "emphasis", "code", "link", "image"]
QUESTIONS = (*("looks-most", "masked", "writes", "number", "matters-most", "heads-by", "greedy-or-beam", "aligns", "mistake"),)
"""Kinds of question; `questions.py` has what each asks."""
_Line = Annotated[str, Range(1, 200)]
_Sentence = Annotated[str, Range(1, 400)]
_Position = Annotated[int, Range(1, HIGHEST)]
_NAME = re.compile(r"(?:\d+-)?([a-z][a-z0-9-]{0,39})", re.ASCII)
_FRONT = re.compile(r"\+\+\+[ \t]*\n(.*?)\n\+\+\+[ \t]*(?:\n|$)(.*)", re.DOTALL)
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```toml[ \t]*\n(.*?)^```[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_PIECES = re.compile(
    r"`(?P<code>[^`\n]+)`|(?P<image>!)?\[(?P<words>[^\[\]\n]{1,200})\]\((?P<target>[^()\s]{1,2000})\)"
    r"|\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*|\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*"
)
# A Chinese word has about two characters, and no space around it.
_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:[’'.\-][^\W\u3400-\u9fff]+)*")


@dataclass(frozen=True)
class Piece:
    """A piece of a step's text; `target` is the address of a link, or the file of an image."""

    style: Style
    text: str
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question of a step. Kind, head and row that it leaves out are those in focus on the page.

    Attributes:
        kind: of question.
        words: the question in words of one's own, instead of those that its kind has.
        head: an address as `cross.2.1`.
        row: from 1.
        column: from 1; of `number` alone.
        number: of `number` alone: `weight`, `probability`, or what is computed by hand: `score`, `softmax`, `output`.
        by: a measure of heads, such as `entropy`; of `heads-by` alone.
        tolerance: how far from the right number an answer may be; of `number` alone.
        cover: what is covered until it is answered, as `row 6`, `rows 4` (and all after it), `masks` or `tree`; by default
            what the kind of question needs.
        because: why it is so, in one sentence, which follows the answer.
    """

    kind: Annotated[str, Choice(QUESTIONS)]
    words: Annotated[str, Range(0, 400)] = ""
    head: Annotated[str, Range(0, 40)] = ""
    row: _Position | None = None
    column: _Position | None = None
    number: Annotated[str, Choice(("weight", "probability", "score", "softmax", "output"))] = "weight"
    by: Annotated[str, Range(1, 40)] = "entropy"
    tolerance: Annotated[float, Range(0, 100, above=True)] = 0.02
    cover: Annotated[str, Range(0, 40)] = ""
    because: Annotated[str, Range(0, 400)] = ""

    def __post_init__(self) -> None:
        if self.head and parse(self.head, "head ")[0].head is None:
            raise LessonError(f"head={quote_text(self.head)} names no head; write it like cross.2.1")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        title: its heading.
        text: paragraphs.
        start: where the page goes as the step is entered; None leaves it where it is.
        point: the part of the page that is highlighted, a name of `points.POINTS`, or empty.
        do: what the learner does before the next step.
        ask: the question.
        hints: up to three, each telling more.
        terms: words of the glossary that this step explains.
        claims: what the step says of a run in numbers.
    """

    title: str
    text: tuple[tuple[Piece, ...], ...]
    start: Link | None = None
    point: str = ""
    do: Action | None = None
    ask: Ask | None = None
    hints: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson.

    Attributes:
        name: what the link calls it, its file's name without the number before it: `map` of `01-map.md`.
        title: as the list of lessons has it.
        minutes: that it takes.
        level: of whom it is for.
        model: the checkpoint of the links that name none.
        can: what its reader can do after it, behind *You can:*.
        picture: the step, from 1, whose run is drawn small in the list of lessons.
        steps: in their order.
        file: that it was read from; its images lie beside it.
    """

    name: str
    title: str
    minutes: int
    level: str
    model: str
    can: str = ""
    picture: int = 1
    steps: tuple[Step, ...]
    file: Path

    def page_name(self, language: str = "en") -> str:
        """The file of its page on the site."""
        return f"lesson-{self.name}.html" if language == "en" else f"lesson-{self.name}-{language}.html"

    def start_of(self, number: int) -> Link | None:
        """The link at which a step, from 0, begins: its own link, or that of the last step before it that has one."""
        return next((step.start for step in reversed(self.steps[: number + 1]) if step.start is not None), None)


@dataclass(frozen=True, kw_only=True)
class _Front:
    """The front matter, between the two lines of +++."""

    title: _Line
    minutes: Annotated[int, Range(1, 240)]
    level: Annotated[str, Choice(LEVELS)]
    model: Annotated[str, Range(1, 100)] = "reverse"
    can: Annotated[str, Range(0, 200)] = ""
    picture: Annotated[int, Range(1, MOST_STEPS)] = 1


@dataclass(frozen=True, kw_only=True)
class _Block:
    """The fields in the block of a step."""

    start: Annotated[str, Range(1, 2_000)] | None = None
    point: Annotated[str, Choice(tuple(POINTS))] = ""
    do: _Line | None = None
    ask: Ask | None = None
    hints: Annotated[tuple[_Sentence, ...], Range(0, 3)] = ()
    terms: Annotated[tuple[_Line, ...], Range(0, 5)] = ()
    claims: Annotated[tuple[_Line, ...], Range(0, 30)] = ()


def find_lessons(folder: Path = LESSONS / "en") -> list[Path]:
    """The files of a folder's lessons, in the order of their names."""
    return [file for file in untrusted_files.list_folder(folder) if file.suffix == ".md" and _NAME.fullmatch(file.stem)]


def read_lessons(folder: Path = LESSONS / "en") -> tuple[list[Lesson], list[str]]:
    """The lessons of a folder in their order, and a sentence for each that cannot be read."""
    lessons, faults = [], []
    for file in find_lessons(folder):
        try:
            lessons.append(read_lesson(file))
        except LessonError as error:
            faults.append(f"{file.name}: {error}")
    return lessons, faults


def read_lesson(file: Path) -> Lesson:
    """A lesson from its file.

    Raises:
        LessonError: it cannot be read, or asks for something impossible; the message says in which step.
    """
    name = _NAME.fullmatch(file.stem)
    if name is None:
        raise LessonError(f"{quote_text(file.name)} is not a possible name of a lesson's file; choose one like 03-masks.md")
    try:
        text = untrusted_files.read_text(file, LARGEST_FILE).replace("\r\n", "\n")
    except FileNotFoundError:
        raise LessonError("there is no such file") from None
    except FileError as error:
        raise LessonError(str(error)) from error
    parts = _FRONT.fullmatch(text)
    if parts is None:
        raise LessonError("it must begin with a line +++, then its title, minutes and level, then another line +++")
    front = _read_toml(_Front, parts[1], "the text between the lines +++")
    before, *headed = _HEADING.split(parts[2])
    if before.strip():
        raise LessonError(f"{quote_text(before.strip())} stands before the first step; a step begins with ## and its title")
    titles, bodies = headed[::2], headed[1::2]
    if not 1 <= len(titles) <= MOST_STEPS:
        raise LessonError(f"it has {len(titles)} steps; 1 to {MOST_STEPS} are possible, each beginning with ## and its title")
    steps = []
    for number, (title, body) in enumerate(zip(titles, bodies, strict=True), 1):
        try:
            steps.append(_read_step(title.strip(), body, file, front.model))
        except TransformerVizError as error:
            raise LessonError(f"step {number}: {error}") from error
    return Lesson(name=name[1], **vars(front), steps=tuple(steps), file=file)


def count_words(text: tuple[tuple[Piece, ...], ...]) -> int:
    """Words of a step's text; two Chinese characters count as one."""
    words = _WORDS.findall(" ".join(piece.text for paragraph in text for piece in paragraph if piece.style != "image"))
    n_chinese = sum("\u3400" <= word <= "\u9fff" for word in words)
    return len(words) - n_chinese + (n_chinese + 1) // 2


def _read_step(title: str, body: str, file: Path, model: str) -> Step:
    if not 1 <= len(title) <= 200:
        raise LessonError(f"its title has {len(title)} characters; 1 to 200 are possible")
    # Counted first: a search for the end of each of very many blocks would take minutes.
    blocks = _BLOCK.findall(body) if body.count("```") == 2 else []
    if "```" in body and not blocks:
        raise LessonError("one block is possible, from a line ```toml to a line ```; it has more, or another one")
    block = _read_toml(_Block, blocks[0], "its block") if blocks else _Block()
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", _BLOCK.sub("", body).strip())]
    text = tuple(_read_pieces(paragraph, file) for paragraph in paragraphs if paragraph)
    if (n := count_words(text)) > MOST_WORDS:
        raise LessonError(f"its text has {n} words; at most {MOST_WORDS} are possible; make two steps of it")
    if not text:
        raise LessonError("it has no text; write at least one sentence below its title")
    return Step(
        title=title,
        text=text,
        start=None if block.start is None else _with_model(read_link(block.start), model),
        point=block.point,
        do=None if block.do is None else read_action(block.do),
        ask=block.ask,
        hints=block.hints,
        terms=block.terms,
        claims=tuple(map(read_claim, block.claims)),
    )


def _with_model(link: Link, model: str) -> Link:
    """The link, with the lesson's model where it runs one and names none."""
    has_model = link.page not in ("train", "survey") or "learned" in link.values
    return Link(link.page, {"checkpoint": model, **link.values}) if has_model else link


def _read_toml(kind: Any, text: str, where: str) -> Any:
    try:
        data: Mapping[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the first also of a number with thousands of digits
        words = str(error) or "it is nested too deeply"
        raise LessonError(f"{where} is not valid TOML: {words}") from None
    return read_value(kind, data, error=LessonError)


def _read_pieces(text: str, file: Path) -> tuple[Piece, ...]:
    """A paragraph's pieces. Nothing else of Markdown is known, and no markup: what is not one of these is text."""
    pieces, end = [], 0
    for match in _PIECES.finditer(text):
        if match.start() > end:
            pieces.append(Piece("plain", text[end : match.start()]))
        end = match.end()
        if match["target"] is not None:
            pieces.append(_read_target(match["words"], match["target"], file, is_image=bool(match["image"])))
            continue
        styles: tuple[Style, ...] = ("code", "strong", "emphasis")
        style = next(style for style in styles if match[style] is not None)
        pieces.append(Piece(style, match[style]))
    if end < len(text):
        pieces.append(Piece("plain", text[end:]))
    return tuple(pieces)


def _read_target(words: str, target: str, file: Path, *, is_image: bool) -> Piece:
    if not is_image:
        return Piece("link", words, read_link(target).address)
    # A name alone: no folder, no server.
    if Path(target).name != target or "\\" in target or ":" in target or not target.lower().endswith(IMAGES):
        raise LessonError(
            f"{quote_text(target)} is not the name of an image beside the lesson; give a name without a folder that ends with "
            f"one of {join_names(IMAGES)}"
        )
    if not untrusted_files.is_file(file.parent / target):
        raise LessonError(f"the image {quote_text(target)} is missing; put it beside the lesson")
    return Piece("image", words, target)
