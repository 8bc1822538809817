"""The commands: cluster, predict, report, scale, reproduce, demo."""

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bistochastic.cli import options as o
from bistochastic.cli.console import Voice, guarded
from bistochastic.core.errors import InputError

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


def _version(wanted: bool):
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
):
    """Take the options that stand before a command."""


@contextmanager
def at_hand(voice, name, format, text=".csv"):
    """Give a file a path: standard input is kept in a file while it is needed.

    Parameters
    ----------
    voice : Voice
        Gets to know what to call it.
    name : str
        The path, or -.
    format : str or None
        What kind of file it is.
    text : str
        The kind of standard input, unless said.

    Yields
    ------
    Path
        The file.
    """
    if name != "-":
        yield Path(name)
        return
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("Standard input is closed; name a file.")
    ending = f".{format.lstrip('.')}" if format else text
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{ending}"
        voice.known_as = {str(path): "standard input", path.name: "standard input"}
        with path.open("wb") as file:
            while part := sys.stdin.buffer.read(1 << 20):
                file.write(part)
        yield path


@app.command()
def cluster(
    file: o.File,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters", "-c", help="How many clusters, or auto.", show_default=False
        ),
    ],
    use: o.Use = None,
    drop: o.Drop = None,
    id_: o.Id = None,
    label: o.Label = None,
    scale: Annotated[
        o.Scale | None,
        typer.Option(
            help="Of columns of numbers; zscore for tables, none for sparse matrices "
            "and embeddings, by default.",
            rich_help_panel=o.COLUMNS,
            show_default=False,
        ),
    ] = None,
    encode: o.Encode = False,
    impute: Annotated[
        o.Fill | None,
        typer.Option(
            help="What to put where values are missing; for texts, a category.",
            rich_help_panel=o.COLUMNS,
        ),
    ] = None,
    drop_missing: o.DropMissing = False,
    neighbors: Annotated[
        str, typer.Option("--neighbors", "-k", help="How many neighbors, or auto.")
    ] = "auto",
    metric: Annotated[
        str, typer.Option(help="euclidean, cosine, manhattan, ...")
    ] = "euclidean",
    min_size: Annotated[
        str, typer.Option(help="Fewest rows of a cluster, or auto.")
    ] = "auto",
    labels: o.Labels = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help="The doubly stochastic graph, as .npz, .mtx or .npy.",
            rich_help_panel=o.OUT,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model, for `bistochastic predict` and bistochastic.io.load.",
            rich_help_panel=o.OUT,
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            help="A page to look at in a browser, as .html.", rich_help_panel=o.OUT
        ),
    ] = None,
    layout: o.Layout = o.Places.auto,
    summary: Annotated[
        str | None,
        typer.Option(help="The summary, as JSON.", rich_help_panel=o.OUT),
    ] = None,
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
):
    """Cluster the rows of a file.

    Columns are scaled to mean 0 and deviation 1, k is chosen by itself, and as many
    clusters come out as were asked for.

      bistochastic cluster wine.csv -c 3 --label cultivar --labels clusters.csv
    """
    _not_both(json and labels == "-", "--json and --labels - both want the output")
    _not_both(drop_missing and impute, "--drop-missing and --impute")
    voice = Voice(quiet, verbose, data=json or labels == "-")
    with guarded(voice):
        from bistochastic.cli import clustering

        with at_hand(voice, file, format) as path:
            reading = {
                "use": use or (), "drop": drop or (), "id": id_, "label": label,
                "encode": encode, "key": key, "format": format,
                "separator": separator, "decimal": decimal, "encoding": encoding,
                "header": header, "missing": missing or (), "thousands": thousands,
                "skip": skip, "max_memory": o.size_of(max_memory),
            }  # fmt: skip
            clustering.cluster(
                voice,
                path,
                reading,
                number=clusters,
                preparing={
                    "scale": scale and scale.value,
                    "impute": impute and impute.value,
                    "drop_missing": drop_missing,
                },
                options={
                    "n_neighbors": clustering.number_or_auto("--neighbors", neighbors),
                    "min_cluster_size": clustering.number_or_auto(
                        "--min-size", min_size
                    ),
                    "metric": metric,
                    "random_state": seed,
                    "n_jobs": jobs,
                    "device": device,
                },
                outputs={
                    "labels": labels, "graph": graph, "model": model,
                    "report": report, "summary": summary,
                },
                layout=layout.value,
                force=force,
                raw=raw_ids,
                json=json,
            )  # fmt: skip


@app.command()
def predict(
    model: Annotated[
        str, typer.Argument(help="What cluster --model wrote.", show_default=False)
    ],
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
):
    """Assign the rows of another file to the clusters of a model.

    The columns are found by their names, and treated as the model's were. The
    confidence of a row is the share of the weight to its nearest rows in the model that
    goes to its cluster.

      bistochastic predict wine.model new.csv --labels new-clusters.csv
    """
    voice = Voice(quiet, verbose, data=json or labels == "-")
    with guarded(voice):
        from bistochastic.cli import clustering

        labels = None if json and labels == "-" else labels
        with at_hand(voice, file, format) as path:
            reading = {
                "id": id_, "label": label, "key": key, "format": format,
                "separator": separator, "decimal": decimal, "encoding": encoding,
                "header": header, "missing": missing, "thousands": thousands,
                "skip": skip,
                "max_memory": o.size_of(max_memory),
            }  # fmt: skip
            clustering.predict(
                voice,
                Path(model),
                path,
                reading,
                drop_missing=drop_missing,
                labels=labels,
                force=force,
                raw=raw_ids,
                json=json,
                jobs=jobs,
            )


@app.command()
def report(
    model: Annotated[
        str, typer.Argument(help="What cluster --model wrote.", show_default=False)
    ],
    file: o.File,
    out: Annotated[
        str, typer.Option("--out", "-o", help="The page.", rich_help_panel=o.OUT)
    ] = "report.html",
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
):
    """Make the page of a model that was kept, from the file that it was made of.

    bistochastic report wine.model wine.csv --label cultivar --out wine.html
    """
    voice = Voice(quiet, verbose)
    with guarded(voice):
        from bistochastic.cli import clustering

        with at_hand(voice, file, format) as path:
            reading = {
                "id": id_, "label": label, "key": key, "format": format,
                "max_memory": o.size_of(max_memory),
            }  # fmt: skip
            clustering.report(
                voice,
                Path(model),
                path,
                reading,
                out=out,
                layout=layout.value,
                drop_missing=drop_missing,
                force=force,
            )


@app.command()
def scale(
    file: Annotated[
        str,
        typer.Argument(
            help="A symmetric matrix: MTX, NPZ, NPY, MAT, CSV, Parquet or COOL (of "
            "several resolutions FILE::/resolutions/10000); - is standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            help="The doubly stochastic matrix, as .npz, .mtx or .npy; or .cool: the "
            "map with the weights of its bins.",
            rich_help_panel=o.OUT,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="The weight of each row, as .csv, .tsv or .parquet; - is standard "
            "output.",
            rich_help_panel=o.OUT,
        ),
    ] = None,
    column: Annotated[
        str,
        typer.Option(help="Name of the weights in a COOL file.", rich_help_panel=o.OUT),
    ] = "weight",
    method: Annotated[
        o.Method, typer.Option(help="How the scaling is found.")
    ] = o.Method.auto,
    tol: Annotated[
        float | None, typer.Option(help="Largest error of a row sum.")
    ] = None,
    max_iter: Annotated[int | None, typer.Option(help="Most iterates.")] = None,
    unsupported: Annotated[
        o.Cure | None,
        typer.Option(
            help="Where no scaling exists: stop, leave such entries out, or add to "
            "the diagonal. prune for COOL, raise for others, by default.",
            show_default=False,
        ),
    ] = None,
    ignore_diags: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Diagonals to leave out; 2 for COOL, as in cooler, and 0 for others, "
            "by default.",
            show_default=False,
        ),
    ] = None,
    min_nnz: Annotated[
        int, typer.Option(min=0, help="Leave out rows with fewer entries than this.")
    ] = 0,
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
):
    """Make a symmetric matrix doubly stochastic, or say why that cannot be.

    bistochastic scale map.cool --out balanced.cool
    """
    _not_both(json and weights == "-", "--json and --weights - both want the output")
    voice = Voice(quiet, verbose, data=json or weights == "-")
    with guarded(voice):
        from bistochastic.cli import scaling

        with at_hand(voice, file, format, ".mtx") as path:
            reading = {
                "key": key, "format": format, "max_memory": o.size_of(max_memory),
                "separator": separator, "decimal": decimal, "encoding": encoding,
                "thousands": thousands,
            }  # fmt: skip
            scaling.scale(
                voice,
                path,
                reading,
                options={
                    "method": method.value,
                    "tol": tol,
                    "max_iter": max_iter,
                    "unsupported": unsupported and unsupported.value,
                },
                ignore_diags=ignore_diags,
                min_nnz=min_nnz,
                out=out,
                weights=weights,
                column=column,
                force=force,
                json=json,
            )


@app.command()
def reproduce(
    data: Annotated[
        str | None,
        typer.Option(
            help="Folder with the sets as NAME.npz; BISTOCHASTIC_DATA by default.",
            show_default=False,
        ),
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Some sets only, as wine.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="Some methods only, as CAN.")
    ] = None,
    protocols: Annotated[
        list[str] | None, typer.Option("--protocol", help="paper or label-free only.")
    ] = None,
    records: Annotated[
        str, typer.Option(help="Where runs are recorded, and taken up again.")
    ] = "reproduction/records.jsonl",
    out: Annotated[
        str, typer.Option(help="Folder for tables, figures and the page.")
    ] = "reproduction",
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Whether to draw figures.")
    ] = True,
    jobs: o.Jobs = None,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
):
    """Do the paper's experiments again: Tables 1, 3, 4, 5 and Figures 1, 2.

    A run that is stopped goes on where it was. All sets take hours; a first look:

      bistochastic reproduce --set wine
    """
    voice = Voice(quiet, verbose)
    with guarded(voice):
        from bistochastic.cli import reproducing

        reproducing.reproduce(
            voice,
            sets=sets,
            methods=methods,
            protocols=protocols,
            data=data,
            records=records,
            out=out,
            jobs=jobs,
            figures=figures,
        )


@app.command()
def demo(
    folder: Annotated[str, typer.Argument(help="Where to leave them.")] = "build",
    verbose: o.Verbose = False,
):
    """Cluster a built-in data set, scale a built-in graph, leave a table and a page."""
    with guarded(Voice(verbose=verbose)):
        from bistochastic import demo

        demo.main(folder)


def _not_both(both, what):
    if both:
        raise typer.BadParameter(f"{what}; leave one of them out.")
