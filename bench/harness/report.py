"""Figures of many rounds as two Markdown tables: medians, and ratios with their range."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

Results = dict[str, dict[str, list[float]]]  # row, then system, then one figure per round


@dataclass(frozen=True)
class Target:
    """A limit for Bullpen: of its ratio to the column `against`, or of its own figure if that is None."""

    limit: float
    at_least: bool = False
    against: str | None = None

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{' ×' if self.against else ''}"


@dataclass(frozen=True)
class Row:
    key: str
    title: str
    unit: str
    targets: Sequence[Target] = ()
    compared: bool = True  # False: no ratio is printed


def values_table(rows: Sequence[Row], columns: Sequence[str], results: Results) -> str:
    def cell(row: Row, column: str) -> str:
        figures = results.get(row.key, {}).get(column)
        return number(median(figures)) if figures else "–"

    return table(
        ["", "unit", *columns],
        [[row.title, row.unit, *(cell(row, column) for column in columns)] for row in rows],
    )


def ratios_table(rows: Sequence[Row], ours: str, others: Sequence[str], results: Results) -> str:
    """Return a table of our figure divided by each other one, by round: median (range), and the targets."""

    def cell(row: Row, other: str) -> str:
        ratios = ratios_of(results, row, ours, other)
        return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "–"

    return table(
        [f"{ours} ÷", *others, "target"],
        [
            [row.title, *(cell(row, other) for other in others), verdicts(row, ours, results)]
            for row in rows
            if row.compared
        ],
    )


def ratios_of(results: Results, row: Row, ours: str, other: str) -> list[float]:
    figures = results.get(row.key, {})
    pairs = zip(figures.get(ours, []), figures.get(other, []), strict=False)
    return [mine / theirs for mine, theirs in pairs if theirs]


def verdicts(row: Row, ours: str, results: Results) -> str:
    return ", ".join(verdict(row, target, ours, results) for target in row.targets)


def verdict(row: Row, target: Target, ours: str, results: Results) -> str:
    if target.against:
        reached, name = ratios_of(results, row, ours, target.against), f" {target.against}"
    else:
        reached, name = results.get(row.key, {}).get(ours, []), f" {row.unit}"
    if not reached:
        return f"{target}{name}: not measured"
    return f"{target}{name}: {'met' if target.met(median(reached)) else 'MISSED'}"


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(head: list[str], lines: list[list[str]]) -> str:
    widths = [max(len(line[n]) for line in [head, *lines]) for n in range(len(head))]

    def render(cells: list[str], pad: Callable[[str, int], str]) -> str:
        first = cells[0].ljust(widths[0])
        return (
            "| "
            + " | ".join([first, *(pad(c, w) for c, w in zip(cells[1:], widths[1:], strict=True))])
            + " |"
        )

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (w + 1) + ":" for w in widths[1:])]) + "|"
    return "\n".join([render(head, str.rjust), rule, *(render(line, str.rjust) for line in lines)])
