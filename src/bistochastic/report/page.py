"""Pages: one file each, with all that they show inside."""

import base64
import hashlib
import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bistochastic import __version__
from bistochastic.core.errors import MissingError, several
from bistochastic.core.parameters import PAIRS
from bistochastic.core.quiet import quietly
from bistochastic.io.paths import FilePath
from bistochastic.io.writing import replacing
from bistochastic.report import charts, facts, verdict
from bistochastic.report.geometry import Sureness, plane, sureness
from bistochastic.report.subject import Run, number, short

SAID = 600  # the most characters of a note that are shown
VERSIONS = ("numpy", "scipy", "scikit-learn", "plotly")


@quietly
def write_page(
    path: FilePath,
    model: Any,
    X: Any,
    *,
    names: Sequence[str] | None = None,
    ids: Sequence[Any] | None = None,
    truth: Any = None,
    shift: Any = None,
    factor: Any = None,
    layout: str = "auto",
    title: str | None = None,
    more: dict[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write a page on a result, to look at in a browser.

    One HTML file that needs no network: the data in a plane by cluster with the learned
    graph, what sets clusters apart, how sure each row is, the ordered matrix,
    convergence, scores if labels are given, and how it was made.

    Parameters
    ----------
    path : path
        Where to write.
    model : estimator
        A fitted one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What it was fitted to.
    names : sequence of str, optional
        Of the columns; those of a data frame by default.
    ids : sequence, optional
        Names of the rows.
    truth : sequence, optional
        Labels to compare with; None where one is missing.
    shift, factor : arrays of shape (n_features,), optional
        X times `factor` plus `shift` gives the columns in their own units.
    layout : {"auto", "pca", "tsne"}
        How the plane is found: principal components, or t-SNE; "auto" takes the first
        of 2,000 or more rows, and where two components hold half of the variance.
    title : str, optional
        What stands above.
    more : dict, optional
        What else to say: "file", "seconds" (dict), "peak_memory_mb", "notes" and
        "warnings" (lists), "command".
    force : bool
        Whether a file that is there may be replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from bistochastic import ANCMM
    >>> from bistochastic.report import write_page
    >>> iris = load_iris()
    >>> model = ANCMM(3).fit(iris.data)
    >>> with TemporaryDirectory() as folder:
    ...     page = Path(folder) / "iris.html"
    ...     write_page(page, model, iris.data, names=iris.feature_names)
    ...     page.stat().st_size < 8_000_000
    True
    """
    if names is None and hasattr(X, "columns"):
        names = list(X.columns)
    run = Run(model, X, names, ids, truth, shift, factor, more or {})
    text = page(run, layout=layout, title=title)
    with replacing(path, force) as stream:
        stream.write(text.encode("utf-8", errors="replace"))


def page(run: Run, *, layout: str = "auto", title: str | None = None) -> str:
    """Return the page of a run.

    Parameters
    ----------
    run : Run
        What to show.
    layout : str
        How the plane is found.
    title : str, optional
        What stands above.

    Returns
    -------
    str
        HTML.
    """
    plotly = plotly_script()
    sure = sureness(run.model, run.given)
    places = plane(run.model, run.X, layout=layout, names=run.names)
    shown = charts.scatter(run, places, sure)
    drawn, said = _charts(run, sure)
    where = short(run.more.get("file") or f"{run.labels.size:,} rows")
    return rendered(
        "run.html.jinja",
        {"plane": shown, "charts": drawn},
        plotly,
        title=short(title or f"{several(run.number, 'cluster')} of {where}"),
        plane_notes=shown.pop("notes"),
        has_agreement="agreement" in drawn,
        has_history="convergence" in drawn,
        **said,
        **_judgement(run, sure),
        **_tables(run, sure),
        **_graph(run),
        **_making(run),
    )


def _judgement(run: Run, sure: Sureness | None) -> dict[str, Any]:
    """Return what a page says of the clusters as a whole."""
    signs, labels = verdict.signs(run, sure), facts.compared(run)
    return {
        "sentence": facts.sentence(run),
        "verdict": verdict.verdict(signs, labels),
        "signs": signs,
        "tried": verdict.tried(run),
        **_compared(labels),
    }


def _tables(run: Run, sure: Sureness | None) -> dict[str, Any]:
    """Return what a page says of clusters, rows and bridges."""
    clusters = facts.clusters(run, sure)
    rows = facts.uncertain(run, sure)
    bridges = facts.joined(run)
    pairs = [(pair["one"], pair["other"], pair["cluster"]) for pair in bridges["pairs"]]
    return {
        "clusters": clusters,
        "any_columns": any(one["columns"] for one in clusters),
        "typical": _typical(run),
        "rows": rows,
        "rows_note": _note(rows, run),
        "bridges": bridges,
        "bridge_rows": pairs,
    }


def _making(run: Run) -> dict[str, Any]:
    """Return what a page says of how the result was made."""
    return {
        "warnings": [short(text, SAID) for text in run.more.get("warnings", ())],
        "notes": [short(text, SAID) for text in run.more.get("notes", ())],
        "steps": _steps(run),
        "parameters": _parameters(run.model),
        "snippets": _snippets(run),
        "about": _about(run),
    }


def rendered(
    template: str,
    held: dict[str, Any] | None = None,
    plotly: str | None = None,
    **known: Any,
) -> str:
    """Fill a template with facts, style and scripts.

    Parameters
    ----------
    template : str
        Its name.
    held : dict, optional
        Data for the page's script; none for a page without one.
    plotly : str, optional
        The script of Plotly.
    **known : object
        What the template names.

    Returns
    -------
    str
        HTML. Only the scripts that are meant may run, whatever the data hold.
    """
    try:
        import jinja2
    except ImportError:
        raise _missing("jinja2") from None
    parts = files("bistochastic.report").joinpath("parts")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: parts.joinpath(name).read_text(encoding="utf-8")
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["number"] = number
    safe = jinja2.utils.markupsafe.Markup
    script = parts.joinpath("page.js").read_text(encoding="utf-8")
    allowed = "'none'"
    if held is not None:
        hashes = [f"'sha256-{_digest(text)}'" for text in (plotly or "", script)]
        allowed = f"{' '.join(hashes)} 'unsafe-eval'"  # WebGL writes its own functions
    return environment.get_template(template).render(
        version=__version__,
        when=datetime.now(UTC).strftime(" on %Y-%m-%d"),
        style=safe(parts.joinpath("style.css").read_text(encoding="utf-8")),
        allowed=safe(allowed),
        held=safe(as_data(held)) if held is not None else "",
        plotly=safe(plotly or ""),
        script=safe(script),
        **known,
    )


def as_data(held: Any) -> str:
    """Return JSON that may stand inside a script: nothing in it can end it."""
    text = json.dumps(held, allow_nan=False, ensure_ascii=True)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def plotly_script() -> str:
    """Return Plotly's script, which goes into the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise _missing("plotly") from None
    return get_plotlyjs().replace("</script", "<\\/script")


def check_installed() -> None:
    """Raise unless all is there that pages need: before a long run, not after it.

    Examples
    --------
    >>> from bistochastic.report import check_installed
    >>> check_installed()
    """
    plotly_script()
    rendered("base.html.jinja", title="")


def _missing(name: str) -> MissingError:
    return MissingError(
        f"A page needs {name}, which is not installed: "
        "pip install 'bistochastic[report]'"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _charts(run: Run, sure: Sureness | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the charts, and the words that go with them."""
    model, drawn = run.model, {}
    drawn["matrix"], said = charts.matrix(run)
    words = ("confidence_label", "agreement_label", "convergence_label")
    labels = dict.fromkeys((*words, "convergence_note"), "")
    if sure is not None:
        drawn["confidence"] = charts.confidence(run, sure)
        low = int((sure.own < 0.5).sum())
        labels["confidence_label"] = (
            f"How many rows are how sure; the mean is {sure.own.mean():.2f}, "
            f"{several(low, 'row')} below one half."
        )
    if verdict.tried(run):
        drawn["agreement"] = charts.agreement(run)
        each = ", ".join(
            f"{trial['n_neighbors']}: {trial['agreement']:.2f}"
            for trial in model.trials_
        )
        labels["agreement_label"] = f"Agreement by number of neighbors: {each}."
    history = getattr(model, "history_", ())
    if history and all("objective" in record for record in history):
        drawn["convergence"] = charts.convergence(run)
        first, last = history[0], history[-1]
        if any(record.get("penalty") for record in history):
            labels["convergence_note"] = (
                "The penalty on the smallest eigenvalues rises until the graph falls "
                "apart."
            )
        labels["convergence_label"] = (
            f"From {several(first['n_components'], 'component')} to "
            f"{last['n_components']} in {several(len(history), 'step')}."
        )
    return drawn, labels | {"matrix_note": said}


def _note(rows: list[Any], run: Run) -> str:
    if len(rows) < run.labels.size:
        return f"The {len(rows)} least certain of {run.labels.size:,} rows."
    return "All rows."


def _typical(run: Run) -> str:
    """Say which rows stand for their clusters."""
    if getattr(run.model, "metric", None) in PAIRS:
        return "Typical rows are the surest of their cluster."
    return "Typical rows are the nearest to the mean of their cluster."


def _graph(run: Run) -> dict[str, str]:
    """Say what the matrix is, from what is in it."""
    S = csr_array(run.model.affinity_matrix_)
    sums = [np.asarray(S.sum(axis=axis)).ravel() for axis in (0, 1)]
    i, j = S.tocoo().coords
    between = int((run.labels[i] != run.labels[j]).sum())
    doubly = max(np.abs(part - 1).max() for part in sums) <= 1e-6
    text = "every row sums to one, and " if doubly else ""
    text += f"{between:,} weights are" if between else "there is nothing"
    return {
        "graph_name": "The doubly stochastic matrix" if doubly else "The matrix",
        "graph_text": f"{text} between clusters.",
    }


def _steps(run: Run) -> str:
    """Say how the number of clusters was reached."""
    if run.number == run.labels.size:
        return "Every row is a cluster of its own."
    history = getattr(run.model, "history_", ())
    actions = [record.get("action") for record in history]
    cuts, joins = actions.count("cut"), actions.count("join")
    if cuts or joins:
        return (
            f"The penalty alone did not end with the wanted number: "
            f"{several(joins, 'join')} and {several(cuts, 'cut')} were needed."
        )
    penalized = any(record.get("penalty") for record in history)
    if penalized and getattr(run.model, "converged_", False):
        return "The penalty alone gave the wanted number: no component was cut."
    return ""


def _compared(found: dict[str, Any] | None) -> dict[str, Any]:
    """Return what a page says of given labels."""
    if found is None:
        return {"compared": None, "score_head": [], "score_row": [], "label_note": ""}
    return {
        "compared": found,
        "score_head": list(found["scores"]),
        "score_row": [f"{value:.3f}" for value in found["scores"].values()],
        "label_note": f"{several(found['classes'], 'label')} of "
        f"{several(found['rows'], 'row')}; the labels were not used to find clusters.",
    }


def _parameters(model: Any) -> list[tuple[str, str]]:
    """Return parameters, those that were changed first."""
    default = type(model)().get_params()
    now = model.get_params()
    changed = [name for name in now if repr(now[name]) != repr(default.get(name))]
    others = [name for name in now if name not in changed]
    return [
        (name, short(repr(now[name])) + ("" if name in changed else " (default)"))
        for name in (*changed, *others)
    ]


def _snippets(run: Run) -> list[tuple[str, str]]:
    """Return what makes the result again."""
    given = {
        name: value
        for name, value in run.model.get_params().items()
        if repr(value) != repr(type(run.model)().get_params()[name])
    }
    written = ", ".join(f"{name}={_written(value)}" for name, value in given.items())
    name = type(run.model).__name__
    made = []
    if run.more.get("command"):
        made.append(("Command", run.more["command"]))
    how = run.more.get("scaled")
    text = f"from bistochastic import {name}\n"
    if how == "...":
        text += "\n# X: the columns as the command makes them ready"
    elif how:
        text += f"from sklearn.preprocessing import {how}\n\n"
        text += f"X = {how}().fit_transform(X)"
    return [*made, ("Python", f"{text}\nmodel = {name}({written}).fit(X)")]


def _written(value: Any) -> str:
    """Return a value as code, or dots for what has none."""
    value = value.item() if isinstance(value, np.generic) else value
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else "..."


def _about(run: Run) -> list[tuple[str, str]]:
    """Return time, memory and versions."""
    made = [
        (f"seconds to {name}", f"{value:.2f}")
        for name, value in run.more.get("seconds", {}).items()
    ]
    if run.more.get("peak_memory_mb"):
        made.append(("memory at most", f"{run.more['peak_memory_mb']:,} MB"))
    made.append(("bistochastic", __version__))
    made.append(("Python", platform.python_version()))
    return made + [(name, version(name)) for name in VERSIONS]
