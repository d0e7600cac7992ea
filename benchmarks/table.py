"""What a run found, as a table in Markdown and as a verdict on each target."""

from collections.abc import Mapping
from typing import Any

_HEAD = "| what | ours | against | theirs | ratio | runs |\n| --- | ---: | --- | ---: | ---: | ---: |"


def machine_words(data: Mapping[str, Any]) -> str:
    """The machine and the versions, and whether it was busy."""
    said = "; ".join(f"{name} {value if value is not None else 'none'}" for name, value in data["machine"].items())
    return said + ("\nOther programs were at work: take the ratios, not the absolute times." if data["busy"] else "")


def markdown(data: Mapping[str, Any]) -> str:
    """All lines as a table in Markdown. The ratio says how many times better ours is: as fast, as small."""
    parts = [machine_words(data)]
    for group in data["groups"]:
        parts.append(f"**{group['title']}** ({group['seconds']:.0f} s)")
        parts += group["remarks"]
        if group["lines"]:
            parts.append("\n".join([_HEAD, *map(row, group["lines"])]))
    return "\n\n".join(parts)


def verdicts(data: Mapping[str, Any]) -> str:
    """One line for each target: held or not, what was measured, and its ratio to the limit."""
    return "\n".join(_verdict(target) for group in data["groups"] for target in group["targets"])


def row(line: Mapping[str, Any]) -> str:
    """A line of the table."""
    ours, other, unit = line["ours"], line["other"], line["unit"]
    return (
        f"| {line['what']} | {_cell(ours, unit)} | {other['name']} | {_cell(other, unit)} "
        f"| {line['ratio']:.2f}× | {line['runs']} |"
    )


def _cell(number: Mapping[str, Any], unit: str) -> str:
    p95 = "" if number["p95"] is None else f", p95 {_shown(number['p95'])}"
    return f"{_shown(number['value'])} {unit}{p95}"


def _shown(value: float) -> str:
    """Three significant digits, none lost before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _verdict(target: Mapping[str, Any]) -> str:
    limit = f"{target['bound']} {target['limit']:g} {target['unit']}"
    if target["value"] is None:
        return f"not measured  {target['words']}: {limit}"
    word = "held         " if target["held"] else "NOT HELD     "
    share = target["value"] / target["limit"]
    return f"{word} {target['words']}: {_shown(target['value'])} {target['unit']} ({limit}; {share:.2f} of it)"
