"""Damaged checkpoints and hostile traces on the pages: none of them takes a page down, and the others stay usable."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.fuzz import checkpoints as damaged
from tests.fuzz import traces as hostile
from transformer_viz import checkpoints
from transformer_viz.views.components.opened import MOST_TRACES

PAGES = (None, "masks", "compare", "train", "survey")
LARGEST = 2 * 2**20
"""Bytes of a file that is dropped here: a browser's upload is not what is tested."""


def damage(folder: Path, n: int, seed: int) -> int:
    """Beside the good one `n` copies of it, each damaged in a way of its own; how many of them cannot be used."""
    rng = random.Random(seed)
    for i in range(n):
        copy = folder / f"bad-{i}"
        shutil.copytree(folder / "reverse", copy)
        (copy / "snapshots").mkdir()
        for name in (copy / "snapshots" / "step-000001.safetensors", copy / "training.safetensors"):
            shutil.copy(copy / "model.safetensors", name)
        damaged.WAYS[rng.choice(damaged.OFTEN)](copy, rng)
    # The ones that hung the server, or took every page down.
    for name, make in (("pipe", os.mkfifo), ("endless", lambda path: path.symlink_to("/dev/zero"))):
        for file in ("config.json", "model.safetensors"):
            copy = folder / f"{name}-{file.split('.', maxsplit=1)[0]}"
            shutil.copytree(folder / "reverse", copy)
            (copy / file).unlink()
            make(copy / file)
    copy = folder / "null"
    shutil.copytree(folder / "reverse", copy)
    text = (copy / "config.json").read_text(encoding="utf-8")
    (copy / "config.json").write_text(text.replace('"n_encoder_layers": 1', '"n_encoder_layers": null'), encoding="utf-8")
    (copy / "broken.link").symlink_to("nowhere")
    (folder / "reverse" / "broken.link").symlink_to("nowhere")
    return sum(entry.error is not None for entry in checkpoints.entries())


def see_pages(start: Callable[..., AppTest], n_unusable: int) -> None:
    for page in PAGES:
        st.cache_data.clear()
        at = start(page)
        assert not at.exception, page
        if page not in ("train", "survey"):
            assert f"{n_unusable} checkpoint folder(s) cannot be used" in [found.label for found in at.expander], page


def test_no_damaged_checkpoint_takes_a_page_down(start: Callable[..., AppTest], own_folder: Path) -> None:
    see_pages(start, damage(own_folder, 5, 0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_nor_do_very_many(start: Callable[..., AppTest], own_folder: Path, seed: int) -> None:
    see_pages(start, damage(own_folder, 40, seed))


def drop_hostile(start: Callable[..., AppTest], tmp_path: Path, n: int, seed: int) -> int:
    """How many of `n` files were drawn; each is looked at."""
    good, rng = hostile.make_good(tmp_path), random.Random(seed)
    files = [hostile.hostile(rng.choice(good).read_bytes(), rng)[1] for _ in range(n)]
    small = [(f"{i}.npz", data, "application/octet-stream") for i, data in enumerate(files) if len(data) < LARGEST]
    drawn = 0
    for first in range(0, len(small), MOST_TRACES):
        at = start(checkpoint="trace file")
        at.file_uploader[0].set_value(small[first : first + MOST_TRACES]).run()
        assert not at.exception
        if "opened" not in at.session_state:
            continue
        names = list(at.session_state["opened"])
        for name in names:
            at.selectbox(key="open_name").select(name).run()
            assert not at.exception, name
        drawn += len(names)
    return drawn


def test_no_hostile_trace_takes_the_page_down(start: Callable[..., AppTest], tmp_path: Path) -> None:
    assert drop_hostile(start, tmp_path, 40, 3) >= 8


@pytest.mark.slow
def test_nor_do_a_hundred(start: Callable[..., AppTest], tmp_path: Path) -> None:
    assert drop_hostile(start, tmp_path, 100, 4) > 20
