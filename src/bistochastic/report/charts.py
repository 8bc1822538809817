"""The pictures of a page, as data for Plotly; its script adds the theme's colors."""

import base64
import json
from html import escape

import numpy as np

from bistochastic.report.geometry import SYMBOLS, color, ordered, spread_edges
from bistochastic.report.subject import short

DRAWN = 100_000  # rows that are drawn one by one
FLAT = 3_000  # rows from which on they are drawn by WebGL
EDGES, EACH = 4_000, 3  # edges that are drawn, in all and for each row
NAMES = 1_800_000  # bytes of names that are sent along
STACKED = 24  # clusters that have bars of their own
BLOCKS = 400


def scatter(run, plane, sure):
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
    labels, n, notes = run.labels, run.labels.size, [plane.how]
    rows = np.arange(n)
    if n > DRAWN:
        rows = np.sort(np.random.default_rng(0).choice(n, DRAWN, replace=False))
        notes.append(f"{DRAWN:,} of {n:,} rows are drawn, chosen at random.")
    place = np.full(n, -1)
    place[rows] = np.arange(rows.size)
    most = min(EDGES, EACH * n)
    i, j, _, every = spread_edges(run.model.affinity_matrix_, labels, most)
    shown = (place[i] >= 0) & (place[j] >= 0)
    i, j = place[i[shown]], place[j[shown]]
    if i.size < every:
        notes.append(
            f"{i.size:,} of {every:,} edges are drawn, the heaviest of each cluster."
        )
    names = None
    if run.ids is not None:
        names = [short(run.ids[at], 40) for at in rows]
        if len(json.dumps(names)) > NAMES:
            names = None
            notes.append("Names are too long to be sent along: rows have numbers.")
    low, high = plane.xy.min(axis=0), plane.xy.max(axis=0)
    steps = (plane.xy[rows] - low) / np.where(high > low, high - low, 1.0)
    steps = np.round(65535 * steps).astype("<u2")
    return {
        "n": int(rows.size),
        "low": low.tolist(),
        "high": high.tolist(),
        "x": packed(steps[:, 0]),
        "y": packed(steps[:, 1]),
        "label": packed(labels[rows].astype("<u4" if run.number > 65536 else "<u2")),
        "many": bool(run.number > 65536),
        "sure": None if sure is None else _percent(sure.own[rows]),
        "rows": packed(rows.astype("<u4")) if rows.size < n else None,
        "names": names,
        "edges": packed(np.column_stack([i, j]).astype("<u4").ravel()),
        "ticks": plane.measured,
        "axes": [escape(short(name), quote=False) for name in plane.names],
        "colors": [color(at) for at in range(run.number)],
        "symbols": list(SYMBOLS),
        "gl": bool(rows.size > FLAT),
        "notes": notes,
    }  # fmt: skip


def _percent(shares):
    return packed(np.round(100 * shares).astype("u1"))


def packed(values):
    """Return an array as base64 of its bytes."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def matrix(run):
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


def _typed(array):
    """Return a matrix of bytes as Plotly takes it."""
    return {
        "dtype": "u1",
        "bdata": packed(array),
        "shape": f"{len(array)}, {len(array)}",
    }


def confidence(run, sure):
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


def agreement(run):
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


def convergence(run):
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
