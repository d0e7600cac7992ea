"""A survey in this process: its files, how it goes on, and what it does not touch."""

import errno
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import transformer_viz as tv
from tests.folders import contents
from tests.surveys.conftest import texts
from transformer_viz import locks
from transformer_viz.errors import InputError, OptionError, SurveyError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.surveys import survey as surveying
from transformer_viz.surveys.result import Survey
from transformer_viz.surveys.survey import Progress

CORPUS = texts(130)


def run(model: str | LoadedModel, output: Path | None, corpus: Any = CORPUS, **options: Any) -> Survey:
    given: dict[str, Any] = {"workers": 1, "verdict_texts": 1, "device": "cpu", **options}
    return tv.survey(model, corpus, output=output, **given)


@pytest.fixture(scope="module")
def made(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a survey that nothing disturbs; nobody writes into it."""
    folder = tmp_path_factory.mktemp("made")
    run(str(home / "tiny"), folder)
    return folder


@pytest.fixture
def straight(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "straight")


def end_after(n: int) -> Callable[[Progress], None]:
    told = count()

    def hear(progress: Progress) -> None:
        if next(told) == n:
            raise InterruptedError

    return hear


def test_wherever_it_is_ended_it_goes_on_to_the_same_bytes(straight, tiny_name, tmp_path):
    wanted, seen = contents(straight), set()
    blocks = {f"blocks/00000{number}.safetensors" for number in range(3)}
    assert set(wanted) == {*blocks, "verdicts/000000.json", "survey.json", "summary.json", "survey.parquet"}
    for n in (0, 2, 3):
        output = tmp_path / "ended" / str(n)
        with pytest.raises(InterruptedError):
            run(tiny_name, output, on_progress=end_after(n))
        seen.add(len(contents(output)))
        run(tiny_name, output)
        assert contents(output) == wanted
    assert len(seen) == 3 and max(seen) < len(wanted)


@pytest.mark.parametrize(
    "other", [{"corpus": [*CORPUS, *texts(10, seed=1)]}, {"k": 4, "by": "entropy"}], ids=["lines", "lists"]
)
def test_what_is_done_is_not_done_again_with_lines_that_are_added_or_other_lists_of_texts(other, straight, tiny_name, tmp_path):
    done = [straight / "blocks" / f"00000{number}.safetensors" for number in range(2 if "corpus" in other else 3)]
    before = [path.stat().st_mtime_ns for path in done]
    run(tiny_name, straight, **other)
    run(tiny_name, tmp_path / "new", **other)
    assert contents(straight) == contents(tmp_path / "new")
    assert [path.stat().st_mtime_ns for path in done] == before


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("blocks/000001.safetensors", "cut"),
        ("blocks/000001.safetensors", "another's"),
        ("verdicts/000000.json", "cut"),
        ("verdicts/000000.json", "a pipe"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_made_again(how, name, straight, tiny_name):
    wanted, path = contents(straight), straight / name
    data = path.read_bytes()
    path.unlink()
    if how == "a pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(data[:-3] if how == "cut" else (straight / "blocks/000000.safetensors").read_bytes())
    run(tiny_name, straight)
    assert contents(straight) == wanted


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_length": 5}, "begun with another max_length"),
        ({"verdict_texts": 2, "seed": 1}, "begun with another seed, verdict_texts"),
        ({"corpus": texts(130, seed=1)}, "begun with another texts"),
        ({"model": "reverse-small"}, "begun with another model"),
    ],
)
def test_the_folder_of_another_survey_is_left_alone(change, said, straight, tiny_name):
    before = contents(straight)
    with pytest.raises(OptionError, match=said):
        run(**{"model": tiny_name, "output": straight, **change})
    assert contents(straight) == before


def test_what_is_no_folder_of_a_survey_is_left_alone(straight, tiny_name, tmp_path):
    """Something else, a link, a file, a folder of blocks that is elsewhere, and one where another survey writes."""
    (tmp_path / "mine").mkdir()
    for name in ("mine/letter", "file"):
        (tmp_path / name).write_text("dear")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (straight / "verdicts").rename(tmp_path / "verdicts")
    (straight / "verdicts").symlink_to(tmp_path / "verdicts")
    before = contents(tmp_path)
    wanted = [("mine", "in use for 'letter'"), ("file", "is no folder"), ("link", "is no folder"), ("straight", "is a link")]
    for name, said in wanted:
        with pytest.raises(OptionError, match=said):
            run(tiny_name, tmp_path / name)
    with pytest.raises(SurveyError, match="cannot be written"):
        run(tiny_name, tmp_path / "file" / "new")
    assert contents(tmp_path) == before and not (tmp_path / "nowhere").exists()
    with locks.hold_lock(straight / ".lock"), pytest.raises(OptionError, match="Another survey is writing"):
        run(tiny_name, straight)


@pytest.mark.parametrize(("n", "n_left"), [(0, 0), (2, 1), (6, 4)])
def test_a_full_disk_is_said_and_what_is_done_is_kept(n, n_left, straight, tiny_name, tmp_path, monkeypatch):
    """Full at the n-th file: what the folder is, a block, the verdicts, or a result."""
    wanted, written, write = contents(straight), count(), surveying.write_bytes

    def full(data: bytes, path: Path) -> None:
        if next(written) == n:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(data, path)

    with monkeypatch.context() as patched:
        patched.setattr(surveying, "write_bytes", full)
        with pytest.raises(SurveyError, match=r"No space left on device.*goes on"):
            run(tiny_name, tmp_path / "new")
    left = contents(tmp_path / "new")
    assert len([name for name in left if "/" in name]) == n_left
    assert not list((tmp_path / "new").rglob(".*"))
    run(tiny_name, tmp_path / "new")
    assert contents(tmp_path / "new") == wanted


def test_texts_that_cannot_be_read_are_counted_and_named_and_the_rest_goes_on(tiny_name, tmp_path):
    (tmp_path / "texts.txt").write_bytes(b"abc\n\nxyz\n\xff\n" + b"a" * 200_000 + b"\nabcd\n")
    found = run(tiny_name, tmp_path / "new", tmp_path / "texts.txt", verdict_texts=2).texts
    assert (found.source, found.n, found.n_read, found.n_failed) == ("texts.txt", 6, 2, 4)
    assert [each.line for each in found.failed] == [2, 3, 4, 5]
    assert "is empty" in found.failed[0].why and "“x”" in found.failed[1].why
    with pytest.raises(InputError, match="None of 2 texts can be read; line 1: "):
        run(tiny_name, None, ["xyz", ""])


def test_a_loaded_model_is_surveyed_here_and_nothing_is_kept_without_a_folder(straight, tiny_name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before, model = set(tmp_path.rglob("*")), tv.load_checkpoint(tiny_name, "cpu")
    assert run(model, None, workers=None).to_json() == (straight / "summary.json").read_text(encoding="utf-8")
    assert set(tmp_path.rglob("*")) == before
    for other in ({"workers": 2}, {"ray": "auto"}):
        with pytest.raises(OptionError, match="give its name"):
            run(model, None, **other)


def test_held_out_texts_are_those_of_the_evaluation(tiny_name):
    model = tv.load_checkpoint(tiny_name, "cpu")
    n = model.task.least_samples() + 3
    given, same = [text for _, text in model.task.judged(n, 3)], {"seed": 3, "verdict_texts": 0}
    found = run(tiny_name, None, None, held_out=n, **same)
    assert (found.texts.n, found.texts.source) == (len(given), "fresh, seed 3")
    assert found.texts.digest == run(tiny_name, None, given, **same).texts.digest


def test_impossible_options_are_refused_before_anything_runs(tiny_name, tmp_path, monkeypatch):
    impossible: list[tuple[dict[str, Any], str]] = [
        ({"k": 0}, "k=0 is not possible"),
        ({"verdict_texts": -1}, "verdict_texts=-1"),
        ({"by": "nothing"}, "nothing"),
        ({"mode": "luck"}, "mode='luck' is not possible; it is one of word, position, deleted"),
        ({"workers": 10**6}, "from 1 to 1024"),
        ({"gpus_per_worker": 1}, "workers of Ray"),
        ({"held_out": 50}, "either texts, or held_out"),
        ({"corpus": None}, "either texts, or held_out"),
        ({"corpus": None, "held_out": 1}, "held_out=1 is not possible; it is a whole number from"),
        ({"corpus": None, "held_out": 50, "targets": ["a"]}, "targets need texts"),
    ]
    for wrong, said in impossible:
        with pytest.raises(OptionError, match=said):
            run(**{"model": tiny_name, "output": tmp_path / "new", **wrong})
    monkeypatch.setattr(devices, "memory_of_machine", lambda: 10**9)
    with pytest.raises(OptionError, match=r"4 workers need about 2 GB of memory, and 1 GB are free; take at most 1"):
        run(tiny_name, tmp_path / "new", workers=4)
    assert not contents(tmp_path)
