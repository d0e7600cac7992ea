"""The result of one block of lines of a survey, as files: the numbers of each text. `merge.py` computes all else from them.

Files are safetensors and JSON, and their bytes depend on the lines, the model and the options alone. Numbers are in the order
of the lines; a line that was not read has NaN, −1 or 0.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path

import numpy as np

from transformer_viz import untrusted_files
from transformer_viz.attribution.result.verdict import Verdict
from transformer_viz.errors import FileError, SurveyError
from transformer_viz.schema import read_value, to_plain

CUT = 1000
"""Characters of a text, an output or a reason that are kept."""
N_BLEU = 10
"""Matching n-grams of 1 to 4 tokens, all of the output, and the lengths of output and answer."""
_LARGEST, _LARGEST_DESCRIPTION = 2**30, 2**24
"""Bytes."""
_KEY = "survey"


@dataclass(frozen=True, kw_only=True)
class BlockDescription:
    """The part of a `BlockResult` that is not arrays."""

    digest: str
    faults: tuple[str | None, ...]
    outputs: tuple[str, ...]
    expected: tuple[str | None, ...]
    has_bleu: bool


@dataclass(frozen=True, kw_only=True)
class BlockResult(BlockDescription):
    """The numbers of each line of a block.

    Attributes:
        digest: a hash of the lines, the model and the options.
        faults: for each line why it was not read; None where it was.
        outputs: what was written, cut where it is long; of an encoder alone nothing.
        expected: the known answers, cut to the same length, or None.
        has_bleu: whether there are counts for BLEU.
        arrays: by name, for each kind of attention and, of a model that writes, for the outputs:

            - `KIND.values`: float64 (statistic, 2, text, layer, head), each statistic in the order of `NAMES`, and that of
              attention that looks at every allowed key alike; NaN where a text has none.
            - `KIND.roles`: int8 (text, layer, head), the place in `ROLES`.
            - `KIND.agreed`: float64 (head, head), the share of rows with a choice of keys in which both have the same largest
              one, summed over texts; of no heads where there are more than are compared.
            - `KIND.compared`: int64 (head, head), texts that have such rows.
            - `outputs.length`: int64 (text,), source tokens without special ones.
            - `outputs.n_tokens`, `.n_right`: int64 (text,), tokens of the known answer with its end, and those written at their
              place.
            - `outputs.is_known`, `.is_exact`: bool (text,), whether the answer is known, and was written.
            - `outputs.confidence`: float64 (text,), probability of the first wrong token; of a token on average where no answer
              is known; 0 of a right output.
            - `outputs.bleu`: int64 (text, 10), as in `N_BLEU`.
            - `outputs.n_written`, `.n_judged`, `.n_judged_right`: int64 (text,), tokens written, those of them after a right
              prefix of a known answer, and the right ones of these: each the first so many of a text.
            - `outputs.p`: float64 (token,), the probability of each written token, text after text.
    """

    arrays: Mapping[str, np.ndarray]

    def to_bytes(self) -> bytes:
        """The file; the same bytes for the same content."""
        from safetensors.numpy import save

        about = {field.name: to_plain(getattr(self, field.name)) for field in fields(BlockDescription)}
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        return save(arrays, {_KEY: json.dumps(about, ensure_ascii=False)})


def read_description(path: str | PathLike[str]) -> BlockDescription:
    """A block's file without its arrays.

    Raises:
        SurveyError: there is none, or it is not what `BlockResult.to_bytes` gave.
    """
    try:
        with untrusted_files.open_tensors(path, _LARGEST, _LARGEST_DESCRIPTION, framework="numpy") as file:
            about = untrusted_files.parse_json((file.metadata() or {}).get(_KEY, ""))
    except (FileNotFoundError, FileError) as error:
        raise SurveyError(f"{Path(path).name} is no block of a survey ({error})") from error
    return read_value(BlockDescription, about, "the block", SurveyError)


def read_arrays(paths: Sequence[str | PathLike[str]], name: str, statistic: int | None = None) -> Iterator[np.ndarray]:
    """One array of each block, in their order; of `KIND.values` one statistic, with the texts first: (text, 2, layer, head).

    Raises:
        SurveyError: a file that lacks it.
    """
    for path in paths:
        try:
            with untrusted_files.open_tensors(path, _LARGEST, _LARGEST_DESCRIPTION, framework="numpy") as file:
                array = file.get_tensor(name) if statistic is None else file.get_slice(name)[statistic].swapaxes(0, 1)
            if array.dtype == np.float64 and np.isinf(array).any():
                raise FileError(f"{name} has an infinite number")
        except (FileNotFoundError, FileError) as error:
            raise SurveyError(f"{path} is damaged: {error}. Remove it, and the same survey goes on.") from error
        yield array


@dataclass(frozen=True, kw_only=True)
class VerdictResults:
    """The result of some sampled lines: a verdict for each that could be judged, and the measures that the model lacks.

    Attributes:
        digest: of what decides them.
        verdicts: in the order of the lines.
        missing: by the method, why it is not there.
    """

    digest: str
    verdicts: tuple[Verdict, ...]
    missing: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """The file."""
        return json.dumps(to_plain(self), ensure_ascii=False, allow_nan=False).encode()


def read_verdicts(path: str | PathLike[str]) -> VerdictResults:
    """Reads what `VerdictResults.to_bytes` gave.

    Raises:
        SurveyError: there is none, or it is something else.
    """
    try:
        return read_value(VerdictResults, untrusted_files.read_json(Path(path), _LARGEST), "the verdicts", SurveyError)
    except (FileNotFoundError, FileError) as error:
        raise SurveyError(f"{Path(path).name} has no verdicts of a survey ({error})") from error
