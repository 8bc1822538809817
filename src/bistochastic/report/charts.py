"""The pictures of a page, as data for Plotly; its script adds the theme's colors."""

import base64
import json
from html import escape
from typing import Any

import numpy as np

from bistochastic.report.geometry import (
    SYMBOLS,
    Plane,
    Sureness,
    color,
    ordered,
    spread_edges,
)
from bistochastic.report.subject import Run, short

DRAWN = 100_000  # the most rows that are drawn
FLAT = 3_000  # the most rows that are drawn without WebGL
EDGES = 4_000  # the most edges that are drawn
EACH = 3  # the most edges that are drawn for each row, on average
NAMES = 1_800_000  # the most bytes of names that a page holds
STACKED = 24  # the most clusters that have bars of their own
BLOCKS = 400  # the most rows and columns of the matrix that is drawn
LAST_STEP = 65535  # the largest of the whole numbers that places are rounded to


def scatter(run: Run, plane: Plane, sure: Sureness | None) -> dict[str, Any]:
    """Return rows in a plane and the heaviest edges, packed.

    Parameters
    ----------
    run : Run
        The run.
    plane : Plane
        Where the rows lie.
    sure : Sureness or None
        How sure each assignment is.

    Returns
    -------
    dict
        Arrays in base64, and what was left out: "notes".
    """
    labels, n = run.labels, run.labels.size
    rows, notes = _drawn_rows(n)
    ends, more = _drawn_edges(run, rows)
    names, unnamed = _drawn_names(run, rows)
    low, high = plane.xy.min(axis=0), plane.xy.max(axis=0)
    steps = (plane.xy[rows] - low) / np.where(high > low, high - low, 1.0)
    steps = np.round(LAST_STEP * steps).astype("<u2")
    many = run.number > LAST_STEP + 1
    return {
        "n": int(rows.size),
        "low": low.tolist(),
        "high": high.tolist(),
        "x": packed(steps[:, 0]),
        "y": packed(steps[:, 1]),
        "label": packed(labels[rows].astype("<u4" if many else "<u2")),
        "many": bool(many),
        "sure": None if sure is None else _percent(sure.own[rows]),
        "rows": packed(rows.astype("<u4")) if rows.size < n else None,
        "names": names,
        "edges": packed(ends.astype("<u4").ravel()),
        "ticks": plane.measured,
        "axes": [escape(short(name), quote=False) for name in plane.names],
        "colors": [color(at) for at in range(run.number)],
        "symbols": list(SYMBOLS),
        "gl": bool(rows.size > FLAT),
        "notes": [plane.how, *notes, *more, *unnamed],
    }


def _drawn_rows(n: int) -> tuple[Any, list[str]]:
    """Return which of the rows are drawn, and a note if these are not all."""
    if n <= DRAWN:
        return np.arange(n), []
    rows = np.sort(np.random.default_rng(0).choice(n, DRAWN, replace=False))
    return rows, [f"{DRAWN:,} of {n:,} rows are drawn, chosen at random."]


def _drawn_edges(run: Run, rows: Any) -> tuple[Any, list[str]]:
    """Return pairs of rows that are drawn as edges, and a note if these are not all."""
    n = run.labels.size
    place = np.full(n, -1)
    place[rows] = np.arange(rows.size)
    most = min(EDGES, EACH * n)
    i, j, _, every = spread_edges(run.model.affinity_matrix_, run.labels, most)
    shown = (place[i] >= 0) & (place[j] >= 0)
    ends = np.column_stack([place[i[shown]], place[j[shown]]])
    if len(ends) == every:
        return ends, []
    drawn = f"{len(ends):,} of {every:,} edges are drawn"
    return ends, [f"{drawn}, the heaviest of each cluster."]


def _drawn_names(run: Run, rows: Any) -> tuple[list[str] | None, list[str]]:
    """Return names of the rows that are drawn, if any, or a note if they are long."""
    if run.ids is None:
        return None, []
    names = [short(run.ids[at], 40) for at in rows]
    if len(json.dumps(names)) <= NAMES:
        return names, []
    return None, ["Names are too long to be sent along: rows have numbers."]


def _percent(shares: Any) -> str:
    return packed(np.round(100 * shares).astype("u1"))


def packed(values: Any) -> str:
    """Return an array as base64 of its bytes."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def matrix(run: Run) -> tuple[dict[str, Any], str]:
    """Return the ordered matrix, and how it was made."""
    held = ordered(run.model.affinity_matrix_, run.labels, BLOCKS)
    shade = np.sqrt(held.means)
    top = shade.max(initial=0.0)
    shade = np.round(255 * np.minimum(shade / (top or 1.0), 1)).astype(np.uint8)
    n, m = run.labels.size, len(shade)
    places = (held.edges[:-1] + held.edges[1:]) / 2
    ends = np.r_[0, held.ends]
    wide = np.flatnonzero(np.diff(ends) > n / 25)
    ticks = ((ends[:-1] + ends[1:]) / 2)[wide]
    axis = {
        "tickvals": ticks.tolist(), "ticktext": [f"{at}" for at in wide],
        "title": {"text": "rows, by cluster"}, "constrain": "domain", "showgrid": False,
        "zeroline": False, "range": [0, n],
    }  # fmt: skip
    said = "Each cell is one pair of rows."
    if m < n:
        said = (
            f"{n:,} rows are drawn as {m} blocks of about {n / m:.0f}, by their means."
        )
    return {
        "data": [
            {
                "type": "heatmap", "z": _typed(shade), "x": places.tolist(),
                "y": places.tolist(), "showscale": False, "hoverinfo": "skip",
                "colorscale": "page",
            }
        ],
        "layout": {
            "xaxis": axis,
            "yaxis": axis | {"scaleanchor": "x", "range": [n, 0]},
            "height": 520,
        },
    }, said  # fmt: skip


def _typed(array: Any) -> dict[str, Any]:
    """Return a matrix of bytes as Plotly takes it."""
    return {
        "dtype": "u1",
        "bdata": packed(array),
        "shape": f"{len(array)}, {len(array)}",
    }


def confidence(run: Run, sure: Sureness) -> dict[str, Any]:
    """Return how many rows are how sure, by cluster."""
    edges = np.linspace(0, 1, 21)
    groups = [("all clusters", np.ones(run.labels.size, dtype=bool), color(0))]
    if run.number <= STACKED:
        groups = [
            (f"cluster {at}", run.labels == at, color(at)) for at in range(run.number)
        ]
    data = []
    for name, rows, shade in groups:
        counts = np.histogram(sure.own[rows], edges)[0]
        data.append(
            {
                "type": "bar", "x": ((edges[:-1] + edges[1:]) / 2).round(3).tolist(),
                "y": counts.tolist(), "width": 0.045, "name": name,
                "marker": {"color": shade},
                "hovertemplate": "%{y} rows at %{x:.2f}<extra>" + name + "</extra>",
            }
        )  # fmt: skip
    return {
        "data": data,
        "layout": {
            "barmode": "stack", "height": 320, "showlegend": False,
            "xaxis": {
                "title": {"text": "share of the weight in its own cluster"},
                "range": [0, 1],
            },
            "yaxis": {"title": {"text": "rows"}},
        },
    }  # fmt: skip


def agreement(run: Run) -> dict[str, Any]:
    """Return how well the partitions of other numbers of neighbors agree."""
    trials = run.model.trials_
    least = min(0.0, *(1.1 * t["agreement"] for t in trials))
    k = [
        f"{t['n_neighbors']}"
        + (f", {t['refine']}" if len({u["refine"] for u in trials}) > 1 else "")
        for t in trials
    ]
    return {
        "data": [
            {
                "type": "bar", "x": k,
                "y": [round(t["agreement"] + 0.0, 4) for t in trials],
                "marker": {
                    "color": [color(0) if t["kept"] else "#8a929c" for t in trials]
                },
                "text": [f"{t['agreement'] + 0.0:.2f}" for t in trials],
                "textposition": "outside", "cliponaxis": False,
                "hovertemplate": "k = %{x}: %{y:.3f}<extra></extra>",
            }
        ],
        "layout": {
            "height": 320, "showlegend": False,
            "xaxis": {
                "title": {"text": "number of neighbors; blue was kept"},
                "type": "category",
            },
            "yaxis": {"title": {"text": "adjusted Rand index"}, "range": [least, 1.12]},
        },
    }  # fmt: skip


def convergence(run: Run) -> dict[str, Any]:
    """Return objective and number of components over the steps."""
    history = run.model.history_
    steps = list(range(1, len(history) + 1))
    every = max(1, max(int(h["n_components"]) for h in history) // 6)
    return {
        "data": [
            {
                "type": "scatter", "mode": "lines+markers", "x": steps,
                "name": "objective", "y": [float(h["objective"]) for h in history],
                "line": {"color": color(0)},
                "hovertemplate": "step %{x}: objective %{y:.5g}<extra></extra>",
            },
            {
                "type": "scatter", "mode": "lines", "x": steps, "name": "components",
                "y": [int(h["n_components"]) for h in history], "yaxis": "y2",
                "line": {"color": color(1), "shape": "hvh"},
                "hovertemplate": "step %{x}: %{y} components<extra></extra>",
            },
        ],
        "layout": {
            "height": 320, "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.15},
            "xaxis": {
                "title": {"text": "step"}, "tickformat": "d",
                "dtick": max(1, len(steps) // 10),
            },
            "yaxis": {"title": {"text": "objective, Eq. (10)"}},
            "yaxis2": {
                "title": {"text": "components"}, "overlaying": "y", "side": "right",
                "rangemode": "tozero", "showgrid": False, "tickformat": "d",
                "dtick": every,
            },
        },
    }  # fmt: skip
