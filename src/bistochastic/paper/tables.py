"""Tables 1, 3, 4 and 5: what is printed beside what came out, with remarks."""

import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

import numpy as np

from bistochastic.datasets.load import PAPER, catalogue
from bistochastic.paper.protocol import PROTOCOLS, SCORES, TOYS
from bistochastic.paper.runs import best

METRICS = {3: "ACC", 4: "NMI", 5: "PUR"}
NEAR = 2.0  # points within which a printed number counts as reproduced
TIE = 0.05  # points within which two methods count as equal


@cache
def claims():
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
    """

    set: str
    method: str
    printed: float | None
    bold: bool
    tuned: dict | None
    free: dict | None
    metric: str

    @property
    def difference(self):
        """Ours by the paper's protocol less what is printed, in points."""
        if self.printed is None or self.tuned is None:
            return None
        return round(self.tuned[self.metric] - self.printed, 1)

    @property
    def remarks(self):
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
        return said


def lines(number, records, sets=PAPER):
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
        By set and method; CLR, which the paper does not have, comes with None as
        printed.
    """
    metric, held = METRICS[number], claims()["tables"][str(number)]["rows"]
    methods = claims()["source"]["methods"]
    found = {}
    for record in records:
        place = record["protocol"], record["set"], record["method"]
        found.setdefault(place, []).append(record)
    made = []
    for name in sets:
        row = dict(zip(methods, held[name]["values"], strict=True))
        for method in (*methods[:-1], "CLR", methods[-1]):
            tuned = found.get(("paper", name, method))
            free = found.get(("label-free", name, method))
            made.append(
                Line(
                    name,
                    method,
                    row.get(method),
                    method in held[name]["bold"],
                    best(tuned) if tuned else None,
                    best(free, label_free=True) if free else None,
                    metric,
                )
            )
    return made


def toy(records):
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
    printed, found = claims()["tables"]["1"], {}
    for record in records:
        if record["set"].startswith("moons:"):
            place = record["method"], record["protocol"], record["set"]
            found.setdefault(place, []).append(record)
    made = []
    for at, method in enumerate(printed["columns"]):
        for metric in SCORES:
            line = {
                "method": method,
                "metric": metric,
                "printed": printed[metric]["values"][at],
                "bold": method in printed[metric]["bold"],
            }
            for protocol in PROTOCOLS:
                over = {
                    name: best(held)[metric]
                    for (m, p, name), held in found.items()
                    if (m, p) == (method, protocol)
                }
                if over:
                    values = np.array(list(over.values()))
                    line[protocol] = over.get(TOYS[0])
                    spread = float(values.mean()), float(values.std()), values.size
                    line[f"{protocol}, all seeds"] = spread
            made.append(line)
    return made


def toy_rows(made):
    """Return the head and the rows of Table 1 as texts."""
    head = ["method", "metric", "printed"]
    kinds = [f"{p}{more}" for p in PROTOCOLS for more in ("", ", all seeds")]
    out = []
    for line in made:
        cells = [line["method"], line["metric"], f"{line['printed']:g}"]
        for kind in kinds:
            value = line.get(kind)
            if isinstance(value, tuple):
                cells.append(f"{value[0]:.1f} ± {value[1]:.1f} ({value[2]})")
            else:
                cells.append("" if value is None else f"{value:.1f}")
        out.append(cells)
    return [*head, *kinds], out


def summary(made):
    """Count how a table came out.

    Parameters
    ----------
    made : list of Line
        Lines of one table.

    Returns
    -------
    dict
        "near": how many printed numbers of other methods are within two points of
        ours, of "others"; "reached": on how many sets ANCMM comes within a point of
        what is printed for it or exceeds it, of "sets"; "wins", "ties" and "losses" of
        the label-free ANCMM against each method; means.
    """
    compared = [line for line in made if line.difference is not None]
    others = [line for line in compared if line.method != "ANCMM"]
    ours = [line for line in compared if line.method == "ANCMM"]
    free = {(line.set, line.method): line.free for line in made if line.free}
    against = {}
    for (name, method), found in free.items():
        if method == "ANCMM" or (name, "ANCMM") not in free:
            continue
        gap = free[name, "ANCMM"][made[0].metric] - found[made[0].metric]
        place = "ties" if abs(gap) <= TIE else "wins" if gap > 0 else "losses"
        against.setdefault(method, {"wins": 0, "ties": 0, "losses": 0})[place] += 1
    return {
        "near": sum(abs(line.difference) <= NEAR for line in others),
        "others": len(others),
        "reached": sum(line.difference >= -1.0 for line in ours),
        "sets": len(ours),
        "against": against,
        "means": _means(made),
    }


def _means(made):
    """Return the mean of each method over the sets, by protocol and as printed."""
    held = {}
    for line in made:
        values = {
            "printed": line.printed,
            "paper": line.tuned and line.tuned[line.metric],
            "label-free": line.free and line.free[line.metric],
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


def row(line):
    """Return a line as texts."""
    tuned = line.tuned
    how = ""
    if tuned:
        options = ", ".join(f"{k} {v}" for k, v in tuned["options"].items())
        how = f"{tuned['preparation']}{', ' if options else ''}{options}"
    return (
        catalogue()[line.set]["title"],
        line.method,
        "" if line.printed is None else f"{line.printed:g}",
        "" if tuned is None else f"{tuned[line.metric]:.1f}",
        "" if line.difference is None else f"{line.difference:+.1f}",
        "" if line.free is None else f"{line.free[line.metric]:.1f}",
        how,
        " ".join(line.remarks),
    )


def markdown(made):
    """Return a table in Markdown, bold where the paper has it."""
    out = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for line in made:
        cells = list(row(line))
        if line.bold:
            cells[2] = f"**{cells[2]}**"
        out.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(out) + "\n"


def latex(made):
    """Return a table in LaTeX, for booktabs."""
    special = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#"}

    def safe(text):
        return "".join(special.get(letter, letter) for letter in text)

    out = [r"\begin{tabular}{llrrrrll}", r"\toprule"]
    out += [" & ".join(map(safe, HEAD)) + r" \\", r"\midrule"]
    for line in made:
        cells = [safe(cell) for cell in row(line)]
        if line.bold:
            cells[2] = rf"\textbf{{{cells[2]}}}"
        out.append(" & ".join(cells) + r" \\")
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}"]) + "\n"


def html(made):
    """Return a table in HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in HEAD)
    out = [f"<table><thead><tr>{head}</tr></thead><tbody>"]
    for line in made:
        cells = [escape(cell) for cell in row(line)]
        if line.bold:
            cells[2] = f"<b>{cells[2]}</b>"
        out.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "\n".join([*out, "</tbody></table>"]) + "\n"
