"""Checkpoints on disk: a folder with `config.json`, `model.safetensors` and `history.csv`.

JSON and safetensors only, so nothing in a checkpoint can run. A folder is written beside its
place and renamed into it, so a half-written one is never seen under its name. A damaged folder is
refused with the reason and leaves the others usable.
"""

import json
import math
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from transformer_viz import app_folders, tasks, untrusted_files
from transformer_viz.app_folders import FOLDERS_VARIABLE
from transformer_viz.atomic_files import new_folder, write_tensors, write_text
from transformer_viz.errors import CheckpointError, ConfigError, FileError, join_names, short_repr
from transformer_viz.loaded_model import in_one_line
from transformer_viz.model.architecture import Architecture, architecture_of
from transformer_viz.model.config import MAX_POSITIONS, ModelConfig
from transformer_viz.model_options import ModelOptions
from transformer_viz.schema import Count, Range, read_value, to_plain
from transformer_viz.task_tokenizer import TaskTokenizer
from transformer_viz.tasks import Task
from transformer_viz.vocabulary import Vocabulary

# Checkpoints are found and described without torch, so that a wrong name is refused before torch is imported.
if TYPE_CHECKING:
    import torch

    from transformer_viz.model.transformer import Transformer

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SNAPSHOT = re.compile(r"step-(\d{1,9})\.safetensors")
LARGEST_CONFIG = 4 * 2**20
_LARGEST_WEIGHTS, _LARGEST_HEADER = 8 * 2**30, 2**20
"""Bytes of a file of weights, and of the names and shapes in it: 64 + 64 layers take a third of that."""
_Measured = Annotated[float, Range(-1e15, 1e15)]
_Tokens = tuple[Annotated[str, Range(0, 200)], ...]


@dataclass(frozen=True, kw_only=True)
class TaskDescription:
    """A task's name and options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Vocabularies:
    """The tokens that a model was trained with: a task that makes its own from data may not have the data here."""

    source: _Tokens
    target: _Tokens


@dataclass(frozen=True, kw_only=True)
class Description:
    """The content of `config.json`. Recipe and metrics may be of another version; the fields that are used are checked."""

    format: int
    variant: str
    model: ModelConfig
    task: TaskDescription
    vocabularies: Vocabularies
    recipe: Mapping[str, Any]
    metrics: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.variant):
            raise ConfigError(f"variant={short_repr(self.variant)} is no name")
        _read_known(_ReadRecipe, self.recipe, "recipe")
        best = _read_known(_ReadMetrics, self.metrics, "metrics").best_head
        if best is not None and (best.layer >= self.model.n_decoder_layers or best.head >= self.model.n_heads):
            raise ConfigError(f"metrics: {best} is not in this model")


@dataclass(frozen=True, kw_only=True)
class _ReadRecipe:
    sharpness: float = 0.0
    lengths: str = ""
    longest: Annotated[int, Range(1, MAX_POSITIONS)] = 1


@dataclass(frozen=True, kw_only=True)
class _Failure:
    source: str
    output: str = ""


@dataclass(frozen=True, kw_only=True)
class _BestHead:
    layer: Count
    head: Count


@dataclass(frozen=True, kw_only=True)
class _ReadMetrics:
    exact_match: _Measured = 0.0
    best_head_mass: _Measured = 0.0
    samples: _Measured = 0.0
    judged_by: str = ""
    by_source: Mapping[str, Annotated[float, Range(0, 1)]] = field(default_factory=dict)
    failures: tuple[_Failure, ...] = ()
    best_head: _BestHead | None = None


def _read_known(kind: Any, data: Mapping[str, Any], where: str) -> Any:
    """The fields of `kind`; others are left alone."""
    return read_value(kind, {name: data[name] for field in fields(kind) if (name := field.name) in data}, where, ConfigError)


@dataclass(frozen=True)
class Checkpoint:
    """A trained model that is ready to run, with its task.

    Attributes:
        name: its folder's name.
        folder: where it lies.
        network: in eval mode, on `device`.
        task: what it was trained for.
        variant: the published architecture that it has.
        recipe: how it was trained, as plain data.
        metrics: the results of its evaluation, as plain data; empty for a snapshot.
        device: the device that the model is on.
        snapshot: the step of its training; None = its end.
    """

    name: str
    folder: Path
    network: "Transformer"
    task: Task
    variant: str
    recipe: Mapping[str, Any]
    metrics: Mapping[str, Any]
    device: "torch.device"
    snapshot: int | None = None

    default_total_length = None
    generation = MappingProxyType[str, Any]({})
    languages = ()
    options = ModelOptions()

    def __repr__(self) -> str:
        """One line."""
        return in_one_line(self)

    def with_options(self, options: ModelOptions) -> "Checkpoint":
        """This checkpoint itself, since a checkpoint has no options."""
        return self

    @cached_property
    def tokenizer(self) -> TaskTokenizer:
        """The task's vocabularies."""
        return TaskTokenizer(self.task)

    @property
    def default_max_length(self) -> int:
        """The task's longest answer and its end."""
        return min(self.task.max_target_length + 1, self.network.config.max_positions)

    @property
    def architecture(self) -> Architecture:
        """The drawing of its configuration."""
        return architecture_of(self.network.config)

    @cached_property
    def n_parameters(self) -> int:
        """Trained numbers in the model. Counted once: walking through the modules takes as long as a step of decoding."""
        return sum(parameter.numel() for parameter in self.network.parameters())


@dataclass(frozen=True)
class Entry:
    """A checkpoint folder that was found, loadable or not."""

    name: str
    folder: Path
    description: Description | None
    """The model as its files describe it; None when there is an error."""
    error: str | None = None
    n_parameters: int = 0
    n_bytes: int = 0
    """The size of the file of weights."""


def folders() -> list[Path]:
    """The folders in which names are looked up; the first match wins."""
    more = os.environ.get(FOLDERS_VARIABLE)
    return [app_folders.ROOT / "checkpoints", app_folders.trained(), *([Path(more)] if more else [])]


def entries() -> list[Entry]:
    """Every checkpoint that can be named, in the order of the look-up; damaged ones carry their error."""
    listed = []
    for folder in _folders_by_name().values():
        weights = folder / "model.safetensors"
        try:
            about = read_description(folder)
            _task(folder, about)
            with _weights(weights, about.model):
                n_parameters = sum(math.prod(shape) for _, shape in _shapes(about.model))
        except CheckpointError as error:
            listed.append(Entry(folder.name, folder, None, str(error)))
        else:
            listed.append(Entry(folder.name, folder, about, None, n_parameters, untrusted_files.file_size(weights)))
    return listed


def names() -> list[str]:
    """The names of all checkpoints, damaged ones too; nothing in them has been looked at."""
    return list(_folders_by_name())


def _folders_by_name() -> dict[str, Path]:
    folder_of: dict[str, Path] = {}
    for parent in folders():
        for folder in untrusted_files.list_folder(parent):
            if untrusted_files.is_folder(folder) and _NAME.fullmatch(folder.name):
                folder_of.setdefault(folder.name, folder)
    return folder_of


def is_name(text: str) -> bool:
    """Tells whether a checkpoint could have this name."""
    return _NAME.fullmatch(text) is not None


def find(name: str) -> Path:
    """The folder of a checkpoint's name, or of a path with a separator in it.

    Raises:
        CheckpointError: there is none; the message lists the known names.
    """
    if "/" in name or os.sep in name:
        folder = Path(name)
        if not untrusted_files.is_folder(folder):
            raise CheckpointError(
                f"There is no checkpoint folder {name!r}. Give a folder that holds config.json and model.safetensors."
            )
        return folder
    return find_name(name)


def find_name(name: str) -> Path:
    """Like `find`, but takes names only, so that no path can be typed by a stranger."""
    if _NAME.fullmatch(name):
        for parent in folders():
            if untrusted_files.is_folder(parent / name):
                return parent / name
    known = join_names(names())
    raise CheckpointError(
        f"There is no checkpoint {name!r}. Known are {known}. A folder elsewhere needs a path separator, as in ./{name}."
    )


def load_checkpoint(name: str, device: str = "auto") -> Checkpoint:
    """Loads a checkpoint onto a device.

    Args:
        name: of the checkpoint; or its folder, with a path separator as in `./mine`.
        device: `auto`, `cpu`, `cuda` or `mps`.

    Returns:
        The model, its task and its tokenizer.

    Raises:
        CheckpointError: there is none, it is damaged, or this program did not make it.
        DeviceError, OptionError: the device is not there, or not known.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse", device="cpu")
        >>> model
        <Checkpoint 'reverse': pre-norm, on cpu>
        >>> tv.decode(model, "hello").text
        'olleh'
    """
    from transformer_viz.model import devices

    folder = find(name)
    where = devices.resolve(device)
    about = read_description(folder)
    return Checkpoint(
        name=folder.name,
        folder=folder,
        task=_task(folder, about),
        network=_model(folder / "model.safetensors", about.model, where),
        variant=about.variant,
        recipe=about.recipe,
        metrics=about.metrics,
        device=where,
    )


def task_of(name: str) -> Task:
    """The task of a checkpoint, by its name or folder; its weights are not looked at.

    Raises:
        CheckpointError: missing, or its description is damaged.
    """
    folder = find(name)
    return _task(folder, read_description(folder))


def snapshots(folder: Path) -> dict[int, Path]:
    """Weights along the training of a checkpoint: step -> file, in order."""
    steps = {}
    for path in untrusted_files.list_folder(folder / "snapshots"):
        if (match := _SNAPSHOT.fullmatch(path.name)) and untrusted_files.is_file(path):
            steps[int(match[1])] = path
    return dict(sorted(steps.items()))


def load_snapshot(checkpoint: Checkpoint, step: int) -> Checkpoint:
    """Loads a checkpoint as it was during its training, onto the same device.

    Args:
        checkpoint: one that kept snapshots.
        step: the steps of training after which the snapshot was taken.

    Returns:
        The model as it was after that step.

    Raises:
        CheckpointError: there is no such snapshot, or it is damaged.

    Example:
        >>> import transformer_viz as tv
        >>> model = tv.load_checkpoint("reverse-small", device="cpu")
        >>> early = tv.load_snapshot(model, 5)
        >>> tv.decode(early, "planet").text == tv.decode(model, "planet").text
        False
    """
    known = snapshots(checkpoint.folder)
    if step not in known:
        raise CheckpointError(
            f"{checkpoint.name} has no snapshot of step {step!r}; it has {join_names(known) if known else 'none'}."
        )
    return replace(
        checkpoint, network=_model(known[step], checkpoint.network.config, checkpoint.device), metrics={}, snapshot=step
    )


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
    history: Sequence[Mapping[str, Any]] = (),
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
        write_text(csv(history), made / "history.csv")


def description(model: "Transformer", task: Task, variant: str, recipe: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """The text of `config.json`."""
    about = Description(
        format=FORMAT,
        variant=variant,
        model=model.config,
        task=TaskDescription(name=task.name, options=task.options()),
        vocabularies=Vocabularies(source=task.source_vocabulary.tokens, target=task.target_vocabulary.tokens),
        recipe=recipe,
        metrics=metrics,
    )
    return json.dumps(to_plain(about), indent=1, ensure_ascii=False) + "\n"


def refuse_existing(folder: Path, replace: bool) -> None:
    """Raises a CheckpointError when `folder` is there and may not be replaced."""
    if folder.exists() and not replace:
        raise CheckpointError(f"{folder} exists already. Choose another folder with -o, or replace it with --force.")


def read_description(folder: Path) -> Description:
    """Reads the `config.json` of a checkpoint.

    Raises:
        CheckpointError: it is missing, damaged, or of another version.
    """
    try:
        data = untrusted_files.read_json(folder / "config.json", LARGEST_CONFIG)
        if isinstance(data, dict) and "format" in data and (isinstance(data["format"], bool) or data["format"] != FORMAT):
            raise CheckpointError(
                f"{folder.name}: format {short_repr(data['format'])} is not known; this version reads format {FORMAT}. "
                "Update the program."
            )
        return read_value(Description, data)
    except FileNotFoundError:
        raise CheckpointError(f"{folder.name}: config.json is missing. Copy the whole folder again.") from None
    except FileError as error:
        raise CheckpointError(f"{folder.name}: config.json cannot be read: {error}. Copy the folder again.") from error


def _task(folder: Path, about: Description) -> Task:
    """The task, which fits the model."""
    config, tokens = about.model, (about.vocabularies.source, about.vocabularies.target)
    try:
        source, target = map(Vocabulary, tokens)
        task = tasks.make_task(about.task.name, dict(about.task.options), (source, target))
    except (ConfigError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder.name}: config.json is not possible: {error}") from error
    own = (task.source_vocabulary.tokens, task.target_vocabulary.tokens)
    sizes = (config.source_vocabulary_size, config.target_vocabulary_size)
    if own != tokens or sizes != (len(source), len(target)):
        raise CheckpointError(
            f"{folder.name}: the vocabularies do not fit the task {task.name!r} with {len(own[0])} and {len(own[1])} tokens."
        )
    return task


def _place(path: Path) -> str:
    """`reverse: model.safetensors`, for messages."""
    folder = path.parent.parent if path.parent.name == "snapshots" else path.parent
    return f"{folder.name}: {path.relative_to(folder)}"


@contextmanager
def _weights(path: Path, config: ModelConfig) -> Generator[Any]:
    """Opens a file of weights and checks its names and shapes against the configuration, before it takes memory."""
    place = _place(path)
    wanted = {name: list(shape) for name, shape in _shapes(config)}
    try:
        with untrusted_files.open_tensors(path, _LARGEST_WEIGHTS, _LARGEST_HEADER) as file:
            given = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            types = {str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118
            if given != wanted:
                raise CheckpointError(f"{place} does not fit config.json: {_difference(given, wanted)}.")
            if not types <= {"F32", "F16", "BF16", "F64"}:
                raise CheckpointError(f"{place} holds numbers of type {join_names(sorted(types))}; floating point is needed.")
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


def _some(names: list[str]) -> str:
    # Anyone may have written this name: unless it is an ordinary one it is quoted, which keeps it on one line.
    shown = [name if name.isprintable() and len(name) <= 120 else short_repr(name) for name in names[:4]]
    return join_names(shown) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of numbers as CSV with every column that a row has; a row's missing values are empty."""
    columns = dict.fromkeys(column for row in rows for column in row)
    cells = [
        ["" if (x := row.get(name)) is None else f"{x:.6g}" if isinstance(x, float) else str(x) for name in columns]
        for row in rows
    ]
    return "".join(",".join(line) + "\n" for line in [columns, *cells]) if rows else ""
