"""Examples of docstrings as the documentation site reads them: as code, where `Example:` would be words."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Calls each section of one example by the name that is read as code."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
