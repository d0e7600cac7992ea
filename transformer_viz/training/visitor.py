"""Who asks for something that is somebody's: a browser, known by a secret that it keeps, or the owner of the server."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Visitor:
    """One browser.

    Attributes:
        token: the secret that this browser keeps. It is never shown or written anywhere.
        is_owner: whether it is that of whoever runs the server, who may do everything.
    """

    token: str = field(repr=False)
    is_owner: bool = False

    @property
    def mark(self) -> str:
        """What is written down of the token: from its SHA-256 nobody gets back to 256 random bits."""
        return hashlib.sha256(self.token.encode()).hexdigest()

    def may_manage(self, mark: str | None) -> bool:
        """Whether this is the browser that left the mark, or the owner. What nobody left a mark on is the owner's."""
        return self.is_owner or mark == self.mark


OWNER = Visitor("", is_owner=True)
"""Whoever runs the program itself."""
