"""What a worker is given at once: a block of lines, and whose result it is."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from transformer_viz.surveying.options import SurveyOptions

BLOCK_SIZE = 64
"""Lines of a block, but for the last one. The result of a block is the same wherever and whenever it is run."""
FORMAT = 3
"""Of what a block leaves; of another one it is run again."""


@dataclass(frozen=True)
class Line:
    """A line of a corpus.

    Attributes:
        number: counted from 1, as an editor counts them; every line counts, an empty one too.
        text: without its line break; of a line that is not read the beginning, for people.
        target: the known answer, or None.
        fault: why the line is not read, as a sentence without its full stop; None where it is read.
    """

    number: int
    text: str
    target: str | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Block:
    """Lines that follow each other.

    Attributes:
        number: of the block, from 0.
        lines: at most `BLOCK_SIZE`, at least one.
    """

    number: int
    lines: tuple[Line, ...]

    @cached_property
    def content(self) -> bytes:
        """All lines, as they decide what comes of them."""
        return json.dumps([(line.number, line.text, line.target, line.fault) for line in self.lines]).encode()

    def digest(self, fingerprint: str, options: SurveyOptions) -> str:
        """What decides the block's result, as a sha256 in hex: its lines, the model, the options, the format."""
        about = json.dumps([FORMAT, fingerprint, options.of_blocks(), self.number], sort_keys=True)
        return hashlib.sha256(about.encode() + self.content).hexdigest()
