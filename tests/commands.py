"""The command line as a person types it, and a table of wines to type it at."""

from sklearn.datasets import load_wine
from typer.testing import CliRunner

from bistochastic.cli.app import app

WINE = load_wine()
ROLES = ["--id", "bottle", "--label", "cultivar", "--drop", "color"]


def rows(missing=()):
    kinds = ["barolo", "grignolino", "barbera"]
    lines = ["bottle," + ",".join(WINE.feature_names) + ",color,cultivar"]
    for i, (x, y) in enumerate(zip(WINE.data, WINE.target, strict=True)):
        values = ["" if (i, j) in missing else repr(float(v)) for j, v in enumerate(x)]
        color = "light" if x[10] > 1 else "dark"
        lines.append(",".join([f"w{i}", *values, color, kinds[y]]))
    return "\n".join(lines) + "\n"


def run(*words, code=0, stdin=None):
    done = CliRunner().invoke(app, list(map(str, words)), input=stdin)
    assert done.exit_code == code, done.output + done.stderr
    assert "Traceback" not in done.output + done.stderr
    return done
