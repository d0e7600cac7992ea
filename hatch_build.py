"""What the package's page says, made when it is built: the project's addresses, and README with links that work there."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# What Markdown writes as ](docs/guide.md), but not an address, nor a place in README itself.
_RELATIVE = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?!https?://|#)([^)\s]+)\)")


class PackagePage(MetadataHookInterface):
    """Fills in `urls` and `readme`, from the repository's address in pyproject.toml."""

    def update(self, metadata: dict) -> None:
        """Change the metadata of `[project]` in place.

        A package index shows README without the repository beside it, so relative links and pictures become absolute. They lead
        to the tag of this version, so that they stay as they were when it was published.
        """
        repository = self.config["repository"].rstrip("/")
        version = re.search(r'__version__ = "(.+)"', Path(self.root, "transformer_viz/version.py").read_text(encoding="utf-8"))
        assert version is not None
        tag = f"v{version[1]}"

        def absolute(link: re.Match[str]) -> str:
            kind = "raw" if link[1] else "blob"
            return f"{link[1]}{link[2]}({repository}/{kind}/{tag}/{link[3]})"

        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _RELATIVE.sub(absolute, readme)}
        metadata["urls"] = {
            "Documentation": f"{repository}/tree/{tag}/docs",
            "Source": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        }
