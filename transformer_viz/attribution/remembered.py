"""What a recurrence remembers of a run, read once more in one pass."""

import torch
from torch import Tensor

from transformer_viz.attribution.run import Run
from transformer_viz.errors import OptionError
from transformer_viz.loaded_model import LoadedModel
from transformer_viz.model import devices
from transformer_viz.model.tap import Site, TapName
from transformer_viz.trace.remembered import Remembered
from transformer_viz.trace.trace import Trace


def remembered(reader: LoadedModel, trace: Trace) -> Remembered:
    """How much of each token that the decoder has read is still in its memory, at each step.

    Args:
        reader: the model that made the run, from `load_model`.
        trace: its run; edits of it stay in force.

    Raises:
        OptionError: the model has no recurrence, or did not make the run.
        DeviceError: the device ran out of memory.
    """
    if not reader.model.sizes.recurrences:
        raise OptionError(f"{reader.name} has no recurrence that could remember; Firefox's translators have one")
    tap = _Gates()
    with devices.memory_errors(reader.device), devices.few_threads(reader.device, reader.n_parameters), torch.inference_mode():
        run = Run.of(reader, trace)
        run.logits(run.read, tap)
        layers = tuple(sorted(tap.seen))
        found = [_shares(tap.seen[layer]) for layer in layers]
    return Remembered(
        shares=torch.stack([shares for shares, _ in found]).float().cpu().numpy(),
        layers=layers,
        tokens=trace.target_tokens,
        n_units=tap.seen[layers[0]]["cell"].shape[-1],
        apart=max(apart for _, apart in found),
    )


class _Gates:
    """Keeps what each recurrence keeps, takes and comes to."""

    names = frozenset[TapName]({"kept", "taken", "cell"})

    def __init__(self) -> None:
        self.seen: dict[int, dict[TapName, Tensor]] = {}

    def __call__(self, site: Site, name: TapName, value: Tensor) -> Tensor:
        if name in self.names:
            self.seen.setdefault(site.layer, {})[name] = value
        return value


def _shares(seen: dict[TapName, Tensor]) -> tuple[Tensor, float]:
    """(step, step), and how far the sum of all terms is from the cell at most."""
    kept, taken, cell = (seen[name][0].double() for name in ("kept", "taken", "cell"))
    n_steps = len(cell)
    shares = cell.new_zeros(n_steps, n_steps)
    # Of each step so far what is left of it: (step, unit).
    left, apart = cell.new_zeros(0, cell.shape[-1]), 0.0
    for step in range(n_steps):
        left = torch.cat([left * kept[step], 1 - kept[step : step + 1]])
        shares[step, : step + 1] = left.mean(-1)
        apart = max(apart, float(((left * taken[: step + 1]).sum(0) - cell[step]).abs().max()))
    return shares, apart
