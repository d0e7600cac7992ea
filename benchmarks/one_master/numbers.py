"""The numbers of the trial's runs by their hashes: one for the script, which runs anew each time, and for the route."""

from collections import OrderedDict

RUNS: OrderedDict[str, bytes] = OrderedDict()
