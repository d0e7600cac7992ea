"""Checkpoints on disk: a folder with `config.json`, `model.safetensors` and `history.csv`.

JSON and safetensors only, so nothing in a checkpoint can run. A folder is written beside its
place and renamed into it, so a half-written one is never seen under its name. A damaged folder is
refused with the reason and leaves the others usable.
"""

import json
import math
import os
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from transformer_viz import places, reading, tasks
from transformer_viz.errors import CheckpointError, ConfigError, FileError, listed, quoted
from transformer_viz.model.architecture import Architecture, architecture_of
from transformer_viz.model.config import MAX_POSITIONS, ModelConfig
from transformer_viz.places import FOLDERS_VARIABLE
from transformer_viz.switches import Switches
from transformer_viz.task_tokenizer import TaskTokenizer
from transformer_viz.tasks import Task
from transformer_viz.vocabulary import Vocabulary
from transformer_viz.writing import new_folder, write_tensors, write_text

# Finding and describing one needs no torch: what is not there is said before torch is imported.
if TYPE_CHECKING:
    import torch

    from transformer_viz.model.transformer import Transformer

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SNAPSHOT = re.compile(r"step-(\d{1,9})\.safetensors")
_PARTS = {"format": int, "variant": str, "model": dict, "task": dict, "vocabularies": dict, "recipe": dict, "metrics": dict}
LARGEST_CONFIG = 4 * 2**20
_LARGEST_WEIGHTS, _LARGEST_HEADER = 8 * 2**30, 2**20
"""Bytes of a file of weights, and of the names and shapes in it: 64 + 64 layers take a third of that."""
_LONGEST_TOKEN = 200


@dataclass(frozen=True)
class Checkpoint:
    """A model that is ready to run, with the task it was trained for."""

    name: str
    folder: Path
    model: "Transformer"
    task: Task
    variant: str
    recipe: Mapping[str, Any]
    metrics: Mapping[str, Any]
    device: "torch.device"
    """The device that the model is on."""
    snapshot: int | None = None
    """The step of its training; None = its end."""

    default_total_length = None
    generation = MappingProxyType[str, Any]({})
    languages = ()
    switches = Switches()

    def switched(self, switches: Switches) -> "Checkpoint":
        """Itself: nothing is to be chosen of how it reads and writes."""
        return self

    @cached_property
    def device_title(self) -> str:
        """The device's name for people."""
        from transformer_viz.model import devices

        return devices.title(self.device)

    @cached_property
    def tokenizer(self) -> TaskTokenizer:
        """The task's vocabularies."""
        return TaskTokenizer(self.task)

    @property
    def default_max_length(self) -> int:
        """The task's longest answer and its end."""
        return min(self.task.max_target_length + 1, self.model.config.max_positions)

    @property
    def architecture(self) -> Architecture:
        """Of its configuration."""
        return architecture_of(self.model.config)

    @cached_property
    def n_parameters(self) -> int:
        """Trained numbers in the model. Counted once: walking through the modules takes as long as a step of decoding."""
        return sum(parameter.numel() for parameter in self.model.parameters())


@dataclass(frozen=True)
class Entry:
    """A checkpoint folder that was found, loadable or not."""

    name: str
    folder: Path
    summary: Mapping[str, Any]
    """The parsed `config.json`; empty when there is an error."""
    error: str | None = None
    n_parameters: int = 0
    n_bytes: int = 0
    """Of the file of weights."""


def trained_folder() -> Path:
    """Where `train` puts what has no other place."""
    return places.trained()


def folders() -> list[Path]:
    """Where names are looked up, first match wins."""
    more = os.environ.get(FOLDERS_VARIABLE)
    return [places.ROOT / "checkpoints", trained_folder(), *([Path(more)] if more else [])]


def entries() -> list[Entry]:
    """Every checkpoint that can be named, in the order of the look-up; damaged ones carry their error."""
    return [_entry(folder) for folder in _folders_by_name().values()]


def names() -> list[str]:
    """Of all that can be named, damaged ones too; nothing in them has been looked at."""
    return list(_folders_by_name())


def _folders_by_name() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for parent in folders():
        for folder in reading.inside(parent):
            if reading.is_folder(folder) and _NAME.fullmatch(folder.name):
                found.setdefault(folder.name, folder)
    return found


def is_name(text: str) -> bool:
    """Whether a checkpoint could have this name."""
    return _NAME.fullmatch(text) is not None


def find(name: str) -> Path:
    """The folder of a checkpoint's name, or of a path with a separator in it.

    Raises:
        CheckpointError: there is none; the message lists the known names.
    """
    if "/" in name or os.sep in name:
        folder = Path(name)
        if not reading.is_folder(folder):
            raise CheckpointError(
                f"There is no checkpoint folder {name!r}. Give a folder that holds config.json and model.safetensors."
            )
        return folder
    return find_name(name)


def find_name(name: str) -> Path:
    """Like `find`, but names only: what a stranger types never becomes a path."""
    if _NAME.fullmatch(name):
        for parent in folders():
            if reading.is_folder(parent / name):
                return parent / name
    known = listed(names())
    raise CheckpointError(
        f"There is no checkpoint {name!r}. Known are {known}. A folder elsewhere needs a path separator, as in ./{name}."
    )


def load_checkpoint(name: str, device: str = "auto") -> Checkpoint:
    """Loads a checkpoint by its name or folder onto a device (`auto`, `cpu`, `cuda` or `mps`).

    Raises:
        CheckpointError: missing, truncated, tampered with, or made by something else.
        DeviceError, OptionError: the device is not there, or not known.
    """
    from transformer_viz.model import devices

    folder = find(name)
    where = devices.resolve(device)
    data = _read_config(folder)
    config, task = _parsed(folder, data)
    return Checkpoint(
        name=folder.name,
        folder=folder,
        model=_model(folder / "model.safetensors", config, where),
        task=task,
        variant=str(data["variant"]),
        recipe=data["recipe"],
        metrics=data["metrics"],
        device=where,
    )


def task_of(name: str) -> Task:
    """The task of a checkpoint, by its name or folder; its weights are not looked at.

    Raises:
        CheckpointError: missing, or its description is damaged.
    """
    folder = find(name)
    return _parsed(folder, _read_config(folder))[1]


def snapshots(folder: Path) -> dict[int, Path]:
    """Weights along the training of a checkpoint: step -> file, in order."""
    found = {}
    for path in reading.inside(folder / "snapshots"):
        if (match := _SNAPSHOT.fullmatch(path.name)) and reading.is_file(path):
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def load_snapshot(checkpoint: Checkpoint, step: int) -> Checkpoint:
    """The checkpoint as it was after `step` steps of its training, on the same device.

    Raises:
        CheckpointError: there is no such snapshot, or it is damaged.
    """
    known = snapshots(checkpoint.folder)
    if step not in known:
        raise CheckpointError(
            f"{checkpoint.name} has no snapshot of step {step!r}; it has {listed(known) if known else 'none'}."
        )
    return replace(checkpoint, model=_model(known[step], checkpoint.model.config, checkpoint.device), metrics={}, snapshot=step)


def _model(path: Path, config: ModelConfig, device: "torch.device") -> "Transformer":
    """A model with the weights of a file, ready to run."""
    from transformer_viz.model import devices
    from transformer_viz.model.transformer import Transformer

    with _weights(path, config) as file, devices.memory_errors(device):
        model = Transformer(config)
        model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        model.to(device).eval().requires_grad_(False)
    if not all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
        raise CheckpointError(f"{_place(path)} holds numbers that are not finite. Train it again or copy it again.")
    return model


def save_checkpoint(
    folder: Path,
    model: "Transformer",
    task: Task,
    *,
    variant: str,
    recipe: Mapping[str, Any],
    metrics: Mapping[str, Any],
    history: Iterable[Mapping[str, Any]] = (),
    replace: bool = False,
) -> None:
    """Writes a checkpoint folder in one move.

    Raises:
        CheckpointError: the folder exists and `replace` is false.
    """
    refuse_existing(folder, replace)
    with new_folder(folder) as made:
        write_text(description(model, task, variant, recipe, metrics), made / "config.json")
        write_tensors(model.state_dict(), made / "model.safetensors")
        write_text(csv(list(history)), made / "history.csv")


def description(model: "Transformer", task: Task, variant: str, recipe: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """The text of `config.json`."""
    data = {
        "format": FORMAT,
        "variant": variant,
        "model": asdict(model.config),
        "task": {"name": task.name, "options": task.options()},
        "vocabularies": {"source": list(task.source_vocabulary.tokens), "target": list(task.target_vocabulary.tokens)},
        "recipe": dict(recipe),
        "metrics": dict(metrics),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def refuse_existing(folder: Path, replace: bool) -> None:
    """Raises a CheckpointError when `folder` is there and may not be replaced."""
    if folder.exists() and not replace:
        raise CheckpointError(f"{folder} exists already. Choose another folder with -o, or replace it with --force.")


def _entry(folder: Path) -> Entry:
    try:
        data = _read_config(folder)
        config, _ = _parsed(folder, data)
        with _weights(folder / "model.safetensors", config):
            n_parameters = sum(math.prod(shape) for _, shape in _shapes(config))
    except CheckpointError as error:
        return Entry(folder.name, folder, {}, str(error))
    return Entry(folder.name, folder, data, None, n_parameters, reading.size_of(folder / "model.safetensors"))


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        data = reading.json_of(folder / "config.json", LARGEST_CONFIG)
    except FileNotFoundError:
        raise CheckpointError(f"{folder.name}: config.json is missing. Copy the whole folder again.") from None
    except FileError as error:
        raise CheckpointError(f"{folder.name}: config.json cannot be read: {error}. Copy the folder again.") from error
    if not isinstance(data, dict) or any(not isinstance(data.get(key), kind) for key, kind in _PARTS.items()):
        raise CheckpointError(f"{folder.name}: config.json is not that of a checkpoint; it needs {listed(_PARTS)}.")
    if isinstance(data["format"], bool) or data["format"] != FORMAT:
        raise CheckpointError(
            f"{folder.name}: format {quoted(data['format'])} is not known; this version reads format {FORMAT}. "
            "Update the program."
        )
    if not _NAME.fullmatch(data["variant"]):
        raise CheckpointError(f"{folder.name}: config.json names the variant {quoted(data['variant'])}, which is no name.")
    return data


def _parsed(folder: Path, data: Mapping[str, Any]) -> tuple[ModelConfig, Task]:
    """The model's configuration and the task, and that they belong together."""
    try:
        config = ModelConfig.from_json(data["model"])
        task = tasks.make(data["task"].get("name"), data["task"].get("options"), _vocabularies(data["vocabularies"]))
    except (ConfigError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder.name}: config.json is not possible: {error}") from error
    for side, vocabulary, size in (
        ("source", task.source_vocabulary, config.source_vocabulary_size),
        ("target", task.target_vocabulary, config.target_vocabulary_size),
    ):
        if data["vocabularies"].get(side) != list(vocabulary.tokens) or len(vocabulary) != size:
            raise CheckpointError(
                f"{folder.name}: the {side} vocabulary does not fit the task {task.name!r} with {len(vocabulary)} tokens."
            )
    if not _is_usable(data["metrics"], data["recipe"], config):
        raise CheckpointError(
            f"{folder.name}: the metrics or the recipe in config.json are not of this model. Train or copy it again."
        )
    return config, task


def _vocabularies(data: Mapping[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Those that the checkpoint was trained with: a task that makes its own from data may not have the data here."""
    sides: list[Any] = [data.get(side) for side in ("source", "target")]
    if not all(isinstance(side, list) and all(isinstance(token, str) for token in side) for side in sides):
        raise ConfigError("a vocabulary is not a list of tokens")
    if longest := [token for side in sides for token in side if len(token) > _LONGEST_TOKEN]:
        raise ConfigError(f"a token has {len(longest[0]):,} characters, and at most {_LONGEST_TOKEN} can be drawn")
    source, target = (Vocabulary(tuple(side)) for side in sides)
    return source, target


def _is_usable(metrics: Mapping[str, Any], recipe: Mapping[str, Any], config: ModelConfig) -> bool:
    """Whether what the program reads out of a stranger's metrics and recipe has the types that it needs."""
    best: Any = metrics.get("best_head")
    failures: Any = metrics.get("failures", [])
    return (
        (best is None or _is_head(best, config))
        and all(_is_number(metrics[name]) for name in ("exact_match", "best_head_mass", "samples") if name in metrics)
        and isinstance(metrics.get("judged_by", ""), str)
        and isinstance(failures, list)
        and all(isinstance(failure, dict) and isinstance(failure.get("source"), str) for failure in failures)
        and _is_number(recipe.get("sharpness", 0))
        and isinstance(recipe.get("lengths", ""), str)
        and _is_whole(recipe.get("longest", 1), 1, MAX_POSITIONS)
    )


def _is_head(place: Any, config: ModelConfig) -> bool:
    """Whether it names a head of the decoder."""
    return (
        isinstance(place, dict)
        and _is_whole(place.get("layer"), 0, config.n_decoder_layers - 1)
        and _is_whole(place.get("head"), 0, config.n_heads - 1)
    )


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: Any) -> bool:
    """Whether it can be drawn and printed; true and false are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _place(path: Path) -> str:
    """`reverse: model.safetensors`, for messages."""
    folder = path.parent.parent if path.parent.name == "snapshots" else path.parent
    return f"{folder.name}: {path.relative_to(folder)}"


@contextmanager
def _weights(path: Path, config: ModelConfig) -> Generator[Any]:
    """An open file of weights whose names and shapes are the configuration's: it is compared before memory is taken."""
    place = _place(path)
    wanted = {name: list(shape) for name, shape in _shapes(config)}
    try:
        with reading.tensors(path, _LARGEST_WEIGHTS, _LARGEST_HEADER) as file:
            given = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            types = {str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118
            if given != wanted:
                raise CheckpointError(f"{place} does not fit config.json: {_difference(given, wanted)}.")
            if not types <= {"F32", "F16", "BF16", "F64"}:
                raise CheckpointError(f"{place} holds numbers of type {listed(sorted(types))}; floating point is needed.")
            yield file
    except FileNotFoundError:
        raise CheckpointError(f"{place} is missing. Copy the whole folder again.") from None
    except FileError as error:
        raise CheckpointError(f"{place} is damaged or cut off: {error}. Copy it again.") from error


@lru_cache(maxsize=32)
def _shapes(config: ModelConfig) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Names and shapes of a model's weights; kept, because many snapshots of one model are checked in a row."""
    import torch

    from transformer_viz.model.transformer import Transformer

    with torch.device("meta"):
        return tuple((name, tuple(tensor.shape)) for name, tensor in Transformer(config).state_dict().items())


def _difference(given: Mapping[str, list[int]], wanted: Mapping[str, list[int]]) -> str:
    parts = []
    if missing := sorted(set(wanted) - set(given)):
        parts.append(f"missing {_some(missing)}")
    if unexpected := sorted(set(given) - set(wanted)):
        parts.append(f"unexpected {_some(unexpected)}")
    shapes = [f"{n} is {given[n]} and should be {wanted[n]}" for n in sorted(set(given) & set(wanted)) if given[n] != wanted[n]]
    if shapes:
        parts.append(_some(shapes))
    return "; ".join(parts)


def _some(names: list[str], most: int = 4) -> str:
    # A name that anyone may have written: one that is no ordinary one is quoted, and so shown on one line.
    shown = [name if name.isprintable() and len(name) <= 120 else quoted(name) for name in names[:most]]
    return listed(shown) + (f" and {len(names) - most} more" if len(names) > most else "")


def csv(rows: list[Mapping[str, Any]]) -> str:
    """Rows of numbers as text, with every column that one of them has; what a row does not have stays empty."""
    if not rows:
        return ""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [",".join(columns)]
    lines += [",".join("" if row.get(c) is None else f"{row[c]:.6g}" for c in columns) for row in rows]
    return "\n".join(lines) + "\n"
