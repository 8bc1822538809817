"""Tables become points in Python as they do on the command line."""

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("pyarrow")

from bistochastic import ANCMM
from bistochastic.core.errors import InputError
from bistochastic.io import Column, Table, load, read_table
from bistochastic.tables import apply_preparation, prepare_table


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["name,height,color,width"]
    for i in range(40):
        x, y = rng.normal(size=2) + 8 * (i % 2)
        color = "" if i == 3 else ("red", "blue")[i % 2]
        lines.append(f"p{i},{x:.4f},{color},{'' if i == 5 else f'{y:.4f}'}")
    path = tmp_path / "plants.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_python_prepares_as_the_command_line_does(file):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from bistochastic.cli.app import app

    model = file.with_suffix(".model")
    words = ["cluster", str(file), "-c", "2", "--id", "name", "--encode", "--impute",
             "median", "--model", str(model)]  # fmt: skip
    assert CliRunner().invoke(app, words).exit_code == 0
    table = read_table(file, id="name", encode=True)
    X = prepare_table(table, impute="median").X
    np.testing.assert_array_equal(
        ANCMM(2, random_state=0).fit(X).labels_, load(model).labels_
    )


def test_new_rows_get_the_coordinates_of_old_ones_in_any_order_of_columns(file):
    table = read_table(file, id="name", encode=True)
    prepared = prepare_table(table, impute="mean")
    turned = Table(table.values[:, ::-1], table.columns[::-1])
    again = apply_preparation(turned, prepared.preparation)
    np.testing.assert_array_equal(again.X, prepared.X)
    more = Table(np.hstack([np.ones((40, 1)), turned.values]),
                 (Column("more"), *turned.columns))  # fmt: skip
    np.testing.assert_array_equal(
        apply_preparation(more, prepared.preparation).X, prepared.X
    )


def test_the_table_stays_as_it_was(file):
    table = read_table(file, id="name", encode=True)
    before = table.values.copy()
    prepared = prepare_table(table, impute="mean")
    apply_preparation(table, prepared.preparation)
    prepare_table(table, drop_missing=True)
    np.testing.assert_array_equal(table.values, before)
    prepare_table(table, impute="mean", copy=False)
    assert not np.isnan(table.values).any()


def test_what_was_decided_is_noted():
    rng = np.random.default_rng(0)
    table = Table(rng.normal(size=(20, 2)), (Column("a"), Column("b")))
    assert "mean 0 and deviation 1" in prepare_table(table).notes[0]
    assert prepare_table(table, scale="zscore").notes == []
    sparse = Table(csr_array(np.eye(3)), tuple(map(Column, "abc")))
    assert prepare_table(sparse).preparation.scale == "none"
    table.values[:, 1] = np.arange(20)
    with pytest.warns(UserWarning, match="'b' counts the rows"):
        prepare_table(table)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": "loud"}, "scale must be one of"),
        ({"impute": "most"}, "impute must be one of"),
        ({"scale": "zscore", "metric": "affinity"}, "pairs of rows"),
        ({}, "The table: row 2 of column 'a' is missing"),
    ],
)
def test_what_cannot_be_prepared_is_said(options, said):
    table = Table(np.array([[1.0], [np.nan]]), (Column("a"),))
    with pytest.raises(InputError, match=said):
        prepare_table(table, **options)


def test_columns_that_changed_their_kind_are_refused():
    numbers = Table(np.array([[0.0], [1.0]]), (Column("a"),))
    texts = Table(np.array([[0.0], [1.0]]), (Column("a", ("x", "y")),))
    for old, new, said in ((numbers, texts, "texts now"), (texts, numbers, "numbers")):
        learned = prepare_table(old).preparation
        with pytest.raises(InputError, match=said):
            apply_preparation(new, learned)
    other = Table(np.array([[0.0]]), (Column("b"),))
    with pytest.raises(InputError, match="no column 'a', which the model needs"):
        apply_preparation(other, prepare_table(numbers).preparation)
    wide = Table(np.zeros((1, 2)), (Column("1"), Column("2")))
    counted = prepare_table(Table(np.array([[0.0], [1.0]]), (Column("1"),)))
    with pytest.raises(InputError, match="2 columns to use"):
        apply_preparation(wide, counted.preparation)
