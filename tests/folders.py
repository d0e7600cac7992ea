"""What lies in a folder, to compare it with what lay there before."""

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below it by its path from there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
