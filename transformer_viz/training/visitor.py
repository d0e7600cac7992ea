"""The visitor who wants to change a training: a browser, known by a secret cookie, or the owner of the server."""

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
        """The SHA-256 of the token, which is what gets stored; the 256 random bits cannot be computed from it."""
        return hashlib.sha256(self.token.encode()).hexdigest()

    def may_manage(self, mark: str | None) -> bool:
        """Whether this visitor is the browser with this mark, or the owner. A training without a mark is the owner's."""
        return self.is_owner or mark == self.mark


OWNER = Visitor("", is_owner=True)
"""Whoever runs the program itself."""
