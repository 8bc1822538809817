"""The commands and their options; each is handed over to the file of its name."""

from pathlib import Path
from typing import Annotated

import typer

from bistochastic.cli import options as o
from bistochastic.cli.console import Voice, guarded
from bistochastic.cli.request import (
    Experiments,
    Fitting,
    Preparing,
    Reading,
    Scaling,
    Writing,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""
    Clusters that are the connected components of a doubly stochastic graph, and the
    scaling that makes such graphs.

    Ends with 0 if all went well, 1 if bistochastic is wrong, 2 for options that do not
    fit, 3 for files or data that cannot be used, 4 if a file cannot be written, 5 if
    the result falls short of what was asked, 130 or 143 if it was stopped.
    """,
)


def _version(wanted: bool) -> None:
    if wanted:
        from bistochastic import __version__

        print(f"bistochastic {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def cluster(
    file: o.File,
    clusters: o.Clusters,
    use: o.Use = None,
    drop: o.Drop = None,
    id_: o.Id = None,
    label: o.Label = None,
    scale: o.ScaleColumns = None,
    encode: o.Encode = False,
    impute: o.Impute = None,
    drop_missing: o.DropMissing = False,
    neighbors: o.Neighbors = "auto",
    metric: o.Metric = "euclidean",
    min_size: o.MinSize = "auto",
    labels: o.Labels = None,
    graph: o.Graph = None,
    model: o.Model = None,
    report: o.Report = None,
    layout: o.Layout = o.Places.auto,
    summary: o.Summary = None,
    force: o.Force = False,
    raw_ids: o.RawIds = False,
    key: o.Key = None,
    format: o.Format = None,
    separator: o.Separator = None,
    decimal: o.Decimal = ".",
    encoding: o.Encoding = "utf-8",
    header: o.Header = None,
    missing: o.Missing = None,
    thousands: o.Thousands = None,
    skip: o.Skip = 0,
    max_memory: o.MaxMemory = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = None,
    device: o.Device = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Cluster the rows of a file.

    Columns are scaled to mean 0 and deviation 1, k is chosen by itself, and as many
    clusters come out as were asked for.

      bistochastic cluster wine.csv -c 3 --label cultivar --labels clusters.csv
    """
    _not_both(json and labels == "-", "--json and --labels - both want the output")
    _not_both(drop_missing and impute, "--drop-missing and --impute")
    voice = Voice(quiet, verbose, data=json or labels == "-")
    with guarded(voice):
        from bistochastic.cli.cluster import cluster

        cluster(
            voice,
            Reading(
                file=file, use=use, drop=drop, id=id_, label=label, encode=encode,
                key=key, format=format, separator=separator, decimal=decimal,
                encoding=encoding, header=header, missing=missing or (),
                thousands=thousands, skip=skip, max_memory=o.size_of(max_memory),
            ),
            Preparing(
                scale=scale and scale.value,
                impute=impute and impute.value,
                drop_missing=drop_missing,
            ),
            Fitting(
                n_clusters=o.number_or_auto("--clusters", clusters),
                n_neighbors=o.number_or_auto("--neighbors", neighbors),
                min_cluster_size=o.number_or_auto("--min-size", min_size),
                metric=metric, random_state=seed, n_jobs=jobs, device=device,
            ),
            Writing(
                labels=labels, graph=graph, model=model, report=report, summary=summary,
                layout=layout.value, force=force, raw_ids=raw_ids, json=json,
            ),
        )  # fmt: skip


@app.command()
def predict(
    model: o.SavedModel,
    file: o.File,
    id_: o.Id = None,
    label: o.Label = None,
    drop_missing: o.DropMissing = False,
    labels: o.Labels = "-",
    force: o.Force = False,
    raw_ids: o.RawIds = False,
    key: o.Key = None,
    format: o.Format = None,
    separator: o.Separator = None,
    decimal: o.Decimal | None = None,
    encoding: o.Encoding | None = None,
    header: o.Header = None,
    missing: o.Missing = None,
    thousands: o.Thousands = None,
    skip: o.Skip | None = None,
    max_memory: o.MaxMemory = None,
    jobs: o.Jobs = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Assign the rows of another file to the clusters of a model.

    The columns are found by their names, and treated as the model's were. The
    confidence of a row is the share of the weight to its nearest rows in the model that
    goes to its cluster.

      bistochastic predict wine.model new.csv --labels new-clusters.csv
    """
    voice = Voice(quiet, verbose, data=json or labels == "-")
    with guarded(voice):
        from bistochastic.cli.predict import predict

        predict(
            voice,
            Path(model),
            Reading(
                file=file, id=id_, label=label, key=key, format=format,
                separator=separator, decimal=decimal, encoding=encoding, header=header,
                missing=missing, thousands=thousands, skip=skip,
                max_memory=o.size_of(max_memory),
            ),
            Writing(
                labels=None if json and labels == "-" else labels,
                force=force, raw_ids=raw_ids, json=json,
            ),
            drop_missing=drop_missing,
            jobs=jobs,
        )  # fmt: skip


@app.command()
def report(
    model: o.SavedModel,
    file: o.File,
    out: o.Page = "report.html",
    layout: o.Layout = o.Places.auto,
    id_: o.Id = None,
    label: o.Label = None,
    drop_missing: o.DropMissing = False,
    force: o.Force = False,
    key: o.Key = None,
    format: o.Format = None,
    max_memory: o.MaxMemory = None,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Make the page of a model that was kept, from the file that it was made of.

    bistochastic report wine.model wine.csv --label cultivar --out wine.html
    """
    voice = Voice(quiet, verbose)
    with guarded(voice):
        from bistochastic.cli.report import report

        report(
            voice,
            Path(model),
            Reading(
                file=file, id=id_, label=label, key=key, format=format,
                max_memory=o.size_of(max_memory),
            ),
            out,
            Writing(layout=layout.value, force=force),
            drop_missing=drop_missing,
        )  # fmt: skip


@app.command()
def scale(
    file: o.Matrix,
    out: o.ScaledMatrix = None,
    weights: o.Weights = None,
    column: o.WeightColumn = "weight",
    method: o.ScalingMethod = o.Method.auto,
    tol: o.Tol = None,
    max_iter: o.MaxIter = None,
    unsupported: o.Unsupported = None,
    ignore_diags: o.IgnoreDiags = None,
    min_nnz: o.MinNnz = 0,
    force: o.Force = False,
    key: o.Key = None,
    format: o.Format = None,
    separator: o.Separator = None,
    decimal: o.Decimal = ".",
    encoding: o.Encoding = "utf-8",
    thousands: o.Thousands = None,
    max_memory: o.MaxMemory = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Make a symmetric matrix doubly stochastic, or say why that cannot be.

    bistochastic scale map.cool --out balanced.cool
    """
    _not_both(json and weights == "-", "--json and --weights - both want the output")
    voice = Voice(quiet, verbose, data=json or weights == "-")
    with guarded(voice):
        from bistochastic.cli.scale import scale

        scale(
            voice,
            Reading(
                file=file, key=key, format=format, separator=separator, decimal=decimal,
                encoding=encoding, thousands=thousands,
                max_memory=o.size_of(max_memory),
            ),
            Scaling(
                method=method.value, tol=tol, max_iter=max_iter,
                unsupported=unsupported and unsupported.value,
                ignore_diags=ignore_diags, min_nnz=min_nnz,
            ),
            Writing(out=out, weights=weights, column=column, force=force, json=json),
        )  # fmt: skip


@app.command()
def reproduce(
    data: o.Data = None,
    sets: o.Sets = None,
    methods: o.Methods = None,
    protocols: o.Protocols = None,
    records: o.Records = "reproduction/records.jsonl",
    out: o.Tables = "reproduction",
    figures: o.Figures = True,
    jobs: o.Jobs = None,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> None:
    """Do the paper's experiments again: Tables 1, 3, 4, 5 and Figures 1, 2.

    A run that is stopped goes on where it was. All sets take hours; a first look:

      bistochastic reproduce --set wine
    """
    voice = Voice(quiet, verbose)
    with guarded(voice):
        from bistochastic.cli.reproduce import reproduce

        asked = Experiments(
            sets=sets, methods=methods, protocols=protocols, data=data,
            records=records, out=out, jobs=jobs, figures=figures,
        )  # fmt: skip
        reproduce(voice, asked)


@app.command()
def demo(folder: o.Folder = "build", verbose: o.Verbose = False) -> None:
    """Cluster a built-in data set, scale a built-in graph, leave a table and a page."""
    with guarded(Voice(verbose=verbose)):
        from bistochastic.demo import main

        main(folder)


def _not_both(both: object, what: str) -> None:
    if both:
        raise typer.BadParameter(f"{what}; leave one of them out.")
