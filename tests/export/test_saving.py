"""Files: tables hold every weight, pictures are pictures, and a file is whole or not there."""

import html as markup
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import transformer_viz as tv
from tests.needs import needs
from transformer_viz.atomic_files import write_export
from transformer_viz.errors import ExportError, OptionError
from transformer_viz.export.content import View
from transformer_viz.export.saving import file_name
from transformer_viz.trace.trace import Trace

SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<svg", "pdf": b"%PDF-"}


@needs("chromium", "fonts-dejavu-core", "kaleido")
@pytest.mark.parametrize("format", ["svg", *(pytest.param(name, marks=pytest.mark.slow) for name in ("png", "pdf"))])
def test_a_picture_is_drawn_by_the_systems_browser(trace: Trace, format: str) -> None:
    data = tv.export.picture(trace, format, head="decoder.2.3", step=3, width=400, height=300, scale=1)
    assert data.startswith(SIGNATURES[format])
    if format == "svg":
        words = data.decode()
        assert "<i>" not in words
        assert "3·<i>→l" in markup.unescape(words)
        assert 'width="400"' in words
    if format == "png":
        assert data[16:24] == (400).to_bytes(4) + (300).to_bytes(4)


@needs("chromium", "fonts-dejavu-core", "kaleido")
def test_a_picture_for_a_paper_is_as_wide_as_its_column_with_letters_of_8_points(trace: Trace) -> None:
    words = tv.export.picture(trace, "svg", what="attention", head="cross.2.1", paper=240).decode()
    width, height, pixels = re.findall(r'width="([\d.]+)" height="([\d.]+)"[^>]*viewBox="0 0 (\d+)', words)[0]
    # A pixel of a document is 1/96 inch, a point 1/72.
    assert (0.75 * float(width), 0.75 * float(height)) == pytest.approx((240, 180), abs=0.5)
    letters = {float(size) for size in re.findall(r"font-size: ([\d.]+)px", words)}
    assert 13.0 in letters and 13 * 240 / float(pixels) == pytest.approx(8, abs=0.1)
    assert trace.source not in markup.unescape(words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "gif"}, "png, svg, pdf"),
        ({"width": 0}, "1 to 8000"),
        ({"scale": 100.0}, "1 to 8000"),
        ({"what": "everything"}, "player, attention, row, mosaic, masks, search"),
        ({"what": "search"}, "no beam search"),
        ({"theme": "blue"}, "light, dark"),
        ({"paper": 240, "format": "png"}, "width in pixels"),
        ({"paper": 240, "format": "svg"}, "takes 400 points"),
        ({"paper": 20, "format": "pdf", "what": "attention"}, "72 to 1,500"),
        ({"paper": 240, "format": "pdf", "width": 300}, "cannot be used together"),
    ],
)
def test_impossible_pictures_are_refused_before_any_browser(trace: Trace, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        tv.export.picture(trace, **options)


def test_without_kaleido_it_says_what_to_install(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    with pytest.raises(ExportError, match=r"pip install kaleido.*HTML"):
        tv.export.picture(trace)


@needs("kaleido")
def test_a_failing_browser_is_one_error_and_no_formula_is_fetched(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    import kaleido
    from kaleido.errors import ChromeNotFoundError

    asked: list[Any] = []
    failures = {r"apt install chromium.*HTML": ChromeNotFoundError("none"), r"Error: it broke\)": RuntimeError("it\nbroke")}
    for words, error in failures.items():

        def fails(figure: Any, opts: Any, kopts: Any, error: Exception = error) -> bytes:
            asked.append((figure, kopts))
            raise error

        monkeypatch.setattr(kaleido, "calc_fig_sync", fails)
        with pytest.raises(ExportError, match=words):
            tv.export.picture(trace)
    assert all(options["mathjax"] is False and "frames" not in figure for figure, options in asked)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run.webp", "does not end in"),
        ("run", "does not end in"),
        ("no/run.csv", "There is no folder"),
        ("folder.csv", "is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_said(trace: Trace, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises((OptionError, ExportError), match=words):
        tv.export.save(trace, tmp_path / name)


def test_a_file_that_is_there_stays_unless_forced(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="exists already"):
        tv.export.save(trace, path)
    assert path.read_text(encoding="utf-8") == "mine"
    tv.export.save(trace, path, force=True)
    assert path.read_bytes() == tv.export.table(trace, "csv")
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.csv"
    path.write_text("old", encoding="utf-8")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ExportError, match="No space left on device"):
        write_export(path, b"new")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("hello", "attention-hello-cross-layer2-head1-step4.png"),
        ("../../etc/passwd", "attention-etc_passwd-cross-layer2-head1-step4.png"),
        ("", "attention-run-cross-layer2-head1-step4.png"),
        ("a" * 99, f"attention-{'a' * 40}-cross-layer2-head1-step4.png"),
        ("<b>\u202e\0x", "attention-b_x-cross-layer2-head1-step4.png"),
    ],
)
def test_file_names_are_possible_everywhere(make_trace: Callable[..., Trace], source: str, name: str) -> None:
    assert file_name(make_trace(source=source), "png", View("cross", 1, 0, 3)) == name
