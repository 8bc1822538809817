"""What the commands `cluster` and `predict` do."""

import io
import platform
import resource
import shlex
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
from rich.table import Table as Grid
from rich.text import Text
from sklearn.metrics import adjusted_rand_score

from bistochastic import ANCMM, __version__
from bistochastic.cli.console import SHORT, UsageError, remarks, shown
from bistochastic.cli.outputs import GRAPHS, PAGES, TABLES, check_outputs
from bistochastic.core.errors import FileError, InputError, listed, several
from bistochastic.core.parameters import check_jobs
from bistochastic.io import (
    read_table,
    save,
    write_graph,
    write_labels,
    write_summary,
)
from bistochastic.io.models import load_with_extra
from bistochastic.io.writing import as_json
from bistochastic.metrics import (
    clustering_accuracy,
    normalized_mutual_information,
    purity,
)
from bistochastic.places.torch_device.device import TorchDevice
from bistochastic.report import write_page
from bistochastic.tables.preparation import (
    LAYOUT,
    Preparation,
    applied,
    counting,
    learned,
    scale_of,
)

SCORES = {
    "accuracy": clustering_accuracy,
    "nmi": normalized_mutual_information,
    "purity": purity,
    "ari": adjusted_rand_score,
}
SHOWN = 20  # clusters that are listed one by one
SHAKY = 0.6  # of the agreement between numbers of neighbors
NUMBERS_THEN = "It was a column of numbers when the model was made."
ENDINGS = {"labels": TABLES, "graph": GRAPHS, "report": PAGES, "out": PAGES}
SCALERS = {"zscore": "StandardScaler", "minmax": "MinMaxScaler"}
TOLD = (
    "file", "scale", "notes", "warnings", "seconds", "peak_memory_mb", "command",
)  # fmt: skip


def number_or_auto(name, text):
    """Return a whole number, or "auto"."""
    if text == "auto":
        return text
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"{name} {text}: write a whole number from 1 on, or auto.")
    return number


def cluster(
    voice, path, reading, *, number, preparing, options, outputs, layout, force, raw,
    json,
):  # fmt: skip
    """Read, cluster, write, and say what came out.

    Parameters
    ----------
    voice : Voice
        Speaks.
    path : Path
        The file.
    reading : dict
        Options of `read_table`.
    number : str
        How many clusters.
    preparing : dict
        How the columns are made ready.
    options : dict
        Options of ANCMM.
    outputs : dict
        Files to write; None for those that are not wanted.
    layout : str
        How the page lays rows out.
    force, raw, json : bool
        Whether to replace files, leave ids as they are, print JSON.
    """
    options = {"n_clusters": number_or_auto("--clusters", number)} | options
    _check_outputs(voice, [path], outputs, force)
    _check_model(options)
    if not (any(outputs.values()) or json):
        voice.note("Only a summary will be shown; --labels FILE keeps the clusters.")
    began = time.perf_counter()
    with voice.stage(f"Reading {path.name}"):
        table = read_table(path, **reading)
    scale, said = scale_of(table, preparing["scale"], options["metric"])
    rows, width = table.values.shape
    voice.note(
        f"{path.name}: {several(rows, 'row')}, {several(width, 'column')} used "
        f"({listed(table.names, 6)}). {said}"
    )
    read_as = {name: reading[name] for name in LAYOUT}
    preparing = preparing | {"scale": scale, "layout": read_as}
    counted = counting(table)
    preparation, X, kept, notes = learned(path, table, **preparing)
    notes = table.notes + notes
    for note in notes:
        voice.note(note)
    for note in counted:
        voice.warn(note)
    notes += counted
    read = time.perf_counter()
    with voice.fit(f"Clustering {several(X.shape[0], 'row')}"), remarks() as said:
        model = ANCMM(**options).fit(X)
    fitted = time.perf_counter()
    truth = None if table.labels is None else np.asarray(table.labels)[kept]
    facts = {
        "file": voice.known_as.get(str(path), str(path)),
        "rows": rows,
        "rows_left_out": int((~kept).sum()),
        "columns": width,
        "column_names": table.names,
        "scale": scale,
        "n_clusters": model.n_clusters_,
        "n_components": model.n_components_,
        "sizes": np.bincount(model.labels_).tolist(),
        "n_neighbors": model.n_neighbors_,
        "stability": model.stability_,
        "converged": bool(model.converged_),
        "steps": model.n_iter_,
        "bridges": len(model.bridges_),
        "recall": model.history_[0].get("recall"),
        "scores": scores(truth, model.labels_),
        "notes": notes,
        "warnings": said,
        "seconds": {"read": read - began, "fit": fitted - read},
        "peak_memory_mb": peak(),
        "parameters": model.get_params(),
        "versions": versions(),
        "outputs": {name: out for name, out in outputs.items() if out},
        "command": shlex.join(["bistochastic", *sys.argv[1:]]),
    }
    for text in said:
        voice.warn(text)
    labels = _spread_out(model.labels_, kept)
    if outputs["labels"]:
        _write_labels(voice, outputs["labels"], labels, table, force, raw)
    if outputs["graph"]:
        with voice.stage("Writing the graph"):
            write_graph(outputs["graph"], model.affinity_matrix_, force=force)
        voice.wrote(outputs["graph"], "doubly stochastic graph")
    if outputs["model"]:
        told = {name: facts[name] for name in TOLD}
        extra = {"preparation": preparation.kept(), "told": told}
        with voice.stage("Writing the model"):
            save(model, outputs["model"], extra=extra, force=force)
        voice.wrote(outputs["model"], "model for `bistochastic predict`")
    if outputs["report"]:
        with voice.stage("Writing the page"):
            _write_report(
                outputs["report"], model, X, table, kept, preparation, facts, layout,
                force,
            )  # fmt: skip
        voice.wrote(outputs["report"], "page to look at")
    if outputs["summary"]:
        write_summary(outputs["summary"], facts, force=force)
        voice.wrote(outputs["summary"], "summary")
    if json:
        voice.put(as_json(facts))
    else:
        show(voice, facts, table, labels)
    if not model.converged_:
        sys.exit(SHORT)


def _write_report(out, model, X, table, kept, preparation, told, layout, force):
    """Write the page of a model and the rows that it was made of."""
    names, shift, factor = preparation.described()
    ids = None if table.ids is None else np.asarray(table.ids)[kept]
    if ids is None and not kept.all():
        ids = [f"row {at + 1}" for at in np.flatnonzero(kept)]
    simple = kept.all() and not preparation.texts and not preparation.fill
    scaled = SCALERS.get(told["scale"]) if simple else "..."
    write_page(
        out,
        model,
        X,
        names=names,
        ids=ids,
        truth=None if table.labels is None else np.asarray(table.labels)[kept],
        shift=shift,
        factor=factor,
        layout=layout,
        more=told | {"scaled": scaled},
        force=force,
    )


def report(voice, saved, path, reading, *, out, layout, drop_missing, force):
    """Read a model and the file that it was made of, and write a page.

    Parameters
    ----------
    voice : Voice
        Speaks.
    saved : Path
        The model.
    path : Path
        The file.
    reading : dict
        Options of `read_table`.
    out : str
        The page.
    layout : str
        How rows are laid out.
    drop_missing : bool
        Whether rows with missing values are left out.
    force : bool
        Whether to replace a file.
    """
    _check_outputs(voice, [saved, path], {"out": out}, force)
    model, extra, preparation, table, X, kept, _ = _again(
        voice, saved, path, reading, drop_missing
    )
    if X.shape[0] != model.labels_.size:
        raise InputError(
            f"{path} has {several(X.shape[0], 'row')}, and the model was made of "
            f"{model.labels_.size:,}; a page needs the file that it was made of."
        )
    told = {"file": str(path), "scale": preparation.scale} | _told(saved, extra)
    with voice.stage("Writing the page"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature")
        _write_report(out, model, X, table, kept, preparation, told, layout, force)
    voice.wrote(out, "page to look at")
    voice.tell(f"The page: {out}")


def predict(
    voice, saved, path, reading, *, drop_missing, labels, force, raw, json, jobs
):
    """Read a model and a file, assign its rows, write, and say what came out.

    Parameters
    ----------
    voice : Voice
        Speaks.
    saved : Path
        The model.
    path : Path
        The file.
    reading : dict
        Options of `read_table`.
    drop_missing : bool
        Whether rows with missing values are left out.
    labels : str or None
        Where to write.
    force, raw, json : bool
        Whether to replace files, leave ids as they are, print JSON.
    jobs : int or None
        Threads.
    """
    _check_outputs(voice, [saved, path], {"labels": labels}, force)
    check_jobs("n_jobs", jobs)
    model, _, _, table, X, kept, notes = _again(
        voice, saved, path, reading, drop_missing
    )
    if jobs is not None:
        model.set_params(n_jobs=jobs)
    with voice.stage(f"Assigning {several(X.shape[0], 'row')}"):
        try:
            shares = model.predict_proba(X)
        except InputError:
            raise
        except Exception as error:  # of attributes that are not what they were
            raise FileError(f"{saved} does not fit {path}: {error}") from None
    found = shares.argmax(axis=1)
    confidence = np.full(len(kept), np.nan)
    confidence[kept] = shares.max(axis=1)
    truth = None if table.labels is None else np.asarray(table.labels)[kept]
    sizes = np.bincount(found, minlength=model.n_clusters_).tolist()
    facts = {
        "file": voice.known_as.get(str(path), str(path)),
        "model": str(saved),
        "rows": len(kept),
        "rows_left_out": int((~kept).sum()),
        "sizes": sizes,
        "mean_confidence": float(shares.max(axis=1).mean()),
        "scores": scores(truth, found),
        "notes": notes,
        "outputs": {"labels": labels} if labels else {},
        "versions": versions(),
    }
    if labels:
        more = {"confidence": [None if c != c else round(c, 6) for c in confidence]}
        every = _spread_out(found, kept)
        _write_labels(voice, labels, every, table, force, raw, more)
    if json:
        voice.put(as_json(facts))
        return
    shares = (f"cluster {i}: {size:,}" for i, size in enumerate(sizes))
    voice.tell(
        f"{several(len(found), 'row')} assigned ({listed(shares, SHOWN)}), with a mean "
        f"confidence of {facts['mean_confidence']:.2f}."
    )
    _show_scores(voice, facts["scores"])


def _told(saved, extra):
    """Return what a model's file says of how it was made, if that can be."""
    told = extra.get("told", {})
    kinds = {
        "file": str, "scale": str, "command": str, "notes": list, "warnings": list,
        "seconds": dict, "peak_memory_mb": int,
    }  # fmt: skip
    good = isinstance(told, dict) and all(
        isinstance(value, kinds.get(name, ())) for name, value in told.items()
    )
    seconds = told.get("seconds", {}) if good else {}
    if not good or not all(isinstance(v, int | float) for v in seconds.values()):
        raise FileError(f"{saved} is damaged: what it says of how it was made.")
    return told


def _again(voice, saved, path, reading, drop_missing):
    """Read a model, and a file as the one that it was made of was read."""
    model, extra = load_with_extra(saved, max_memory=reading["max_memory"])
    if not (hasattr(model, "labels_") and hasattr(model, "predict_proba")):
        raise InputError(
            f"{saved} holds a {type(model).__name__}, "
            + ("which was not fitted." if hasattr(model, "predict_proba")
               else "which has no rule for new rows.")
        )  # fmt: skip
    preparation = _preparation(saved, model, extra)
    given = {k: v for k, v in reading.items() if v is not None}
    taken = preparation.layout | given
    named = not preparation.numbered()
    if named:
        taken |= {"use": preparation.names, "exact": True}
    with voice.stage(f"Reading {path.name}"):
        table = read_table(
            path, **taken, encode=tuple(preparation.texts), advice=NUMBERS_THEN
        )
    if table.values.shape[1] != len(preparation.names):
        raise InputError(
            f"{path} has {several(table.values.shape[1], 'column')} to use, and the "
            f"model was made of {len(preparation.names)}."
        )
    try:
        X, kept, notes = applied(path, table, preparation, drop_missing=drop_missing)
    except InputError:
        raise
    except (LookupError, TypeError, ValueError) as error:
        raise FileError(f"{saved} is damaged: {error}") from None
    for note in notes:
        voice.note(note)
    return model, extra, preparation, table, X, kept, notes


def _preparation(saved, model, extra):
    """Return what was done to the columns of the model's table."""
    held = extra.get("preparation")
    if held is None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [str(i + 1) for i in range(model.n_features_in_)]
        return Preparation(list(map(str, names)), {}, "none")
    try:
        return Preparation(**held).checked(model.n_features_in_)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise FileError(f"{saved} is damaged: what it says of columns.") from None


def scores(truth, labels):
    """Return how well clusters agree with given labels, where there are such.

    Parameters
    ----------
    truth : array or None
        Given labels; None where one is missing.
    labels : array of int
        Clusters.

    Returns
    -------
    dict or None
        Scores by name, and how many rows had a label.
    """
    if truth is None:
        return None
    there = np.array([t is not None and t == t for t in truth.tolist()], dtype=bool)
    if not there.any():
        return None
    places = {}
    truth = np.array([places.setdefault(str(t), len(places)) for t in truth[there]])
    found = {name: float(f(truth, labels[there])) for name, f in SCORES.items()}
    return found | {"rows": int(there.sum()), "classes": len(places)}


def versions():
    """Return what made the result."""
    names = ("numpy", "scipy", "scikit-learn")
    found = {"bistochastic": __version__, "python": platform.python_version()}
    return found | {name: version(name) for name in names}


def peak():
    """Return the most memory that this process has taken, in MB."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(held / (1e6 if sys.platform == "darwin" else 1e3))


def _check_outputs(voice, inputs, outputs, force):
    check_outputs(voice, inputs, outputs, force, endings=ENDINGS, streams=("labels",))


def _check_model(options):
    """Refuse parameters that do not fit before anything is read."""
    ANCMM(**options)._check()
    if options["device"] is not None:
        TorchDevice.named(options["device"])


def _spread_out(labels, kept):
    """Return labels of all rows, None for those that were left out."""
    if kept.all():
        return labels
    every = np.full(kept.size, None, dtype=object)
    every[kept] = labels.tolist()
    return every


def _write_labels(voice, out, labels, table, force, raw, more=None):
    text = io.StringIO()
    marked = write_labels(
        text if out == "-" else out, labels, ids=table.ids, id_name=table.id_name,
        columns=more, force=force, raw=raw,
    )  # fmt: skip
    if out == "-":
        voice.put(text.getvalue())
    if out != "-":
        voice.wrote(out, f"clusters of {several(len(labels), 'row')}")
    if marked:
        voice.warn(
            f"{several(marked, 'name')} that a spreadsheet would take for a formula "
            "got an apostrophe before it (--raw-ids leaves them)."
        )


def show(voice, facts, table, labels):
    """Show the result of a fit to a person."""
    number = facts["n_clusters"]
    used = facts["rows"] - facts["rows_left_out"]
    left = f" ({several(facts['rows_left_out'], 'row')} left out)"
    each = ""
    if facts["n_neighbors"] is not None:
        each = f", with {several(facts['n_neighbors'], 'neighbor')} each"
    voice.tell(
        f"\n{several(number, 'cluster')} of {several(used, 'row')}"
        f"{left if facts['rows_left_out'] else ''}{each}:"
    )
    grid = Grid(box=None, pad_edge=True)
    for name in ("cluster", "rows", "share"):
        grid.add_column(name, justify="right")
    sizes = facts["sizes"]
    grid.add_column("first rows" if table.ids is None else "first members")
    total = sum(sizes)
    members = _members(table, labels, min(len(sizes), SHOWN))
    for label, size in enumerate(sizes[:SHOWN]):
        share = Text(f"{size / total:.1%}")
        grid.add_row(str(label), f"{size:,}", share, Text(members[label], style="dim"))
    voice.tell(grid)
    if number > SHOWN:
        voice.tell(
            f"  ... and {number - SHOWN:,} more, of {min(sizes[SHOWN:]):,} to "
            f"{max(sizes[SHOWN:]):,} rows."
        )
    if facts["parameters"]["n_neighbors"] == "auto":
        s = facts["stability"]
        said = "."
        if s < SHAKY:
            said = "; another number of clusters, columns or scaling may fit better."
        voice.tell(f"Stability: other numbers of neighbors agree to {s:.2f} of 1{said}")
    _show_scores(voice, facts["scores"])
    seconds = facts["seconds"]
    voice.tell(
        f"Read in {seconds['read']:.1f} s, clustered in {seconds['fit']:.1f} s, "
        f"{facts['peak_memory_mb']:,} MB at most."
    )


def _show_scores(voice, found):
    if found:
        voice.tell(
            f"Against the {several(found['classes'], 'label')} of "
            f"{several(found['rows'], 'row')}: accuracy {found['accuracy']:.1%}, NMI "
            f"{found['nmi']:.2f}, adjusted Rand index {found['ari']:.2f}, purity "
            f"{found['purity']:.1%}."
        )


def _members(table, labels, number):
    """Return the first names of each cluster, for people."""
    ids = table.ids if table.ids is not None else np.arange(1, len(labels) + 1)
    said = []
    for label in range(number):
        first = [shown(ids[i]) for i in np.flatnonzero(labels == label)[:4]]
        first = [name if len(name) <= 18 else name[:17] + "…" for name in first]
        said.append(", ".join(first[:3]) + (", …" if len(first) > 3 else ""))
    return said
