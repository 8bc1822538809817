"""The command `cluster`: the rows of a file in clusters, and files that keep them."""

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bistochastic import ANCMM
from bistochastic.cli.console import SHORT, Voice, remarks
from bistochastic.cli.inputs import at_hand
from bistochastic.cli.labels import of_every_row, put_labels
from bistochastic.cli.outputs import GRAPHS, PAGES, TABLES, check_outputs
from bistochastic.cli.report import put_page
from bistochastic.cli.request import Fitting, Preparing, Reading, Writing
from bistochastic.cli.rows import Rows
from bistochastic.cli.summary import facts_of, show
from bistochastic.core.errors import listed, several
from bistochastic.io import read_table, save, write_graph, write_summary
from bistochastic.io.table import Table
from bistochastic.io.writing import as_json
from bistochastic.places.torch_device.device import TorchDevice
from bistochastic.tables import prepare_table
from bistochastic.tables.preparation import LAYOUT, saved_form
from bistochastic.tables.scales import chosen_scale

ENDINGS = {"labels": TABLES, "graph": GRAPHS, "report": PAGES}
KEPT_FACTS = (  # facts that are kept with a model
    "file", "scale", "notes", "warnings", "seconds", "peak_memory_mb", "command",
)  # fmt: skip


def cluster(
    voice: Voice,
    reading: Reading,
    preparing: Preparing,
    fitting: Fitting,
    writing: Writing,
) -> None:
    """Read, cluster, write, and say what came out.

    Parameters
    ----------
    voice : Voice
        Speaks.
    reading : Reading
        The file.
    preparing : Preparing
        How the columns are made ready.
    fitting : Fitting
        Parameters of ANCMM.
    writing : Writing
        Files to write.
    """
    with at_hand(voice, reading) as path:
        _check(voice, path, fitting, writing)
        began = time.perf_counter()
        rows = _prepared(voice, path, reading, preparing, fitting.metric)
        read = time.perf_counter()
        with voice.fit(f"Clustering {several(rows.number, 'row')}"), remarks() as said:
            model = ANCMM(**asdict(fitting)).fit(rows.X)
        seconds = {"read": read - began, "fit": time.perf_counter() - read}
        facts = facts_of(model, rows, writing, said, seconds)
        for text in said:
            voice.warn(text)
        _write(voice, model, rows, facts, writing)
        if writing.json:
            voice.put(as_json(facts))
        else:
            show(voice, facts, rows.table, of_every_row(model.labels_, rows.kept))
    if not model.converged_:
        sys.exit(SHORT)


def _check(voice: Voice, path: Path, fitting: Fitting, writing: Writing) -> None:
    """Refuse what does not fit before anything is read."""
    check_outputs(
        voice, [path], writing.files(), writing.force, endings=ENDINGS,
        streams=("labels",),
    )  # fmt: skip
    ANCMM(**asdict(fitting))._check()
    if fitting.device is not None:
        TorchDevice.named(fitting.device)
    if not (writing.wanted() or writing.json):
        voice.note("Only a summary will be shown; --labels FILE keeps the clusters.")


def _prepared(
    voice: Voice, path: Path, reading: Reading, preparing: Preparing, metric: str
) -> Rows:
    """Read a table, make its columns ready, and say what was decided."""
    with voice.stage(f"Reading {path.name}"):
        table = read_table(path, **reading.options())
    scale, said = chosen_scale(table, preparing.scale, metric)
    voice.note(_described(path, table, said))
    with remarks() as warned:
        prepared = prepare_table(
            table,
            scale=scale,
            impute=preparing.impute,
            drop_missing=preparing.drop_missing,
            metric=metric,
            layout=reading.only(LAYOUT),
            name=path,
            copy=False,
        )
    for note in prepared.notes:
        voice.note(note)
    for text in warned:
        voice.warn(text)
    file = voice.known_as.get(str(path), str(path))
    return Rows.of(file, table, prepared, warned)


def _described(path: Path, table: Table, said: str) -> str:
    """Say what a file has, and how its columns are scaled."""
    rows, width = table.values.shape
    return (
        f"{path.name}: {several(rows, 'row')}, {several(width, 'column')} used "
        f"({listed(table.names, 6)}). {said}"
    )


def _write(
    voice: Voice, model: Any, rows: Rows, facts: dict[str, Any], writing: Writing
) -> None:
    """Write the files that are wanted."""
    if writing.labels:
        labels = of_every_row(model.labels_, rows.kept)
        put_labels(voice, writing.labels, writing, labels, rows.table)
    if writing.graph:
        with voice.stage("Writing the graph"):
            write_graph(writing.graph, model.affinity_matrix_, force=writing.force)
        voice.wrote(writing.graph, "doubly stochastic graph")
    if writing.model:
        told = {name: facts[name] for name in KEPT_FACTS if name in facts}
        extra = {"preparation": saved_form(rows.preparation), "told": told}
        with voice.stage("Writing the model"):
            save(model, writing.model, extra=extra, force=writing.force)
        voice.wrote(writing.model, "model for `bistochastic predict`")
    if writing.report:
        put_page(voice, writing.report, model, rows, facts, writing)
    if writing.summary:
        write_summary(writing.summary, facts, force=writing.force)
        voice.wrote(writing.summary, "summary")
