"""The verdicts of *Attention on trial* on some texts of a survey, as a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np

from transformer_viz.analysis.survey.partial import from_file, to_bytes
from transformer_viz.analysis.verdict import Agreement, Verdict
from transformer_viz.errors import SurveyError
from transformer_viz.schema import read_value
from transformer_viz.terms import Kind

MOST_VERDICTS, MOST_MAPS = 4096, 2**17


@dataclass(frozen=True, kw_only=True, eq=False)
class VerdictPartial:
    """What a unit of sampled lines leaves: a verdict for each text that could be read, and what the model cannot give."""

    verdicts: tuple[Verdict, ...]
    missing: Mapping[str, str]

    def to_bytes(self, digest: str) -> bytes:
        """A file of it; `digest` says of what it is the result."""
        arrays: dict[str, np.ndarray] = {}
        about = []
        for i, each in enumerate(self.verdicts):
            maps = list(each.maps.values())
            n = len(each.steps)
            arrays |= {f"{i}.steps": each.steps.astype(np.int64), f"{i}.chance": each.chance.astype(np.float64)}
            for name in ("top", "rho"):
                arrays[f"{i}.{name}"] = np.array([getattr(one, name) for one in maps], np.float64).reshape(len(maps), n)
            left_out = {"n_left_out": each.n_left_out, "n_without_choice": each.n_without_choice}
            about.append(_About(kind=each.kind, mode=each.mode, **left_out, maps=tuple(each.maps)))
        return to_bytes(digest, _Description(verdicts=tuple(about), missing=self.missing), arrays)


@dataclass(frozen=True, kw_only=True)
class _About:
    kind: Kind
    mode: str | None
    n_left_out: int
    n_without_choice: int
    maps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Description:
    verdicts: tuple[_About, ...]
    missing: Mapping[str, str]


def load_verdicts(path: str | PathLike[str], digest: str | None = None) -> VerdictPartial:
    """Reads what `to_bytes` gave; arguments and errors as `load_partial`."""
    about, arrays = from_file(path, digest)
    found = read_value(_Description, about, "the verdicts", SurveyError)
    if len(found.verdicts) > MOST_VERDICTS or any(len(each.maps) > MOST_MAPS for each in found.verdicts):
        raise SurveyError(f"there are more than {MOST_VERDICTS} verdicts, or {MOST_MAPS} maps in one")
    if len(arrays) != 4 * len(found.verdicts):
        raise SurveyError(f"there are {len(arrays)} arrays for {len(found.verdicts)} verdicts; each has 4")
    return VerdictPartial(
        verdicts=tuple(_verdict(i, each, arrays) for i, each in enumerate(found.verdicts)), missing=found.missing
    )


def _verdict(i: int, about: _About, arrays: Mapping[str, np.ndarray]) -> Verdict:
    n_steps = arrays[f"{i}.steps"].size if f"{i}.steps" in arrays else 0
    shapes = {"steps": (n_steps,), "chance": (n_steps,)} | dict.fromkeys(("top", "rho"), (len(about.maps), n_steps))
    for name, shape in shapes.items():
        array = arrays.get(f"{i}.{name}")
        if array is None or array.shape != shape or array.dtype != (np.int64 if name == "steps" else np.float64):
            raise SurveyError(f"verdict {i}: {name} is missing or of another shape or type; {shape} is needed")
        if name != "steps" and (np.abs(array) > 1 + 1e-6).any():
            raise SurveyError(f"verdict {i}: {name} holds a number that is not from -1 to 1")
    if len(set(about.maps)) < len(about.maps) or not 0 <= about.n_without_choice <= about.n_left_out:
        raise SurveyError(f"verdict {i}: two maps have one name, or more steps are without a choice than left out")
    top, rho = arrays[f"{i}.top"], arrays[f"{i}.rho"]
    return Verdict(
        kind=about.kind,
        mode=about.mode,
        steps=arrays[f"{i}.steps"],
        chance=arrays[f"{i}.chance"],
        maps={name: Agreement(*pair) for name, *pair in zip(about.maps, top, rho, strict=True)},
        n_left_out=about.n_left_out,
        n_without_choice=about.n_without_choice,
    )
