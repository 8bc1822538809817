"""Tables 1, 3, 4 and 5: what is printed beside what came out, with remarks."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from bistochastic.datasets.load import PAPER, catalogue
from bistochastic.paper.protocol import DEFAULT, PROTOCOLS, SCORES, TOYS, Record
from bistochastic.paper.runs import best

METRICS = {3: "ACC", 4: "NMI", 5: "PUR"}
NEAR = 2.0  # the largest difference, in points, from a number that is reproduced
TIE = 0.05  # the largest difference, in points, of two methods that are equal


@cache
def claims() -> dict[str, Any]:
    """Return every number that the paper prints."""
    held = files("bistochastic.paper").joinpath("claims.toml")
    return tomllib.loads(held.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Line:
    """One cell of a printed table beside ours.

    Attributes
    ----------
    set, method : str
        Where it stands.
    printed : float or None
        What the paper prints.
    bold : bool
        Whether it does so in bold.
    tuned, free : dict or None
        What `best` reports of the two protocols.
    metric : str
        ACC, NMI or PUR.
    around : str
        Where the printed number lies among all runs, if it is far from ours.
    """

    set: str
    method: str
    printed: float | None
    bold: bool
    tuned: dict[str, Any] | None
    free: dict[str, Any] | None
    metric: str
    around: str = ""

    @property
    def difference(self) -> float | None:
        """Ours by the paper's protocol less what is printed, in points."""
        if self.printed is None or self.tuned is None:
            return None
        return round(self.tuned[self.metric] - self.printed, 1)

    @property
    def remarks(self) -> list[str]:
        """What there is to say."""
        number = {metric: n for n, metric in METRICS.items()}[self.metric]
        said = [
            remark["text"]
            for remark in claims()["remarks"]
            if (remark["table"], remark["set"], remark["method"])
            == (number, self.set, self.method)
        ]
        if self.tuned and not self.tuned["exact"]:
            said.append(
                f"No run has {catalogue()[self.set]['classes']} clusters; this one has "
                f"{self.tuned['clusters']}."
            )
        return [*said, self.around] if self.around else said


def lines(
    number: int, records: Iterable[Record], sets: Iterable[str] = PAPER
) -> list[Line]:
    """Return the lines of Table 3, 4 or 5.

    Parameters
    ----------
    number : {3, 4, 5}
        Which table.
    records : iterable of dict
        Records of runs, of either protocol.
    sets : sequence of str
        Which sets.

    Returns
    -------
    list of Line
        By set and method; CLR and our default, which the paper does not have, come with
        None as printed.
    """
    metric, held = METRICS[number], claims()["tables"][str(number)]["rows"]
    methods = claims()["source"]["methods"]
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        place = record["protocol"], record["set"], record["method"]
        found.setdefault(place, []).append(record)
    made = []
    for name in sets:
        row = dict(zip(methods, held[name]["values"], strict=True))
        for method in (*methods[:-1], "CLR", methods[-1], DEFAULT):
            tuned = found.get(("paper", name, method))
            free = found.get(("label-free", name, method))
            line = Line(
                name,
                method,
                row.get(method),
                method in held[name]["bold"],
                best(tuned) if tuned else None,
                best(free, label_free=True) if free else None,
                metric,
            )
            made.append(replace(line, around=_around(line, tuned)))
    return made


def _around(line: Line, records: Sequence[Record] | None) -> str:
    """Say where a printed number lies among all runs, if ours is far from it."""
    if line.difference is None or abs(line.difference) <= NEAR:
        return ""
    values = [
        (score[line.metric], record)
        for record in records or ()
        for score in record["scores"]
    ]
    gaps = [(abs(value - line.printed), how(record)) for value, record in values]
    near = sum(gap <= NEAR for gap, _ in gaps)
    if near:
        return (
            f"{near:,} of {len(values):,} runs come within {NEAR:g} points of the "
            f"printed number, nearest with {min(gaps)[1]}."
        )
    found = [value for value, _ in values]
    return (
        f"No run comes within {NEAR:g} points: all are from {min(found):.1f} to "
        f"{max(found):.1f}."
    )


def how(record: Record) -> str:
    """Return preparation and options of a record or of what `best` reports."""
    options = (f"{name} {value}" for name, value in record["options"].items())
    return ", ".join([record["preparation"], *options])


def toy(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return Table 1: the paper's seed, and the mean and deviation over all seeds.

    Parameters
    ----------
    records : iterable of dict
        Records of runs.

    Returns
    -------
    list of dict
        For each method and metric: "printed", "paper" and "label-free" of the first
        seed, and (mean, deviation, number of seeds) over all.
    """
    printed = claims()["tables"]["1"]
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record["set"].startswith("moons:"):
            place = record["method"], record["protocol"], record["set"]
            found.setdefault(place, []).append(record)
    made = []
    for method in (*printed["columns"], DEFAULT):
        for metric in SCORES:
            values = dict(
                zip(printed["columns"], printed[metric]["values"], strict=True)
            )
            line = {
                "method": method,
                "metric": metric,
                "printed": values.get(method),
                "bold": method in printed[metric]["bold"],
            }
            for protocol in PROTOCOLS:
                over = {
                    name: best(held)[metric]
                    for (m, p, name), held in found.items()
                    if (m, p) == (method, protocol)
                }
                if over:
                    scores = np.array(list(over.values()))
                    line[protocol] = over.get(TOYS[0])
                    spread = float(scores.mean()), float(scores.std()), scores.size
                    line[f"{protocol}, all seeds"] = spread
            made.append(line)
    return made


def toy_rows(made: Iterable[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of Table 1 as texts."""
    head = ["method", "metric", "printed"]
    kinds = [f"{p}{more}" for p in PROTOCOLS for more in ("", ", all seeds")]
    out = []
    for line in made:
        value = line["printed"]
        cells = [
            line["method"], line["metric"], "" if value is None else f"{value:g}",
        ]  # fmt: skip
        for kind in kinds:
            value = line.get(kind)
            if isinstance(value, tuple):
                cells.append(f"{value[0]:.1f} ± {value[1]:.1f} ({value[2]})")
            else:
                cells.append("" if value is None else f"{value:.1f}")
        out.append(cells)
    return [*head, *kinds], out


def summary(made: Sequence[Line]) -> dict[str, Any]:
    """Count how a table came out.

    Parameters
    ----------
    made : list of Line
        Lines of one table.

    Returns
    -------
    dict
        "near": how many printed numbers of other methods are within two points of
        ours, of "others"; "reached" and "default": on how many sets Algorithm 2 and our
        default come within a point of what is printed for ANCMM or exceed it, of
        "sets"; "against": "wins", "ties" and "losses" of the label-free default
        against each method; "means"; "ranks" and "critical": mean ranks of the
        label-free methods, and by how much two have to differ (Nemenyi's test, 5 %).
    """
    metric = made[0].metric
    off = [(line, line.difference) for line in made if line.difference is not None]
    others = [gap for line, gap in off if line.method != "ANCMM"]
    ours = {line.set: (line, gap) for line, gap in off if line.method == "ANCMM"}
    tuned = [
        line.tuned[metric] - ours[line.set][0].printed
        for line in made
        if line.method == DEFAULT and line.tuned and line.set in ours
    ]
    free = {(line.set, line.method): line.free[metric] for line in made if line.free}
    against: dict[str, dict[str, int]] = {}
    for (name, method), value in free.items():
        if method == DEFAULT or (name, DEFAULT) not in free:
            continue
        gap = free[name, DEFAULT] - value
        place = "ties" if abs(gap) <= TIE else "wins" if gap > 0 else "losses"
        against.setdefault(method, {"wins": 0, "ties": 0, "losses": 0})[place] += 1
    ranks, critical = _ranks(free)
    return {
        "near": sum(abs(gap) <= NEAR for gap in others),
        "others": len(others),
        "reached": sum(gap >= -1.0 for _, gap in ours.values()),
        "default": sum(gap >= -1.0 for gap in tuned),
        "sets": len(ours),
        "against": against,
        "means": _means(made),
        "ranks": ranks,
        "critical": critical,
    }


def _ranks(free: dict[tuple[str, str], float]) -> tuple[dict[str, float], float | None]:
    """Return mean ranks over the sets that all methods ran on, and what is critical."""
    from scipy.stats import rankdata, studentized_range

    methods = list(dict.fromkeys(method for _, method in free))
    sets = [
        name
        for name in dict.fromkeys(name for name, _ in free)
        if all((name, method) in free for method in methods)
    ]
    if len(methods) < 2 or len(sets) < 2:
        return {}, None
    table = [[-free[name, method] for method in methods] for name in sets]
    means = rankdata(table, axis=1).mean(axis=0)
    many = len(methods)
    q = studentized_range.ppf(0.95, many, np.inf) / np.sqrt(2)
    ranks = {m: round(float(r), 2) for m, r in zip(methods, means, strict=True)}
    return ranks, round(float(q * np.sqrt(many * (many + 1) / (6 * len(sets)))), 2)


def _means(made: Sequence[Line]) -> dict[str, float]:
    """Return the mean of each method over the sets, by protocol and as printed."""
    held: dict[tuple[str, str], list[float]] = {}
    for line in made:
        values = {
            "printed": line.printed,
            "paper": None if line.tuned is None else line.tuned[line.metric],
            "label-free": None if line.free is None else line.free[line.metric],
        }
        for kind, value in values.items():
            if value is not None:
                held.setdefault((line.method, kind), []).append(value)
    return {
        f"{method}, {kind}": round(sum(values) / len(values), 2)
        for (method, kind), values in held.items()
    }


HEAD = (
    "set", "method", "printed", "ours, paper's protocol", "difference",
    "ours, label-free", "best with", "remarks",
)  # fmt: skip


def row(line: Line) -> tuple[str, ...]:
    """Return a line as texts."""
    tuned = line.tuned
    return (
        catalogue()[line.set]["title"],
        line.method,
        "" if line.printed is None else f"{line.printed:g}",
        "" if tuned is None else f"{tuned[line.metric]:.1f}",
        "" if line.difference is None else f"{line.difference:+.1f}",
        "" if line.free is None else f"{line.free[line.metric]:.1f}",
        how(tuned) if tuned else "",
        " ".join(line.remarks),
    )


def markdown(made: Sequence[Line]) -> str:
    """Return a table in Markdown, bold where the paper has it."""
    out = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for line in made:
        cells = list(row(line))
        if line.bold:
            cells[2] = f"**{cells[2]}**"
        out.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(out) + "\n"


def latex(made: Sequence[Line]) -> str:
    """Return a table in LaTeX, for booktabs."""
    special = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#"}

    def safe(text: str) -> str:
        return "".join(special.get(letter, letter) for letter in text)

    out = [r"\begin{tabular}{llrrrrll}", r"\toprule"]
    out += [" & ".join(map(safe, HEAD)) + r" \\", r"\midrule"]
    for line in made:
        cells = [safe(cell) for cell in row(line)]
        if line.bold:
            cells[2] = rf"\textbf{{{cells[2]}}}"
        out.append(" & ".join(cells) + r" \\")
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}"]) + "\n"


def html(made: Sequence[Line]) -> str:
    """Return a table in HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    out = [f"<table><thead><tr>{head}</tr></thead><tbody>"]
    for line in made:
        cells = [escape(cell) for cell in row(line)]
        if line.bold:
            cells[2] = f"<b>{cells[2]}</b>"
        out.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "\n".join([*out, "</tbody></table>"]) + "\n"
