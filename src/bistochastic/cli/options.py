"""The options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from bistochastic.cli.console import UsageError

SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
COLUMNS, TEXT, OUT = "Columns", "How the file is written", "Files to write"


class Scale(StrEnum):
    """What is done to columns of numbers."""

    zscore = "zscore"
    minmax = "minmax"
    none = "none"


class Places(StrEnum):
    """How a page lays rows out."""

    auto = "auto"
    pca = "pca"
    tsne = "tsne"


class Fill(StrEnum):
    """What stands for missing values."""

    median = "median"
    mean = "mean"


class Method(StrEnum):
    """How a scaling is found."""

    auto = "auto"
    newton = "newton"
    damped = "damped"
    alternating = "alternating"
    fixed_point = "fixed_point"


class Cure(StrEnum):
    """What to do where no scaling exists."""

    stop = "raise"
    prune = "prune"
    regularize = "regularize"


def size_of(text: str | None) -> int | None:
    """Return a number of bytes that is written as ``8GB`` or ``500M``."""
    if text is None:
        return None
    plain = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    unit = plain[-1:] if plain[-1:] in "kmgt" else ""
    try:
        number = float(plain.removesuffix(unit)) * SIZES[unit]
    except ValueError:
        number = 0.0
    if not 1 <= number < 2**62:
        raise UsageError(f"--max-memory {text!r}: write it as 8GB or 500MB.")
    return int(number)


def number_or_auto(name: str, text: str) -> int | str:
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


File = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Parquet, NPY, NPZ, MTX, MAT or H5AD; - is standard input.",
        show_default=False,
    ),
]
SavedModel = Annotated[
    str, typer.Argument(help="What cluster --model wrote.", show_default=False)
]
Clusters = Annotated[
    str,
    typer.Option(
        "--clusters", "-c", help="How many clusters, or auto.", show_default=False
    ),
]
Neighbors = Annotated[
    str, typer.Option("--neighbors", "-k", help="How many neighbors, or auto.")
]
Metric = Annotated[str, typer.Option(help="euclidean, cosine, manhattan, ...")]
MinSize = Annotated[str, typer.Option(help="Fewest rows of a cluster, or auto.")]
Use = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to use: names as a,b or patterns as 'gene_*'; all by default.",
        rich_help_panel=COLUMNS,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to leave out, as a,b or 'x_*'.", rich_help_panel=COLUMNS
    ),
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Column that names the rows.", rich_help_panel=COLUMNS),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="Column to compare the clusters with; it is not used to find them.",
        rich_help_panel=COLUMNS,
    ),
]
Encode = Annotated[
    bool,
    typer.Option(
        "--encode",
        help="Take columns of texts as categories; two texts are at distance 1.",
        rich_help_panel=COLUMNS,
    ),
]
ScaleColumns = Annotated[
    Scale | None,
    typer.Option(
        help="Of columns of numbers; zscore for tables, none for sparse matrices and "
        "embeddings, by default.",
        rich_help_panel=COLUMNS,
        show_default=False,
    ),
]
Impute = Annotated[
    Fill | None,
    typer.Option(
        help="What to put where values are missing; for texts, a category.",
        rich_help_panel=COLUMNS,
    ),
]
DropMissing = Annotated[
    bool,
    typer.Option(
        "--drop-missing",
        help="Leave out rows with missing values.",
        rich_help_panel=COLUMNS,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        help="Array of an NPZ or MAT file; X, or an entry of obsm or layers, of H5AD.",
        rich_help_panel=TEXT,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(help="csv, parquet, npy, ..., if the name does not tell.",
                 rich_help_panel=TEXT),
]  # fmt: skip
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        "--sep",
        help="Between fields; found by itself if it is , ; | or a tab.",
        rich_help_panel=TEXT,
    ),
]
Decimal = Annotated[
    str, typer.Option(help="The decimal point: . or ,", rich_help_panel=TEXT)
]
Encoding = Annotated[
    str,
    typer.Option(help="As latin-1, cp1252 or utf-16.", rich_help_panel=TEXT),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line has names; by default, if it is not all numbers.",
        rich_help_panel=TEXT,
        show_default=False,
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        help="What stands between thousands, as in 1,234.5.", rich_help_panel=TEXT
    ),
]
Skip = Annotated[
    int,
    typer.Option(min=0, help="Lines above the one with names.", rich_help_panel=TEXT),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="A text that stands for a missing value, as '?', besides NA, NaN, null "
        "and nothing.",
        rich_help_panel=TEXT,
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        help="What reading may take, as 8GB; half of the memory by default.",
        rich_help_panel=TEXT,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-o",
        help="Clusters of the rows, as .csv, .tsv or .parquet; - is standard output.",
        rich_help_panel=OUT,
    ),
]
Graph = Annotated[
    str | None,
    typer.Option(
        help="The doubly stochastic graph, as .npz, .mtx or .npy.",
        rich_help_panel=OUT,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="The model, for `bistochastic predict` and bistochastic.io.load.",
        rich_help_panel=OUT,
    ),
]
Report = Annotated[
    str | None,
    typer.Option(help="A page to look at in a browser, as .html.", rich_help_panel=OUT),
]
Summary = Annotated[
    str | None, typer.Option(help="The summary, as JSON.", rich_help_panel=OUT)
]
Page = Annotated[
    str, typer.Option("--out", "-o", help="The page.", rich_help_panel=OUT)
]
Layout = Annotated[
    Places,
    typer.Option(
        help="How the page lays rows out: principal components or t-SNE.",
        rich_help_panel=OUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Write over files.", rich_help_panel=OUT),
]
RawIds = Annotated[
    bool,
    typer.Option(
        "--raw-ids",
        help="Leave ids that a spreadsheet would take for formulas as they are.",
        rich_help_panel=OUT,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON, for programs.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say more, and where an error arose.")
]
Seed = Annotated[
    int, typer.Option(min=0, help="Starts the eigensolver; the same gives the same.")
]
Jobs = Annotated[int | None, typer.Option(help="Threads; all by default.")]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where to run: cuda, cuda:1; the CPU by default.", metavar="NAME"
    ),
]

Matrix = Annotated[
    str,
    typer.Argument(
        help="A symmetric matrix: MTX, NPZ, NPY, MAT, CSV, Parquet or COOL (of several "
        "resolutions FILE::/resolutions/10000); - is standard input.",
        show_default=False,
    ),
]
ScaledMatrix = Annotated[
    str | None,
    typer.Option(
        help="The doubly stochastic matrix, as .npz, .mtx or .npy; or .cool: the map "
        "with the weights of its bins.",
        rich_help_panel=OUT,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="The weight of each row, as .csv, .tsv or .parquet; - is standard output.",
        rich_help_panel=OUT,
    ),
]
WeightColumn = Annotated[
    str, typer.Option(help="Name of the weights in a COOL file.", rich_help_panel=OUT)
]
ScalingMethod = Annotated[Method, typer.Option(help="How the scaling is found.")]
Tol = Annotated[float | None, typer.Option(help="Largest error of a row sum.")]
MaxIter = Annotated[int | None, typer.Option(help="Most iterates.")]
Unsupported = Annotated[
    Cure | None,
    typer.Option(
        help="Where no scaling exists: stop, leave such entries out, or add to the "
        "diagonal. prune for COOL, raise for others, by default.",
        show_default=False,
    ),
]
IgnoreDiags = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Diagonals to leave out; 2 for COOL, as in cooler, and 0 for others, by "
        "default.",
        show_default=False,
    ),
]
MinNnz = Annotated[
    int, typer.Option(min=0, help="Leave out rows with fewer entries than this.")
]

Data = Annotated[
    str | None,
    typer.Option(
        help="Folder with the sets as NAME.npz; BISTOCHASTIC_DATA by default.",
        show_default=False,
    ),
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", help="Some sets only, as wine.")
]
Methods = Annotated[
    list[str] | None, typer.Option("--method", help="Some methods only, as CAN.")
]
Protocols = Annotated[
    list[str] | None, typer.Option("--protocol", help="paper or label-free only.")
]
Records = Annotated[
    str, typer.Option(help="Where runs are recorded, and taken up again.")
]
Tables = Annotated[str, typer.Option(help="Folder for tables, figures and the page.")]
Figures = Annotated[
    bool, typer.Option("--figures/--no-figures", help="Whether to draw figures.")
]
Folder = Annotated[str, typer.Argument(help="Where to leave them.")]
