"""The measures of a head by name, found by looking into this folder: each is a module that defines `MEASURE`."""

from importlib import import_module
from pkgutil import iter_modules

from transformer_viz.analysis.measure import Measure

_FOUND = {module.name: import_module(f"{__name__}.{module.name}").MEASURE for module in iter_modules(__path__)}
OF_MANY: dict[str, Measure] = dict(sorted(_FOUND.items(), key=lambda named: (named[1].order, named[0])))
"""All measures, in the order of tables; surveys compute them over many texts."""
MEASURES: dict[str, Measure] = {name: measure for name, measure in OF_MANY.items() if not measure.is_for_many}
"""The measures that are listed for one run."""
