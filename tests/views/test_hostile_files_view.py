"""Damaged checkpoints and hostile traces on the pages: none of them takes a page down, and the others stay usable."""

import os
import random
import shutil
from pathlib import Path

import streamlit as st

from tests.fuzz import checkpoints as damaged
from tests.fuzz import traces as hostile
from tests.views.drawn import drop
from transformer_viz import checkpoints
from transformer_viz.views.components.opened import MOST_TRACES

LARGEST = 2 * 2**20
"""Bytes of a file that is dropped here: a browser's upload is not what is tested."""


def damage(folder: Path, n: int, rng: random.Random) -> int:
    """Beside the good one `n` copies of it, each damaged in a way of its own; how many of them cannot be used."""
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


def test_no_damaged_checkpoint_takes_a_page_down(start, own_folder):
    n_unusable = damage(own_folder, 5, random.Random(0))
    for page in (None, "masks", "compare", "train", "survey"):
        st.cache_resource.clear()
        at = start(page)
        if page not in ("train", "survey"):
            assert f"{n_unusable} checkpoint folder(s) cannot be used" in [found.label for found in at.expander], page


def test_no_hostile_trace_takes_the_page_down(start, tmp_path):
    good, rng, n_drawn = hostile.make_good(tmp_path), random.Random(3), 0
    files = [hostile.hostile(rng.choice(good).read_bytes(), rng)[1] for _ in range(40)]
    small = [(f"{i}.npz", data) for i, data in enumerate(files) if len(data) < LARGEST]
    for first in range(0, len(small), MOST_TRACES):
        at = drop(start(checkpoint="trace file"), *small[first : first + MOST_TRACES])
        names = list(at.session_state["opened"]) if "opened" in at.session_state else []
        for name in names:
            at.selectbox(key="open_name").select(name).run()
        n_drawn += len(names)
    assert n_drawn >= 8
