"""Reading a lesson: what a good one becomes, and what of a bad or hostile one is refused, in one sentence."""

import re
import tomllib
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from transformer_viz.analysis.measures import MEASURES
from transformer_viz.errors import LessonError
from transformer_viz.learn.actions import VERBS, Action, read_action
from transformer_viz.learn.check import check_lesson
from transformer_viz.learn.claims import FACTS, read_claim
from transformer_viz.learn.example_run import example_of
from transformer_viz.learn.lesson import LESSONS, QUESTIONS, Piece, _Block, count_words, find_lessons, read_lesson, read_lessons
from transformer_viz.learn.links import Link, read_link
from transformer_viz.learn.points import POINTS
from transformer_viz.learn.words import FILE, languages
from transformer_viz.terms import head_label, place_labels

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "lessons.md").read_text(encoding="utf-8")
FRONT = '+++\ntitle = "A lesson"\nminutes = 5\nlevel = "first steps"\n+++\n'
ASK = 'start = "/?text=hello"\nask = { kind = "writes", row = 1 }\n'


def written(folder: Path, body: str, front: str = FRONT, name: str = "01-good.md") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / name
    file.write_text(f"{front}\n{body}", encoding="utf-8")
    return file


def step(block: str = "", text: str = "Some text.") -> str:
    return f"## A step\n\n{text}\n\n```toml\n{block}```\n"


def test_a_lesson_is_read_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "map.png").write_bytes(b"")
    text = "Look at `hello` in *row* 2, **now**.\nSee [the masks](/masks?sources=ab).\n\n![a map](map.png)"
    hints = 'hints = ["One.", "Two."]\npoint = "map"\ndo = "step 3"\n'
    lesson = read_lesson(written(tmp_path, step(ASK + hints, text)))
    assert (lesson.name, lesson.title, lesson.minutes, lesson.model) == ("good", "A lesson", 5, "reverse")
    [one] = lesson.steps
    assert (
        one.start == Link("explore", {"checkpoint": "reverse", "text": "hello"})
        and one.point == "map"
        and one.do == Action("step", "3")
    )
    assert one.ask is not None and (one.ask.kind, one.ask.row) == ("writes", 1) and one.hints == ("One.", "Two.")
    first, second = one.text
    styles = [(piece.style, piece.text) for piece in first if piece.style != "plain"]
    assert styles == [("code", "hello"), ("emphasis", "row"), ("strong", "now"), ("link", "the masks")]
    assert first[-2].target == "/masks?sources=ab" and second == (Piece("image", "a map", "map.png"),)
    assert "".join(piece.text for piece in first) == "Look at hello in row 2, now. See the masks."


def test_a_step_begins_where_the_last_link_before_it_leads(tmp_path: Path) -> None:
    lesson = read_lesson(written(tmp_path, step(ASK) + step() + step('start = "/masks?sources=ab"\n')))
    assert [at.page for at in map(lesson.start_of, range(3)) if at] == ["explore", "explore", "masks"]


def test_what_looks_like_markup_is_text(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)> {{ 7 * 7 }} &lt; [x] (y) **"
    [one] = read_lesson(written(tmp_path, step(ASK, hostile))).steps
    assert one.text == ((Piece("plain", hostile),),)


def test_words_are_counted_in_both_languages() -> None:
    assert count_words(((Piece("plain", "It isn’t 3.5 words-long, no."),),)) == 5
    assert count_words(((Piece("plain", "这一行看哪个词元？"),),)) == 4


NESTED = "[" * 3000 + "]" * 3000
BROKEN = {
    "no head": ("", "## A step\n\nText.\n", "must begin with a line +++"),
    "no title": ('+++\nminutes = 5\nlevel = "first steps"\n+++\n', step(ASK), "lacks 'title'"),
    "no TOML": (FRONT, step("ask = {\n"), "step 1: its block is not valid TOML"),
    "endless nesting": (FRONT, step(f"ask = {NESTED}\n"), "step 1: its block is not valid TOML"),
    "a number without end": (
        FRONT,
        step(f"ask = {{ kind = 'writes', row = {'9' * 5000} }}\n"),
        "step 1: its block is not valid TOML",
    ),
    "blocks without end": (FRONT, "## A\n" + "```toml\n" * 12_000, "step 1: one block is possible"),
    "a title without end": (FRONT, f"## A{' ' * 99_000}b\n", "step 1: its title has"),
    "unknown field": (FRONT, step(ASK + "go = 1\n"), "step 1: it has 'go', which does not belong there"),
    "too many words": (FRONT, step(ASK, "word " * 71), "step 1: its text has 71 words; at most 70"),
    "foreign link": (FRONT, step(ASK, "See [this](https://example.org/)."), "is not a link of this app"),
    "foreign start": (FRONT, step('start = "//example.org/?text=hello"\n'), "is not a link of this app"),
    "script link": (FRONT, step(ASK, "See [this](javascript:alert)."), "is not a link of this app"),
    "image elsewhere": (FRONT, step(ASK, "![x](../../secret.png)"), "is not the name of an image beside the lesson"),
    "image from a server": (
        FRONT,
        step(ASK, "![x](https://example.org/x.png)"),
        "is not the name of an image beside the lesson",
    ),
    "unknown page": (FRONT, step('start = "/nowhere?text=hello"\n'), "the app has no page 'nowhere'"),
    "unknown control": (FRONT, step('start = "/?texts=hello"\n'), "no control 'texts'"),
    "unknown target": (FRONT, step(ASK + 'point = "moon"\n'), "point='moon' is not possible"),
    "unknown action": (FRONT, step(ASK + 'do = "dance"\n'), "is not an action"),
    "unknown question": (FRONT, step('start = "/?text=hi"\nask = { kind = "why" }\n'), "ask.kind='why' is not possible"),
    "four hints": (FRONT, step(ASK + 'hints = ["1", "2", "3", "4"]\n'), "hints"),
    "no start": (FRONT, step('ask = { kind = "writes" }\n'), "step 1: it does not say where it begins"),
    "unreadable text": (FRONT, step('start = "/?text=häuser"\nask = { kind = "writes" }\n'), "step 1: "),
    "a folder for a model": (
        FRONT,
        step('start = "/?text=hi&checkpoint=./checkpoints/reverse"\nask = { kind = "writes" }\n'),
        "checkpoint",
    ),
    "no such model": (FRONT, step('start = "/?text=hi&checkpoint=nobody"\nask = { kind = "writes" }\n'), "step 1: "),
    "no such row": (FRONT, step('start = "/?text=hi"\nask = { kind = "looks-most", row = 90 }\n'), "has no row 90"),
    "no such head": (FRONT, step('start = "/?text=hi&layer=7"\nask = { kind = "looks-most" }\n'), "layer 7"),
    "a beam without end": (
        FRONT,
        step('start = "/?text=hi&decoding=beam&beam=99999"\nask = { kind = "writes" }\n'),
        "from 1 to 64",
    ),
    "no run": (FRONT, step('start = "/survey"\nask = { kind = "writes" }\n'), "shows no run"),
    "target of another page": (
        FRONT,
        step('start = "/masks?sources=ab"\npoint = "map"\nask = { kind = "masked" }\n'),
        "is not on the page masks",
    ),
    "no claim": (FRONT, step(ASK + 'claims = ["it is good"]\n'), "'it␣is␣good' is not a claim"),
    "a claim of no row": (FRONT, step(ASK + 'claims = ["looks 9 = 1·<start>"]\n'), "has to name a row from 1 to 6"),
    "a claim of no head": (FRONT, step(ASK + 'claims = ["looks cross.9.1 2 = 1·<start>"]\n'), "layer"),
    "a claim of no page": (FRONT, step(ASK + 'claims = ["/nowhere?text=ab: writes = ba"]\n'), "the app has no page"),
    "a sum without end": (FRONT, step(ASK + 'claims = ["9^9^9^9 = 1"]\n'), "cannot be computed"),
    "a sum of nothing": (FRONT, step(ASK + f'claims = ["{"(" * 150} = 1"]\n'), "cannot be computed"),
    "a cover of another row": (FRONT, step(ASK.replace("row = 1", "row = 1, cover = 'row 2'")), "leaves row 1 open"),
    "a cover of nothing": (FRONT, step(ASK.replace("row = 1", "row = 1, cover = 'masks'")), 'such a question needs "row 6"'),
    "no question": (FRONT, step('start = "/?text=hi"\n'), "it asks nothing"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_lesson_is_one_line(name: str, tmp_path: Path) -> None:
    front, body, words = BROKEN[name]
    [fault] = check_lesson(written(tmp_path, body, front)).faults
    assert words in fault and "\n" not in fault


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "01-a.md").mkdir()
    (tmp_path / "02-b.md").write_bytes(b"\xff\xfe")
    (tmp_path / "03-c.md").write_bytes(b" " * 100_001)
    for name in ("Good Lesson.md", "01-.md", "x" * 60 + ".md"):
        with pytest.raises(LessonError, match="is not a possible name of a lesson"):
            read_lesson(written(tmp_path, step(ASK), name=name))
    for name, words in (("01-a", "a folder"), ("02-b", "not UTF-8"), ("03-c", "at most 100,000"), ("04-d", "no such file")):
        with pytest.raises(LessonError, match=words):
            read_lesson(tmp_path / f"{name}.md")


def test_a_folder_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    written(tmp_path, step(ASK), name="02-second.md")
    written(tmp_path, step(ASK), name="01-first.md")
    written(tmp_path, "## A step\n", name="03-third.md")
    (tmp_path / "README.md").write_text("no lesson", encoding="utf-8")
    lessons, faults = read_lessons(tmp_path)
    assert [lesson.name for lesson in lessons] == ["first", "second"] and faults == [
        "03-third.md: step 1: it has no text; write at least one sentence below its title"
    ]


def test_a_question_may_be_of_a_moment_of_a_training(tmp_path: Path) -> None:
    at = 'start = "/train?learned=true&checkpoint=reverse-small&text=ab&moment={}"\nask = {{ kind = "writes", row = 1 }}\n'
    assert not check_lesson(written(tmp_path, step(at.format(21)))).faults
    [fault] = check_lesson(written(tmp_path, step(at.format(22)))).faults
    assert "moment='22' is not possible; reverse-small has 0, " in fault


def test_two_languages_have_one_structure(tmp_path: Path) -> None:
    body = step(ASK + 'hints = ["One."]\n')
    english = written(tmp_path / "en", body)
    written(tmp_path / "zh", body.replace("One.", "一").replace("Some text", "文字"))
    assert not check_lesson(english).faults
    written(tmp_path / "zh", body.replace("row = 1", "row = 2"))
    assert "step 1: ask differs from that of zh/01-good.md" in check_lesson(english).faults
    written(tmp_path / "zh", body + step())
    assert "it has 1 steps, and zh/01-good.md has 2" in check_lesson(english).faults


# Whoever checks one in English compares the Chinese one with it; the seventh replays a training at each of its links.
QUICK = [file for file in find_lessons(LESSONS / "en") if file.stem != "03-training"]


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=[] if file in QUICK else pytest.mark.slow) for file in find_lessons()],
    ids=lambda file: f"{file.parent.name}-{file.stem}",
)
def test_every_shipped_lesson_can_be_taught(file: Path) -> None:
    found = check_lesson(file)
    assert not found.faults
    assert 5 <= found.n_steps <= 10 and found.n_questions >= 3


# ---- what a lesson claims in numbers

# Of `hello` and its first head of cross-attention, the mirror; each is so, and is not so with what stands behind it.
CLAIMS = [
    ("writes = olleh", "hello"),
    ("text=ab: writes 1 = b", "a"),
    ("written = 6", "5"),
    ("probability 1 > 99 %", "100 %"),
    ("probability 1 a < 0.01", "−1"),
    ("log_p < 0", "−9"),
    ("decoding=forced&forced_target=olleh: taught 2 > 0.9", "1"),
    ("/masks?sources=hello&edits=cross.1.1:zero: writes = oleh", "olleh"),
    ("reads 2 = o", "l"),
    ("weight 1,6 = 1.0", "0.0"),
    ("weight 1,5 < 0.01", "−1"),
    ("looks 2 = 5·l", "6·o"),
    ("darkest 6 = 1", "2"),
    ("masked decoder.1.1 4 = 5 6", "5"),
    ("masked 1 = none", "1"),
    ("inside 1 sum > 0.99", "2"),
    ("depends 1 = 6·o", "5·l"),
    ("cause 1,6 > 1", "99"),
    ("best = cross.1.1", "cross.1.2"),
    ("name = mirror", "first"),
    ("palest > 0.9", "1"),
    ("mass > 0.9", "1.1"),
    ("hit_rate = 1", "0"),
    ("entropy decoder.2.2 < 0.5", "0"),
    ("maps = 24", "12"),
    ("checkpoint=reverse-small&text=abcdefghijkl: trained = 588", "589"),
    ("checkpoint=reverse-small&text=abcdefghijkl: lengths = 10 to 19", "1 to 9"),
    ("checkpoint=german&text=der+Hund+sieht+den+K%C3%B6nig: frequent = the", "a"),
    ("0.62 ÷ 2.69 = 0.23", "0.25"),
    ("e^(−1.09) + 2 × √16 − 1 = 7.34", "7.36"),
]


@pytest.mark.parametrize(("claim", "else_"), CLAIMS, ids=[claim for claim, _ in CLAIMS])
def test_what_a_lesson_claims_is_compared_with_its_run(claim: str, else_: str, tmp_path: Path) -> None:
    block = 'start = "/?text=hello&kind=cross&layer=1&head=1"\nask = {{ kind = "writes", row = 1 }}\nclaims = ["{}"]\n'
    assert not check_lesson(written(tmp_path, step(block.format(claim)))).faults
    said, sign, _ = claim.rpartition(f" {read_claim(claim).sign} ")
    wrong = f"{said}{sign}{else_}"
    [fault] = check_lesson(written(tmp_path, step(block.format(wrong)))).faults
    assert f"step 1: its claim {wrong!r} is not so; the run has " in fault


def test_every_kind_of_claim_is_tried_here() -> None:
    assert {*FACTS} - {*MEASURES} <= {read_claim(claim).what for claim, _ in CLAIMS}


FIGURE = re.compile(r"\d+\.\d+|\d+(?= ?%)", re.ASCII)


@pytest.mark.parametrize(
    "file", [*find_lessons(), *find_lessons(LESSONS / "zh")], ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_no_figure_of_a_shipped_lesson_stands_without_a_claim(file: Path) -> None:
    """Decimals and percentages, in the text, the question and the hints; `lesson check` says whether the claims are so."""
    for number, one in enumerate(read_lesson(file).steps, 1):
        said = [piece.text for paragraph in one.text for piece in paragraph]
        said += [*one.hints, *(() if one.ask is None else (one.ask.words, one.ask.because))]
        claimed = {figure for claim in one.claims for figure in re.findall(r"\d+(?:\.\d+)?", claim.text)}
        assert {*FIGURE.findall(" ".join(said))} <= claimed, f"step {number}"


@pytest.mark.parametrize(
    "file", [*find_lessons(), *find_lessons(LESSONS / "zh")], ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_each_question_says_why_and_names_what_its_run_has(file: Path) -> None:
    """What stands there as code is a token of the run, a place on its axes, a head, or a text that it reads or writes."""
    lesson = read_lesson(file)
    for number, one in enumerate(lesson.steps):
        if one.ask is None:
            continue
        assert one.ask.because, f"step {number + 1}"
        example = example_of((lesson.start_of(number) or Link()).address)
        assert example is not None
        attentions = example.trace.attentions.values()
        labels = {label for one in attentions for tokens in (one.queries, one.keys) for label in place_labels(tokens)}
        labels |= {head_label(layer, head) for one in attentions for layer in one.layers for head in range(one.n_heads)}
        labels |= {*example.trace.source_tokens, *example.trace.rows, *example.trace.output_tokens}
        labels |= {" ".join(example.trace.target_tokens[:place]) for place in range(example.trace.n_steps)}
        assert {*one.ask.because.split("`")[1::2]} <= labels, f"step {number + 1}"


# ---- links and what is done


@pytest.mark.parametrize(
    "text", ["", "hello", "https://x.org/?text=a", "//x.org", "/\\x.org", "/?text=a#b", "/?text=a&text=b", "/?te\nxt=a"]
)
def test_what_is_no_link_of_ours(text: str) -> None:
    with pytest.raises(LessonError):
        read_link(text)


def test_a_link_names_what_the_page_has_in_focus() -> None:
    for words in ("kind=cross&layer=2&head=1", "kind=cross-attention&layer=layer+2&head=head+1"):
        link = read_link(f"/?{words}")
        assert (link.kind, link.number("layer"), link.head) == ("cross", 2, 0)
        assert read_link(link.address) == link
    assert read_link("/?head=mean+of+heads").head == "mean"


DONE = [
    ("step 4", "/?step=2", "/?step=4", True),
    ("step 4", "/?step=2", "/?step=3", False),
    ("step 4", "/?step=2", "/", False),
    ("cell 3,5", "/", "/?pin=3,5", True),
    ("cell", "/", "/?pin=3", True),
    ("cell 3,5", "/", "/?pin=3", False),
    ("cell 3,5", "/", "/?pin=,5&step=3", True),
    ("cell 3,5", "/", "/?pin=,5&step=4", False),
    ("cell 3,5", "/", "/?pin=,3&step=3", False),
    ("head cross.2.1", "/", "/?kind=cross-attention&layer=layer+2&head=head+1", True),
    ("head cross.2.1", "/", "/?kind=decoder&layer=2&head=1", False),
    ("head", "/?head=1", "/?head=2", True),
    ("text", "/?text=a", "/?text=b", True),
    ("text", "/?text=a", "/?text=a&step=2", False),
    ("mask", "/masks", "/masks?edits=cross:1-2", True),
    ("mistake no-causal", "/masks", "/masks?mistake=wrong-sign", False),
    ("run", "/?text=a", "/?text=a&decoding=beam", True),
    ("tab Inside", "/", "/?explore_tab=Inside", True),
    ("page masks", "/", "/masks", True),
]  # fmt: skip


@pytest.mark.parametrize(("action", "before", "now", "is_done"), DONE)
def test_whether_something_is_done_stands_in_the_link(action: str, before: str, now: str, is_done: bool) -> None:
    assert read_action(action).is_done(read_link(before), read_link(now)) is is_done


# ---- what is shipped


def test_both_languages_have_the_same_lessons() -> None:
    english, chinese = ([file.name for file in find_lessons(LESSONS / language)] for language in ("en", "zh"))
    assert english == chinese and len(english) == 8


@pytest.mark.parametrize("file", find_lessons(), ids=lambda file: file.stem)
def test_a_lesson_ends_with_what_was_not_in_it(file: Path) -> None:
    *before, last = (lesson := read_lesson(file)).steps
    assert last.ask is not None and last.start is not None
    seen = {(at.values.get("checkpoint"), at.values.get("text")) for step in before if (at := step.start) is not None}
    assert (last.start.values["checkpoint"], last.start.values["text"]) not in seen, lesson.name


def test_questions_have_words_for_the_same_in_every_language() -> None:
    def names(table: dict[str, Any], prefix: str = "") -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, value in table.items():
            if isinstance(value, dict):
                found |= names(value, f"{prefix}{name}.")
            else:
                found[prefix + name] = {field for _, field, _, _ in Formatter().parse(value) if field}
        return found

    tables = [names(tomllib.loads((LESSONS / language / FILE).read_text(encoding="utf-8"))) for language in languages()]
    assert languages() == ["en", "zh"] and tables[0] == tables[1]


# ---- docs/lessons.md


def test_the_lesson_that_the_document_writes_can_be_taught(tmp_path: Path) -> None:
    front, *_ = re.findall(r"^```\n(\+\+\+\n.+?\+\+\+\n)```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    [body] = re.findall(r"^````\n(.+?)^````$", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    found = check_lesson(written(tmp_path, body, front))
    assert not found.faults and found.n_questions == 1


def test_the_document_names_all_that_a_lesson_may_say() -> None:
    for name in (*QUESTIONS, *POINTS, *VERBS, *_Block.__dataclass_fields__, *({*FACTS} - {*MEASURES})):
        assert re.search(rf"`{name}\b", DOCUMENT), name
