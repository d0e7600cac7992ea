"""Files of a survey that are damaged or made by strangers: refused with a SurveyError, or whole."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from tests.survey.runs import blocks_of
from tests.trace.fuzz_program import VALUES, bits, cut, doubled
from transformer_viz.analysis.survey.partial import load_partial
from transformer_viz.analysis.survey.verdicts import load_verdicts
from transformer_viz.errors import SurveyError
from transformer_viz.surveying.on_block import survey_block
from transformer_viz.surveying.options import SurveyOptions


@pytest.fixture(scope="module")
def block(make_model, make_tiny) -> bytes:
    (block,) = blocks_of(["helo", "ZZ", "abcd"])
    small = make_tiny(make_model(4, n_heads=2, n_encoder_layers=1, n_decoder_layers=1))
    return survey_block(small, block, SurveyOptions()).to_bytes("digest")


def changed(found: Any, rng: random.Random) -> Any:
    """A value somewhere inside replaced, left out or doubled."""
    if isinstance(found, dict) and found and rng.random() < 0.9:
        name = rng.choice(sorted(found))
        if rng.random() < 0.05:
            return {key: value for key, value in found.items() if key != name}
        return {**found, name: changed(found[name], rng)}
    if isinstance(found, list) and found and rng.random() < 0.9:
        i = rng.randrange(len(found))
        if rng.random() < 0.1:
            return found[:i] + found[i + 1 :] if rng.random() < 0.5 else [*found, found[i]]
        return [*found[:i], changed(found[i], rng), *found[i + 1 :]]
    return rng.choice(VALUES)


@pytest.mark.parametrize("n", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_bit_of_a_block_falls_unseen(block, tmp_path, n):
    """A file that is not what was written is run again: whatever is changed in it is seen."""
    path, rng = tmp_path / "block", random.Random(0)
    path.write_bytes(block)
    assert load_partial(path, "digest").to_bytes("digest") == block
    for _ in range(n):
        data = rng.choice((bits, cut, doubled))(block, rng)
        if data == block:
            continue
        path.write_bytes(data)
        for load in (load_partial, load_verdicts):
            with pytest.raises(SurveyError):
                load(path, "digest")


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("cross.counts", (0, 0, 0, 0), 1, "bins or roles do not add up"),
        ("cross.roles", (0, 0, 0), 7, "bins or roles do not add up"),
        ("cross.sums", (2, 0, 0), np.nan, "one that is none"),
        ("cross.squares", (2, 0, 0), -1.0, "below 0"),
        ("cross.lowest", (2, 0, 0), np.inf, "not below its largest"),
        ("cross.values", (1, 0, 0, 0), np.inf, "infinite"),
        ("cross.agreed", (0, 1), 5.0, "do not add up"),
        ("outputs.n_right", (0,), 99, "more is right"),
        ("outputs.right", (0,), 99, "more is right"),
    ],
)
def test_what_does_not_add_up_is_refused(block, tmp_path, name, place, value, words):
    about, arrays = read(block, tmp_path / "good")
    array = arrays[name].copy()
    array[place] += value
    data = {**arrays, name: array}
    text = json.dumps(about)
    (tmp_path / "block").write_bytes(save(data, {"survey": f"{checksum(text, data)} {text}"}))
    with pytest.raises(SurveyError, match=words):
        load_partial(tmp_path / "block")


def read(data: bytes, path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    path.write_bytes(data)
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["survey"].partition(" ")[2])
        return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@pytest.mark.parametrize("n", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_blocks_of_strangers(block, tmp_path, n):
    """With a checksum that fits: what loads is written again as it is, and every number in it is one."""
    about, arrays = read(block, tmp_path / "good")
    path, rng, counts = tmp_path / "block", random.Random(0), {"refused": 0, "loaded": 0}
    for _ in range(n):
        said, own = about, dict(arrays)
        if rng.random() < 0.5:
            said = changed(about, rng)
        else:
            name = rng.choice(sorted(own))
            array = own[name].copy()
            flat = array.reshape(-1)
            with np.errstate(all="ignore"):
                if len(flat) and rng.random() < 0.7:
                    flat[rng.randrange(len(flat))] = rng.choice((0, 1, 2, -1, 2**62, 0.5))
                else:
                    other = rng.choice((array[..., :0], array.T, array.astype("float32"), array[None], array.astype("uint8")))
                    array = np.ascontiguousarray(other)
            own[rng.choice((name, name, name, "x", "cross.n"))] = array
        text = json.dumps(said)
        path.write_bytes(save(own, {"survey": f"{checksum(text, own)} {text}"}))
        try:
            found = load_partial(path)
        except SurveyError:
            counts["refused"] += 1
            continue
        counts["loaded"] += 1
        for kind in found.kinds.values():
            assert np.isfinite(kind.sums).all() and kind.n.min() >= 0
    assert min(counts.values()) > n / 50, counts


def checksum(text: str, arrays: dict[str, np.ndarray]) -> str:
    """As a stranger would compute it, who read the program."""
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return found.hexdigest()
