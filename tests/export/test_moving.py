"""Moving pictures: the frames and times of the file, read here anew."""

import struct
from pathlib import Path

import pytest

import transformer_viz as tv
from tests.needs import needs
from transformer_viz import export
from transformer_viz.errors import ExportError, OptionError
from transformer_viz.export.moving import gif
from transformer_viz.trace.trace import Trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return tv.decode(tv.load_model("reverse"), "ab")


def times(data: bytes) -> list[int]:
    """Hundredths of a second of each frame, by walking through the blocks of a GIF89a."""
    place, found = 13 + 3 * 2 ** ((data[10] & 7) + 1), []
    while data[place] != 0x3B:
        if data[place] == 0x21:
            if data[place + 1] == 0xF9:
                found.append(struct.unpack("<H", data[place + 4 : place + 6])[0])
            place += 2
        else:
            assert data[place] == 0x2C
            place += 11
        while data[place]:
            place += 1 + data[place]
        place += 1
    return found


@needs("chromium", "fonts-dejavu-core", "kaleido")
@pytest.mark.browser
def test_a_run_is_a_picture_that_moves(trace: Trace, tmp_path: Path) -> None:
    file = export.animation(trace, tmp_path / "ab.gif", shape="square", width=300, seconds=0.5, theme="dark")
    data = file.read_bytes()
    assert data.startswith(b"GIF89a")
    assert struct.unpack("<HH", data[6:10]) == (300, 300)
    # Three of each step, and all at the end.
    assert times(data) == [9, 9, 32] * trace.n_steps + [180]
    other = gif(trace, "cross.1.2", width=300)
    assert struct.unpack("<HH", other[6:10]) == (300, 169)
    with pytest.raises(ExportError, match="exists already"):
        export.animation(trace, file)


@needs("chromium", "kaleido")
@pytest.mark.browser
def test_what_has_no_room_is_refused() -> None:
    with pytest.raises(OptionError, match=r"33 source tokens and 1 steps are not possible.*32 source and 32 written"):
        gif(tv.Trace.from_arrays(cross=[[[[1 / 33] * 33]]], source_tokens=["a"] * 33, target_tokens=["b"]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": "round"}, "wide, square"),
        ({"width": 9}, "100 to"),
        ({"seconds": 0}, "0.05 to 60"),
        ({"head": "cross.9.1"}, "9"),
    ],
)
def test_impossible_options_are_refused_before_any_browser(trace: Trace, options: dict, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        gif(trace, **options)


def test_another_ending_is_refused(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"does not end in \.gif"):
        export.animation(trace, tmp_path / "a.webp")
    with pytest.raises(OptionError, match="step is not of a moving picture"):
        export.save(trace, tmp_path / "a.gif", step=1)
