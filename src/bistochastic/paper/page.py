"""The reproduction as files: tables in three formats, figures, and one page."""

import base64
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bistochastic import report
from bistochastic.io.paths import FilePath
from bistochastic.io.writing import replacing
from bistochastic.paper import figures, tables
from bistochastic.paper.protocol import DEFAULT, Record
from bistochastic.paper.tables import Line
from bistochastic.plot import pyplot
from bistochastic.report.page import rendered

TEXTS = {
    3: "Clustering accuracy (ACC), in percent.",
    4: "Normalized mutual information (NMI), by the larger entropy, in percent.",
    5: "Purity (PUR), in percent.",
}
ALTS = {
    1: "Two moons: data, Gaussian affinity, graphs and errors of CAN and ANCMM",
    2: "Objective of ANCMM over the steps on four sets",
}


def sentences(records: Sequence[Record]) -> list[str]:
    """Return what came out, in sentences, from the records that are there.

    Parameters
    ----------
    records : sequence of dict
        Records of runs.

    Returns
    -------
    list of str
        Sentences.
    """
    counts = {
        number: tables.summary(tables.lines(number, records)) for number in (3, 4, 5)
    }
    acc, said = counts[3], []
    if acc["sets"]:
        said.append(
            "In the paper's protocol (parameters chosen with the labels) Algorithm 2 "
            "comes within one point of its printed accuracy, or exceeds it, on "
            f"{acc['reached']} of {acc['sets']} sets, and our default on "
            f"{acc['default']}."
        )
    others = sum(held["others"] for held in counts.values())
    if others:
        near = sum(held["near"] for held in counts.values())
        said.append(
            f"Of {others} numbers that are printed for the other methods, {near} are "
            "within two points of ours."
        )
    return said + _without_labels(acc)


def _without_labels(acc: dict[str, Any]) -> list[str]:
    """Return how accurate methods are without labels, in sentences."""
    said = []
    free = {
        name.partition(",")[0]: value
        for name, value in acc["means"].items()
        if name.endswith("label-free")
    }
    if free:
        ranked = sorted(free.items(), key=lambda pair: -pair[1])
        listed = ", ".join(f"{name} {value:.1f}" for name, value in ranked)
        said.append(f"Mean accuracy without labels: {listed}.")
    for method, held in acc["against"].items():
        said.append(
            f"{DEFAULT} against {method}, label-free: {held['wins']} wins, "
            f"{held['ties']} ties, {held['losses']} losses."
        )
    if acc["ranks"]:
        ranked = sorted(acc["ranks"].items(), key=lambda pair: pair[1])
        listed = ", ".join(f"{name} {value:.2f}" for name, value in ranked)
        said.append(
            f"Mean rank without labels: {listed}; two that differ by less than "
            f"{acc['critical']} are not told apart (Nemenyi, 5 %)."
        )
    return said


def check_installed(drawn: bool = True) -> None:
    """Raise unless all is there that `write` needs.

    Parameters
    ----------
    drawn : bool
        Whether figures are to be drawn.
    """
    report.check_installed()
    if drawn:
        pyplot()


def write(
    folder: FilePath,
    records: Sequence[Record],
    *,
    data: FilePath | None = None,
    drawn: bool = True,
) -> Path:
    """Write tables, figures and the page.

    Parameters
    ----------
    folder : path
        Where to write; made if it is not there. Files of these names are replaced.
    records : sequence of dict
        Records of runs.
    data : path, optional
        Where the sets are, for Figure 2.
    drawn : bool
        Whether to draw the figures.

    Returns
    -------
    Path
        The page.
    """
    check_installed(drawn)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    head, rows = tables.toy_rows(tables.toy(records))
    _put(folder / "table1.md", f"# Table 1: two moons\n\n{_markdown(head, rows)}")
    parts = [_part(1, "The two moons of Figure 1.", head, rows, range(2, 7))]
    for number, text in TEXTS.items():
        made = tables.lines(number, records)
        titled = f"# Table {number}: {tables.METRICS[number]}\n\n{text}\n\n"
        _put(folder / f"table{number}.md", titled + tables.markdown(made))
        _put(folder / f"table{number}.tex", tables.latex(made))
        _put(folder / f"table{number}.html", tables.html(made))
        rows = [_bold(line) for line in made]
        parts.append(_part(number, text, tables.HEAD, rows, range(2, 6)))
    if drawn:
        drawings = {1: figures.figure_1(records), 2: figures.figure_2(data)}
        parts += [_figure(folder, *drawing) for drawing in drawings.items()]
    page = rendered(
        "reproduction.html.jinja",
        title="The paper's experiments, done again",
        sentences=sentences(records),
        parts=parts,
        about=about(records),
    )
    _put(folder / "index.html", page)
    return folder / "index.html"


def _part(
    number: int,
    text: str,
    head: Sequence[str],
    rows: Sequence[Any],
    numbers: Sequence[int],
) -> dict[str, Any]:
    """Return a table as a part of the page."""
    title = f"Table {number}"
    return {
        "id": f"table-{number}", "title": title, "text": text, "head": head,
        "rows": rows, "numbers": numbers, "image": None,
    }  # fmt: skip


def _figure(folder: Path, number: int, figure: Any) -> dict[str, Any]:
    """Return a figure as a part of the page."""
    return {
        "id": f"figure-{number}",
        "title": f"Figure {number}",
        "text": "",
        "image": _picture(folder, number, figure),
        "alt": ALTS[number],
    }


def _bold(line: Line) -> list[str]:
    """Return the texts of a line, bold where the paper has it."""
    from markupsafe import Markup

    cells = list(tables.row(line))
    if line.bold:
        cells[2] = Markup("<b>{}</b>").format(cells[2])
    return cells


def about(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return how long the runs took, and what made them."""
    seconds = sum(record.get("seconds", 0.0) for record in records)
    made = [
        ("runs", f"{len(records):,}"),
        ("time of all runs", f"{seconds / 3600:.1f} h on one core"),
    ]
    peaks = [record["megabytes"] for record in records if record.get("megabytes")]
    if peaks:
        made.append(("memory at most", f"{max(peaks):,} MB"))
    held: dict[str, dict[str, bool]] = {}
    for record in records:
        for name, value in record.get("versions", {}).items():
            held.setdefault(name, {})[value] = True
    return made + [(name, ", ".join(values)) for name, values in held.items()]


def _put(path: Path, text: str) -> None:
    with replacing(path, force=True) as stream:
        stream.write(text.encode())


def _picture(folder: Path, number: int, figure: Any) -> str:
    """Keep a figure as a file, and return it in base64."""
    held = io.BytesIO()
    figure.savefig(held, dpi=110, format="png")
    pyplot().close(figure)
    with replacing(folder / f"figure{number}.png", force=True) as stream:
        stream.write(held.getvalue())
    return base64.b64encode(held.getvalue()).decode()


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
