"""The reproduction as files: tables in three formats, figures, and one page."""

import base64
import io
from html import escape
from pathlib import Path

from bistochastic.io.writing import replacing
from bistochastic.paper import figures, tables
from bistochastic.paper.protocol import DEFAULT

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem;
       padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; }
td:nth-child(n+3):nth-child(-n+6) { text-align: right; white-space: nowrap; }
tbody tr:hover { background: #f3f6fa; }
img { max-width: 100%; }
.wide { overflow-x: auto; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181a1d; } th, td { border-color: #3a3d42; }
  tbody tr:hover { background: #24282e; } a { color: #7db3e8; }
  img { background: #fff; } }
"""


def sentences(records):
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
    said = []
    counts = {
        number: tables.summary(tables.lines(number, records)) for number in (3, 4, 5)
    }
    acc = counts[3]
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
    means = acc["means"]
    free = {
        name.partition(",")[0]: value
        for name, value in means.items()
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


def write(folder, records, *, data=None, drawn=True):
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
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["<h1>The paper's experiments, done again</h1>"]
    said = sentences(records)
    parts.append(
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in said) + "</ul>"
    )
    head, rows = tables.toy_rows(tables.toy(records))
    parts.append("<h2>Table 1: two moons</h2>" + _plain(head, rows))
    _put(folder / "table1.md", _markdown(head, rows))
    for number, metric in tables.METRICS.items():
        made = tables.lines(number, records)
        _put(folder / f"table{number}.md", tables.markdown(made))
        _put(folder / f"table{number}.tex", tables.latex(made))
        table = tables.html(made)
        _put(folder / f"table{number}.html", table)
        title = f"<h2>Table {number}: {metric}</h2>"
        parts.append(f"{title}<div class=wide>{table}</div>")
    if drawn:
        for number, figure in (
            (1, figures.figure_1(records)),
            (2, figures.figure_2(data)),
        ):
            parts.append(f"<h2>Figure {number}</h2>" + _picture(folder, number, figure))
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>Reproduction</title><style>{STYLE}</style>"
        + "\n".join(parts)
        + "</html>"
    )
    _put(folder / "index.html", page)
    return folder / "index.html"


def _put(path, text):
    with replacing(path, force=True) as stream:
        stream.write(text.encode())


def _picture(folder, number, figure):
    """Keep a figure as a file, and return it as a part of a page."""
    import matplotlib.pyplot as plt

    held = io.BytesIO()
    figure.savefig(held, dpi=110, format="png")
    plt.close(figure)
    with replacing(folder / f"figure{number}.png", force=True) as stream:
        stream.write(held.getvalue())
    code = base64.b64encode(held.getvalue()).decode()
    return f"<img alt='Figure {number}' src='data:image/png;base64,{code}'>"


def _plain(head, rows):
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _markdown(head, rows):
    out = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
