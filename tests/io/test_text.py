"""Tables of text and Parquet: values, roles, and a sentence for what is wrong."""

import gzip

import numpy as np
import pytest

from bistochastic.core.errors import FileError, InputError
from bistochastic.io import read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
TABLE = "plant,height,width,kind\na,1.5,2,x\nb,3,4,y\nc,5,6,x\n"


def written(folder, text, name="a.csv"):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def said(folder, text, name="a.csv", **options):
    with pytest.raises(FileError) as caught:
        read_table(written(folder, text, name), **options)
    assert name in str(caught.value)
    return str(caught.value)


def test_columns_have_roles(tmp_path):
    table = read_table(written(tmp_path, TABLE), id="plant", label="kind")
    np.testing.assert_array_equal(table.values, [[1.5, 2], [3, 4], [5, 6]])
    assert table.names == ["height", "width"]
    assert (list(table.ids), table.id_name) == (["a", "b", "c"], "plant")
    assert list(table.labels) == ["x", "y", "x"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"use": ["width", "height"]}, ["width", "height"]),
        ({"use": "w*"}, ["width"]),
        ({"use": ["height,width"]}, ["height", "width"]),
        ({"drop": ["plant", "kind"]}, ["height", "width"]),
        ({"drop": ["[pk]*"]}, ["height", "width"]),
    ],
)
def test_columns_are_chosen_by_name_and_pattern(tmp_path, options, names):
    assert read_table(written(tmp_path, TABLE), **options).names == names


def test_texts_become_categories(tmp_path):
    table = read_table(written(tmp_path, TABLE), id="plant", encode=True)
    assert table.columns[2].texts == ("x", "y")
    np.testing.assert_array_equal(table.values[:, 2], [0, 1, 0])
    assert "kind (2)" in table.notes[0]


def test_categories_do_not_depend_on_the_order_of_rows(tmp_path):
    lines = TABLE.splitlines()
    turned = "\n".join([lines[0], *lines[:0:-1]])
    one = read_table(written(tmp_path, TABLE), id="plant", encode=True)
    two = read_table(written(tmp_path, turned), id="plant", encode=True)
    np.testing.assert_array_equal(one.values, two.values[::-1])


def test_true_and_false_are_numbers(tmp_path):
    text = "a,b,c\n1,True,no\n2,,yes\n3,false,No\n"
    table = read_table(written(tmp_path, text))
    np.testing.assert_array_equal(table.values[:, 1], [1, np.nan, 0])
    np.testing.assert_array_equal(table.values[:, 2], [0, 1, 0])
    assert table.columns[1].texts is None


def test_thousands(tmp_path):
    text = 'a,b\n"1,234.5",2\n"12,345,678","-1,000"\n5,NA\n'
    table = read_table(written(tmp_path, text), thousands=",")
    expected = [[1234.5, 2], [12345678, -1000], [5, np.nan]]
    np.testing.assert_array_equal(table.values, expected)


def test_decimal_commas_do_not_separate(tmp_path):
    one = read_table(written(tmp_path, "1,5\n2,5\n3,5\n"), decimal=",")
    np.testing.assert_array_equal(one.values, [[1.5], [2.5], [3.5]])
    two = read_table(written(tmp_path, "1550,76;10,5\n1551,76;11,5\n"), decimal=",")
    np.testing.assert_array_equal(two.values, [[1550.76, 10.5], [1551.76, 11.5]])


def test_ids_may_be_any_text(tmp_path):
    table = read_table(written(tmp_path, "id,a\nNA,1\nNone,2\n"), id="id")
    assert list(table.ids) == ["NA", "None"]


def test_a_column_may_be_used_and_be_the_id(tmp_path):
    table = read_table(written(tmp_path, "a,b\n1,2\n3,4\n"), use=["a", "b"], id="a")
    assert (table.names, list(table.ids)) == (["a", "b"], ["1", "3"])


def test_exact_names_are_no_patterns(tmp_path):
    file = written(tmp_path, "xy,x?\n1,2\n")
    assert read_table(file, use=["x?"], exact=True).values.tolist() == [[2.0]]
    file = written(tmp_path, "xy,z\n1,2\n")
    with pytest.raises(FileError, match="the model needs"):
        read_table(file, use=["x?"], exact=True)


def test_a_long_field_far_down(tmp_path):
    text = "a,t\n" + "1,x\n" * 3000 + "2," + "y" * 6_000_000 + "\n"
    table = read_table(written(tmp_path, text), id="t")
    assert len(table.ids[-1]) == 6_000_000


def test_texts_are_bounded_too(tmp_path):
    long = "a,t\n" + "".join(f"{i},{'y' * 1000}\n" for i in range(2000))
    assert "would take" in said(tmp_path, long, id="t", max_memory=10**6)
    wide = gzip.compress(b"," * 3_000_000)
    assert "columns" in said(tmp_path, wide, "a.csv.gz", max_memory=10**8)
    file = tmp_path / "a.parquet"
    held = {"a": [1.0] * 2000, "s": ["z" * 60_000] * 2000}
    pq.write_table(pa.table(held), file)
    assert file.stat().st_size < 10**6
    assert read_table(file, drop="s", max_memory=10**5).values.shape == (2000, 1)


def test_missing_values_are_not_numbers(tmp_path):
    table = read_table(written(tmp_path, "a,b\n1,NA\n,2\n?, 3 \n"), missing=["?"])
    np.testing.assert_array_equal(table.values, [[1, np.nan], [np.nan, 2], [np.nan, 3]])


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("a;b\n1,5;2\n3;4,25\n", "a.csv", {"decimal": ","}),
        ("a\tb\r\n1,5\t2\r\n3\t4,25\r\n", "a.tsv", {"decimal": ","}),
        ("a|b\n1.5|2\n3|4.25\n", "a.csv", {}),
        ("\ufeffa,b\n1.5,2\n3,4.25\n", "a.csv", {}),
        ('"a","b"\n"1.5","2"\n\n3,4.25', "a.csv", {}),
        (gzip.compress(b"a,b\n1.5,2\n3,4.25\n", mtime=0), "a.csv.gz", {}),
        ("a,b\n1.5,2\n3,4.25\n".encode("utf-16"), "a.csv", {"encoding": "utf-16"}),
        ("a:b\n1.5:2\n3:4.25\n", "a.csv", {"separator": ":"}),
        ("made by\n\na,b\n1.5,2\n3,4.25\n", "a.csv", {"skip": 2}),
        ("a;b\n1,5;2\n3;4,25\n", "a.csv", {"decimal": ",", "thousands": "."}),
    ],
)
def test_layouts(tmp_path, text, name, options):
    table = read_table(written(tmp_path, text, name), **options)
    np.testing.assert_array_equal(table.values, [[1.5, 2], [3, 4.25]])
    assert table.names == ["a", "b"]


def test_a_first_line_of_numbers_is_data(tmp_path):
    file = written(tmp_path, "1,2\n3,4\n")
    table = read_table(file)
    assert (table.names, table.values.shape) == (["1", "2"], (2, 2))
    assert "first line" in table.notes[0]
    assert read_table(file, header=True).values.shape == (1, 2)


def test_names_that_appear_twice_are_told_apart(tmp_path):
    table = read_table(written(tmp_path, "a,a,a.1,\n1,2,3,4\n"))
    assert len(set(table.names)) == 4
    assert table.names[0] == "a"
    np.testing.assert_array_equal(table.values, [[1, 2, 3, 4]])
    assert "renamed" in table.notes[0]


def test_another_encoding(tmp_path):
    text = "größe,b\n1,2\n".encode("latin-1")
    assert "line 1" in said(tmp_path, text)
    table = read_table(written(tmp_path, text), encoding="latin-1")
    assert table.names == ["größe", "b"]
    assert "--encoding" in said(tmp_path, "a,b\n1,2\nx,\xe9\n".encode("latin-1"))
    for wrong in ("nonsense", "punycode", "undefined", "base64"):
        with pytest.raises(InputError, match="none of this name"):
            read_table(written(tmp_path, TABLE), encoding=wrong)


@pytest.mark.parametrize("mark", ["ab", "", "§", "\udcff", '"', "\n", "\0"])
def test_a_separator_is_one_ascii_character(tmp_path, mark):
    with pytest.raises(InputError, match="one ASCII character"):
        read_table(written(tmp_path, TABLE), separator=mark)


@pytest.mark.parametrize(
    "options", [{"missing": ["\udcff"]}, {"missing": [1]}, {"thousands": "\udcff"}]
)
def test_marks_that_no_file_can_hold_are_refused(tmp_path, options):
    with pytest.raises(InputError, match="no text in UTF-8"):
        read_table(written(tmp_path, TABLE), **options)


@pytest.mark.parametrize("skip", [4, 10**9])
def test_no_more_lines_are_skipped_than_there_are(tmp_path, skip):
    """As `--skip 1000000000`, which counted long after the end of the text."""
    text = said(tmp_path, "a,b\n1,2\n3,4", skip=skip)
    assert f"has 3 lines, and --skip {skip} leaves none" in text
    assert "empty behind 3 lines" in said(tmp_path, "a,b\n1,2\n3,4\n", skip=3)


@pytest.mark.parametrize("skip", [-1, 1.5, "two", None, 10**30])
def test_a_number_of_lines_to_skip_is_whole(tmp_path, skip):
    with pytest.raises(InputError, match=r"whole number >= 0|at most"):
        read_table(written(tmp_path, TABLE), skip=skip)


def test_many_lines_are_skipped_at_once(tmp_path):
    table = read_table(written(tmp_path, "x\n" * 200_000 + TABLE), skip=200_000,
                       id="plant", label="kind")  # fmt: skip
    assert table.values.shape == (3, 2)


def test_many_columns_and_long_rows(tmp_path):
    X = np.arange(3 * 10_000).reshape(3, -1) / 7
    head = ",".join(f"c{i}" for i in range(10_000))
    rows = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    table = read_table(written(tmp_path, f"{head}\n{rows}\n"))
    np.testing.assert_array_equal(table.values, X)


def test_blocks_join_to_one_table(tmp_path, monkeypatch):
    from bistochastic.io import text_dialect as layout

    monkeypatch.setattr(layout, "BLOCK", 512)
    monkeypatch.setattr(layout, "SAMPLE", 64)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    kinds = rng.choice(["7", "u", "v"], size=500)
    kinds[:200] = "7"  # numbers at first, texts later
    lines = [
        f"{a!r},{b!r},{kind}" for (a, b), kind in zip(X.tolist(), kinds, strict=True)
    ]
    file = written(tmp_path, "a,b,c\n" + "\n".join(lines))
    table = read_table(file, encode=True)
    np.testing.assert_array_equal(table.values[:, :2], X)
    assert table.columns[2].texts == ("7", "u", "v")
    found = np.array(table.columns[2].texts)[table.values[:, 2].astype(int)]
    np.testing.assert_array_equal(found, kinds)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, "empty"),
        ("\n\n", {}, "empty"),
        ("a,b\n", {}, "no rows"),
        (TABLE, {}, "row 1 of column 'plant' is 'a'"),
        (TABLE, {"id": "plant"}, "--encode"),
        (TABLE, {"id": "plant"}, "'kind'"),
        (TABLE, {"id": "plnt"}, "Perhaps 'plant'"),
        (TABLE, {"id": "*"}, "fits 4 columns"),
        (TABLE, {"drop": ["*"]}, "no column is left"),
        ("a,b\n1,2\n3\n", {}, "1 field in row 3"),
        ("a,b\n1,2\n3,4,5\n", {}, "3 fields in row 3"),
        ('a,b\n"1,551",2\n', {}, "--thousands ','"),
        ('a,b\n"1.551,25",2\n', {}, "--decimal ',' --thousands '.'"),
        ("a;b\n1.551,25;2\n", {"decimal": ","}, "--thousands '.'"),
        ('a,b\n"12,34",2\n', {"thousands": ","}, "row 1 of column 'a'"),
        ("a,b\n€12.50,2\n", {}, "a sign or a unit"),
        ("a,b\n#DIV/0!,2\n", {}, "--missing"),
        ("a,b\n1e400,2\n", {}, "finite"),
        ("a,b\n1,2\n3,inf\n", {"encode": True}, "finite"),
        ('x,l\n1,a\n2,"b\n3,c\n4,d\n', {"label": "l"}, "never closed"),
        ("a;b\n1,5;2\n", {}, "--decimal ','"),
        ("a,b\n1,2\n1.2.3,4\n", {}, "row 2 of column 'a'"),
        ("a,b\n1,2\ninf,4\n", {}, "finite"),
        ("a,b\n1,2\n?,4\n", {}, "--missing '?'"),
        ("a,b\n1,2\n2020-01-02,4\n", {}, "a date?"),
        ("a,b\n1.234,5;2\n", {"decimal": ","}, ""),
        ("a,b\n1\0,2\n", {}, "not text"),
        (b"PK\x03\x04abc", {}, "ZIP"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, options, words):
    assert words in said(tmp_path, text, **options)


def test_many_texts_are_no_categories(tmp_path):
    text = "a,b\n" + "".join(f"{i},t{i}\n" for i in range(200))
    assert "different texts" in said(tmp_path, text, encode=True)


def test_memory_is_bounded_before_it_is_taken(tmp_path):
    text = "a,b\n" + "1,2\n" * 1000
    assert "would take" in said(tmp_path, text, max_memory=1000)
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    assert "would take" in said(tmp_path, bomb, "a.csv.gz", max_memory=100_000)


@pytest.mark.parametrize(
    ("name", "words"),
    [("none.csv", "no such file"), ("a.xlsx", "Save the sheet"), ("a.pkl", "run code"),
     ("a.xyz", "--format")],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, name, words):
    if name != "none.csv":
        written(tmp_path, "a,b\n1,2\n", name)
    with pytest.raises(FileError, match=words):
        read_table(tmp_path / name)
    with pytest.raises(FileError, match="folder"):
        read_table(tmp_path)


def parquet(folder, **columns):
    file = folder / "a.parquet"
    pq.write_table(pa.table(columns), file)
    return file


def test_parquet(tmp_path):
    file = parquet(
        tmp_path,
        plant=["a", "b", "c"],
        number=pa.array([1, None, 3]),
        truth=[True, False, None],
        kind=pa.array(["y", "x", "y"]).dictionary_encode(),
        small=pa.array([0.5, 1.5, 2.5], pa.float32()),
    )
    table = read_table(file, id="plant", encode=True)
    expected = [[1, 1, 1, 0.5], [np.nan, 0, 0, 1.5], [3, np.nan, 1, 2.5]]
    np.testing.assert_array_equal(table.values, expected)
    assert table.columns[2].texts == ("x", "y")
    assert list(table.ids) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": ["x", "y"]}, "holds texts"),
        ({"a": [[1.0], [2.0]]}, "list"),
        ({"a": [1.0, np.inf]}, "row 2 of column 'a' is infinite"),
        ({"a": pa.array([1, 2], pa.timestamp("s"))}, "timestamp"),
        ({"a": pa.array([], pa.float64())}, "no rows"),
    ],
)
def test_what_is_wrong_in_parquet_is_said(tmp_path, columns, words):
    with pytest.raises(FileError, match=words):
        read_table(parquet(tmp_path, **columns))


def test_a_parquet_file_that_is_none(tmp_path):
    assert "not a Parquet file" in said(tmp_path, "a,b\n1,2\n", "a.parquet")
    file = parquet(tmp_path, a=np.arange(1000.0))
    with pytest.raises(FileError, match="would take"):
        read_table(file, max_memory=100)
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(FileError, match="not a Parquet file"):
        read_table(file)


def test_the_index_of_a_data_frame_is_no_column(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}, index=[7, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv")
    for name in ("a.parquet", "a.csv"):
        table = read_table(tmp_path / name)
        np.testing.assert_array_equal(table.values, [[1, 3], [2, 4]])
        assert list(map(int, table.ids)) == [7, 9]
        assert "names of the rows" in table.notes[-1]
        table = read_table(tmp_path / name, id="a")
        assert table.names == ["b"]
