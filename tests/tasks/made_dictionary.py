"""A dictionary of our own in the format of Debian's trans-de-en, so that the task `german` is tested without that package."""

from pathlib import Path

_WORDS = "Hund Katze Haus Baum Vogel Fisch Stern Mond Buch Brot Wein Berg".split()
_ENGLISH = "dog cat house tree bird fish star moon book bread wine mountain".split()


def write(path: Path) -> Path:
    """Writes it to `path`: a sentence for every two words."""
    both = list(zip(_WORDS, _ENGLISH, strict=True))
    lines = ["# Version :: ours", "Haus {n} | Häuser {pl} :: house | houses"]
    for i, (a, x) in enumerate(both):
        for b, y in both[i + 1 :]:
            lines.append(f"{a} {{m}} | Der {a} [ugs.] sieht den {b}. :: {x} | The {x} sees the {y}.; The {x} looks.")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
