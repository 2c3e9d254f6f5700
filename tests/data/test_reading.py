"""Every row of a file is read as the training file was read, whatever else is in its file."""

import csv
import io
import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ltr.cards import Card
from ltr.data import DataError, Roles, TableError, TablePreparation, read_raw_table
from ltr.data.columns import Column
from ltr.data.kinds import MeanEncoding, NumberEncoding, encodings_in, kind_of
from tests.tiers import examples
from trainers.cli import main
from trainers.config import load_config
from trainers.config.sections import DataConfig
from trainers.run.folder import find_run
from trainers.run.predict import explain_rows, ranker_of, read_rows_for
from trainers.task.data import split_of

CONFIG = (
    '[data]\npath = "t.csv"\nlabel = "y"\n{0}[surrogate]\nlosses = []\n[baselines]\n'
    'methods = ["logistic_regression"]\n[exact]\nenabled = false\n'
)


def write(path, rows, separator=","):
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    Path(path).write_text(text.getvalue(), encoding="utf-8")


def trained(rows, keys="", separator=","):
    """Train a ranker on a table whose first row names the columns, and return the folder of its run."""
    write("t.csv", rows, separator)
    Path("t.toml").write_text(CONFIG.format(keys), encoding="utf-8")
    assert main(["run", "t.toml", "-q", "--fresh"]) == 0
    return find_run("runs/t")


def scores(run, rows, separator=","):
    """Return the scores of rows of a file, in their order."""
    write("new.csv", rows, separator)
    found = read_rows_for(run, Path("new.csv"), card=False)
    return ranker_of(run).decision_function(found.table)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def labelled(columns, n=80, seed=0):
    """Return a table of lines with labels that depend on the first column, and its header."""
    rng = random.Random(seed)
    rows = [[make(rng) for make in columns.values()] for _ in range(n)]
    return [[*columns, "y"], *([*row, int(rng.random() < 0.3 + 0.4 * (at % 2))] for at, row in enumerate(rows))]


# --- decimal marks -----------------------------------------------------------------------------------------------


def test_a_further_column_does_not_change_how_others_are_read(folder):
    rows = labelled({"x": lambda r: f"{r.gauss(0, 1):.3f}", "z": lambda r: f"{r.gauss(0, 1):.2f}"})
    run = trained(rows)
    alone = scores(run, [["x", "z"], ["1.503", "-2.50"], ["2.126", "2.50"]])
    more = scores(run, [["x", "z", "account"], ["1.503", "-2.50", "10.100.200"], ["2.126", "2.50", "1,05"]])
    np.testing.assert_array_equal(alone, more)
    for at, row in enumerate((["1.503", "-2.50"], ["2.126", "2.50"])):
        np.testing.assert_array_equal(scores(run, [["x", "z"], row]), alone[at : at + 1])


@pytest.mark.parametrize("key", ["test_path", "validation_path"])
def test_thousands_of_the_training_file_are_thousands_in_other_files(folder, key):
    amounts = ["950", "1.234", "12.500", "87", "2.500", "1.234.567"]
    rows = [["amount", "k", "y"], *([amounts[at % 6], at % 5, at % 2] for at in range(60))]
    write("t.csv", rows, ";")
    write("other.csv", [["amount", "k", "y"], ["1.234", 0, 0], ["12.500", 1, 1]], ";")
    split = split_of(DataConfig(path="t.csv", label="y", **{key: "other.csv"}), 0)
    part = split.test if key == "test_path" else split.validation
    assert part.X[:, 0].tolist() == [1234, 12500]
    assert sorted(set(split.train.X[:, 0])) == [87, 950, 1234, 2500, 12500, 1234567]


@pytest.mark.parametrize(
    ("cells", "separator", "asked"),
    [
        (["950", "1.234", "12.500"], ";", True),
        (["950", "1.234", "12.500"], ",", True),
        (["3.412", "2.871", "10.250"], ",", False),  # three decimals, as programs print them
        (["3.412", "2.871", "10.250"], ";", True),
        (["3.412", "0.871", "10.250"], ";", False),  # thousands begin with no zero
        (["1,234", "2,345"], ";", True),
        (["1,234", "2,345.5"], ";", False),
    ],
)
def test_a_mark_that_could_mean_both_is_asked_about(folder, cells, separator, asked):
    write("t.csv", [["a", "b", "y"], *([cell, f"{at}.5", at % 2] for at, cell in enumerate(cells * 2))], separator)
    table = read_raw_table("t.csv", Roles(label="y"))
    assert [problem.text.partition("'")[2].partition("'")[0] for problem in table.problems] == ["a"] * asked
    for mark in ".,":
        options = DataConfig(path="t.csv", label="y", decimal=mark)
        read_raw_table("t.csv", options.roles, options.reading).check()


def test_a_quoted_comma_or_a_padded_address_does_not_turn_other_columns(folder):
    rows = [["x", "paid", "address", "y"]]
    rows += [[f"{1 + at / 1000:.3f}", "1,05" if at == 3 else "2,5", f"  {at}.000", at % 2] for at in range(40)]
    write("t.csv", rows)
    table = read_raw_table("t.csv", Roles(label="y", numbers=("paid",)))
    np.testing.assert_array_equal(table.columns["x"].numbers, [1 + at / 1000 for at in range(40)])
    assert table.columns["paid"].numbers[3] == 1.05


# --- codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codes", [["01234", "04567", "98765", "SW1A"], ["01234", "04567", "98765", "11111"]])
def test_codes_stay_codes_in_a_file_of_digits(folder, codes):
    keys = 'categories = ["zip"]\n' * ("SW1A" not in codes)
    rows = [["zip", "x", "y"]]
    rows += [[codes[at % 4], f"{at % 7}.5", int(at % 4 == 0 or (at % 4 > 1 and at % 8 > 3))] for at in range(80)]
    run = trained(rows, keys)
    alone = scores(run, [["zip", "x"], ["01234", 0], ["04567", 0]])
    assert alone[0] > alone[1]
    more = scores(run, [["zip", "x"], ["01234", 0], ["04567", 0], ["SW1A", 0]])
    np.testing.assert_array_equal(alone, more[:2])


@pytest.mark.parametrize(
    "codes",
    [
        ["007", "07", "7"],
        ["1.1", "1.10", "1.2"],
        ["1E5", "100000", "2E3"],
        ["12345678901234567", "12345678901234568", ""],
    ],
)
def test_categories_are_texts_as_they_stand(folder, codes):
    write("t.csv", [["c", "x", "y"], *([codes[at % 3], at / 7, at % 2] for at in range(60))])
    table = read_raw_table("t.csv", Roles(label="y", categories=("c",)))
    assert set(table.columns["c"].counts) == {code for code in codes if code}


def test_codes_with_zeros_in_front_are_texts_unless_they_are_numbers(folder, capsys):
    write("t.csv", [["c", "x", "y"], *([f"{at % 7:03}", at / 7, at % 2] for at in range(60))])
    table = read_raw_table("t.csv", Roles(label="y"))
    assert table.kinds["c"].name == "category"
    assert "data.numbers takes them as numbers" in table.notes[0]
    numbers = read_raw_table("t.csv", Roles(label="y", numbers=("c",))).columns["c"].numbers
    assert numbers.tolist() == [at % 7 for at in range(60)]


def test_cards_ask_about_categories_numbers_and_dates_as_told(folder, capsys):
    rng = np.random.default_rng(0)
    code = rng.choice([10, 20, 30, 40], 200)
    y = (rng.random(200) < np.where(code == 20, 0.95, np.where(code == 40, 0.9, 0.05))).astype(int)
    write("t.csv", [["code", "zip", "y"], *zip(code, [f"{at % 4:02}" for at in range(200)], y, strict=True)])
    command = ["card", "t.csv", "--label", "y", "-q", "--time-limit", "10", "-o", "card"]
    assert main([*command, 'data.categories=["code"]', 'data.numbers=["zip"]']) == 0
    asked = {question.operator for question in Card.load("card/card.json").questions if question.column == "code"}
    assert asked <= {"=", "not in"}
    assert "code >= " not in capsys.readouterr().out


def test_a_card_reads_new_rows_by_the_marks_and_units_of_its_training_rows(folder, capsys):
    rng = np.random.default_rng(0)
    share, paid = rng.normal(20, 9, 200).round(1), rng.integers(1, 9, 200) * 1000
    y = (share + rng.normal(size=200) > 20).astype(int)
    texts = [
        [f"{s:.1f} %".replace(".", ","), f"{p:,}".replace(",", "."), label]
        for s, p, label in zip(share, paid, y, strict=True)
    ]
    write("t.csv", [["share", "paid", "y"], ["20,0 %", "1.234.567", 1], *texts], ";")
    assert main(["card", "t.csv", "--label", "y", "-q", "--time-limit", "10", "-o", "card", "--questions", "2"]) == 0
    card = Card.load("card/card.json")
    assert {(one.decimal, one.unit) for one in card.questions if one.column == "share"} <= {(",", "%")}
    whole = card.totals({"share": [row[0] for row in texts], "paid": [row[1] for row in texts]})
    for at in range(5):
        assert card.totals({"share": [texts[at][0]], "paid": [texts[at][1]]}).tolist() == [whole[at]]
    with pytest.raises(ValueError, match=r"must hold numbers in % with a decimal comma or missing values, got '0.2'"):
        Card((card.questions[0],), (1,)).totals({"share": ["0.2"], "paid": ["0.2"]})


# --- dates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01", "1600-01-01", "31.12.9999"])
def test_dates_of_all_centuries_are_days(day):
    cells = [day, "2024-01-01"] if "-" in day else [day, "01.01.2024"]
    kind = kind_of(Column("d", cells))
    assert kind.name == "date"
    years = {"9999": 2932896, "0001": -719162, "1600": -135140}
    assert kind.read(Column("d", cells)).numbers[0] == next(days for year, days in years.items() if year in day)
    preparation = TablePreparation().fit(pd.DataFrame({"d": ["2024-01-01", "2024-01-02"]}))
    assert preparation.transform({"d": ["9999-12-31"]}).tolist() == [[2932896.0]]


def test_years_of_two_digits_are_asked_about(folder, capsys):
    rows = [[f"{1 + at % 28:02}.{1 + at % 12:02}.{40 + at % 60:02}", at % 2] for at in range(120)]
    write("t.csv", [["born", "y"], *rows])
    assert main(["check", "t.csv", "--label", "y"]) == 2
    assert "'01.01.40' in row 1 has a year of two digits; data.first_year = 1930" in capsys.readouterr().err
    options = DataConfig(path="t.csv", label="y", first_year=1930)
    days = split_of(options, 0).train.X[:, 0]
    assert pd.Timestamp(days.min(), unit="D").year >= 1940
    assert pd.Timestamp(days.max(), unit="D").year < 2000


def test_dates_in_two_formats_are_dates():
    cells = ["2024-05-31", "31.05.2024", "31 May 2024", "05/31/2024", "31-May-2024 6:00 PM", None]
    kind = kind_of(Column("signup", cells))
    assert kind.name == "date"
    days = kind.read(Column("signup", cells)).numbers
    assert days[:5].tolist() == [19874.0] * 4 + [19874.75]


# --- amounts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (["-14.4%", "5%", "-"], [-14.4, 5, np.nan], "is read as numbers in %, '-' as missing"),
        (["$24.37", "($1.50)", "$1.50-"], [24.37, -1.5, -1.5], "is read as numbers in $"),
        (["60.5 kg", "7 kg", ""], [60.5, 7, np.nan], "is read as numbers in kg"),
        (["\u22122.5", "3", "\u2014"], [-2.5, 3, np.nan], "'\u2014' is read as missing"),
        (["1.234,50 \u20ac", "7,00 \u20ac"], [1234.5, 7], "is read as numbers in \u20ac"),
        (["USD 5", "USD 1,200.00"], [5, 1200], "is read as numbers in USD"),
    ],
)
def test_amounts_are_numbers_and_said_so(cells, values, note):
    kind = kind_of(Column("a", cells))
    assert kind.name == "number"
    assert note in kind.note
    np.testing.assert_array_equal(kind.read(Column("a", cells)).numbers, values)


def test_a_unit_of_the_training_rows_is_that_of_later_rows():
    preparation = TablePreparation().fit({"load": ["5%", "7%", "12.5%"]})
    assert preparation.transform({"load": ["8 %"]}).tolist() == [[8.0]]
    with pytest.raises(
        TableError, match=r"column 'load' must hold numbers in % with a decimal point.*got '0.08' in row 1"
    ):
        preparation.transform({"load": ["0.08"]})
    found = kind_of(Column("size", ["5 MB", "10 MB", "2 GB", "7 MB", "9 MB", "4 MB"]))
    assert "must hold numbers in MB, got '2 GB' in row 3" in found.problem.text


def test_texts_of_many_values_become_mean_labels_of_other_rows(folder):
    rng = np.random.default_rng(0)
    cities = rng.integers(0, 60, 600)
    y = (rng.random(600) < np.where(cities < 20, 0.8, 0.1)).astype(int)
    lines = [[f"city {c}", f"{rng.normal():.3f}", label] for c, label in zip(cities, y, strict=True)]
    write("t.csv", [["city", "x", "y"], *lines])
    split = split_of(DataConfig(path="t.csv", label="y"), 0)
    assert split.feature_names == ("city (mean label)", "x")
    encoding = split.preparation.encodings_[0]
    rows, labels = split.train.rows, split.train.y
    mean = labels.mean()
    # a label that is turned does not turn the feature of its own row
    turned = [["city", "x", "y"], *csv.reader(Path("t.csv").read_text().splitlines()[1:])]
    target = rows[0]
    turned[1 + target][2] = 1 - int(turned[1 + target][2])
    write("t.csv", turned)
    again = split_of(DataConfig(path="t.csv", label="y"), 0)
    assert again.train.X[0, 0] == split.train.X[0, 0]
    # new rows get the mean over all training rows; a new city that of all
    table = {"city": [f"city {c}" for c in (0, 59)] + ["elsewhere"], "x": ["0.0"] * 3}
    known = [labels[cities[rows] == c] for c in (0, 59)]
    expected = [(one.sum() + 10 * mean) / (len(one) + 10) for one in known]
    np.testing.assert_allclose(split.preparation.transform(table)[:, 0], [*expected, mean], rtol=1e-12)
    assert isinstance(encoding, MeanEncoding)
    # signal is not lost: rows of test cities are told apart
    first = cities[split.test.rows] < 20
    assert split.test.X[first, 0].mean() > split.test.X[~first, 0].mean() + 0.15


def test_a_new_way_to_write_values_stops_predict_unless_allowed(folder, capsys):
    rows = [["smoker", "x", "y"], *(["yes" if at % 3 else "no", at % 7, int(at % 3 == 0)] for at in range(60))]
    trained(rows)
    new = [["smoker", "x"], *(["Y" if at % 2 else "N", at] for at in range(12))]
    write("new.csv", new)
    for command in ("predict", "explain"):
        assert main([command, "runs/t", "new.csv"]) == 2
        message = "column 'smoker': 'N', 'Y' in 12 of 12 rows are new since training, which had 'no', 'yes'"
        assert message.replace("'no', 'yes'", "") in capsys.readouterr().err.replace("'yes', 'no'", "")
        assert main([command, "runs/t", "new.csv", "--new-values"]) == 0
        capsys.readouterr()
    write("new.csv", [*new[:5], *(["yes", 1] for _ in range(6))])  # a minority
    assert main(["predict", "runs/t", "new.csv"]) == 0
    assert "new since training, taken as" in capsys.readouterr().err


# --- leaks -------------------------------------------------------------------------------------------------------


def test_rows_that_stand_in_both_sets_are_named(folder):
    rng = np.random.default_rng(0)
    rows = [[f"{rng.normal():.3f}", f"{rng.normal():.3f}", at % 2] for at in range(60)]
    write("t.csv", [["a", "b", "y"], *rows])
    write("u.csv", [["b", "a", "y"], *([row[1], row[0], row[2]] for row in rows[:7])])
    split = split_of(DataConfig(path="t.csv", test_path="u.csv", label="y"), 0)
    assert any(
        note.startswith("all 7 rows of the test set are rows of the training set, too (1, 2, 3, ...)")
        for note in split.notes
    )
    write("t.csv", [["a", "b", "y"], *rows, *rows])
    notes = split_of(DataConfig(path="t.csv", label="y"), 0).notes
    assert any("of 60 rows of the test set are rows of the training set" in note for note in notes)
    write("t.csv", [["a", "b", "y"], *([at % 3, at % 4, at % 2] for at in range(60))])
    assert not any("of the training set" in note for note in split_of(DataConfig(path="t.csv", label="y"), 0).notes)


def test_predict_says_that_a_column_which_new_rows_lack_was_known_only_afterwards(folder):
    run = trained(labelled({"x": lambda r: f"{r.random():.2f}", "cost": lambda r: f"{r.random():.2f}"}))
    with pytest.raises(
        TableError, match=r"no feature column 'cost'.*known only afterwards: leave it out by data\.drop"
    ):
        scores(run, [["x"], ["0.5"]])


# --- commands and files ------------------------------------------------------------------------------------------


def test_workbooks_are_read(folder):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {"id": ["007", "008", "009"], "x": [1.5, None, 3], "since": pd.to_datetime(["2024-05-31"] * 3)}
    )
    frame.assign(y=[0, 1, 1]).to_excel("t.xlsx", index=False)
    table = read_raw_table("t.xlsx", Roles(label="y", features=("x", "id", "since")))
    assert table.columns["x"].numbers.tolist()[::2] == [1.5, 3]
    assert (table.columns["id"].texts.tolist(), table.y.tolist()) == (["007", "008", "009"], [0, 1, 1])
    frame.set_axis([1, 2, 3]).to_excel("v.xlsx")  # with row numbers
    assert list(read_raw_table("v.xlsx", Roles()).columns) == ["id", "x", "since"]
    pd.DataFrame([["Churn in May", None], ["x", "y"], [1, 0], [2, 1]]).to_excel("u.xlsx", index=False, header=False)
    with pytest.raises(DataError, match="every column needs a name, got '' for column 2"):
        read_raw_table("u.xlsx", Roles(label="y"))


def test_rows_without_a_label_can_be_left_out(folder, capsys):
    rows = [[f"{at}.5", f"{at % 7}.25", "" if at % 5 == 0 else at % 2] for at in range(60)]
    write("t.csv", [["x", "z", "y"], *rows])
    assert main(["check", "t.csv", "--label", "y"]) == 2
    line = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("  unlabelled"))
    options = DataConfig(
        path="t.csv", label="y", **{key: json.loads(value) for key, value in [line.strip().split(" = ")]}
    )
    split = split_of(options, 0)
    assert len(split.train.y) + len(split.test.y) == 48
    assert "12 rows without a label are left out" in split.notes
    kept = [row for row in rows if row[2] != ""]
    for _, part in split.parts:
        assert [kept[at][0] for at in part.rows] == [f"{x}" for x in part.X[:, 0]]
        assert part.y.tolist() == [kept[at][2] for at in part.rows]
    assert split.tables[0].in_file(np.arange(3)).tolist() == [1, 2, 3]


# --- each row in any company -------------------------------------------------------------------------------------

DE = str.maketrans(".,", ",.")
CELLS = {
    "point": lambda r: f"{r.gauss(0, 3):.3f}",  # many begin with a zero: no thousands do
    "thousands": lambda r: f"{r.randrange(1, 90_000):,}" + r.choice(["", ".5"]),
    "comma": lambda r: f"{r.gauss(20, 9):.2f}".translate(DE),
    "european": lambda r: f"{r.uniform(-9, 90_000):,.2f}".translate(DE),
    "whole": lambda r: str(r.randrange(0, 40)),
    "percent": lambda r: f"{r.gauss(9, 30):.1f}" + r.choice(["%", " %"]),
    "money": lambda r: r.choice(["${:,.2f}", "(${:,.2f})", "${:.2f}-"]).format(r.uniform(0, 5000)),
    "weight": lambda r: f"{r.uniform(1, 99):.1f} kg".translate(DE),
    "minus": lambda r: f"{r.gauss(0, 5):.1f}".replace("-", "\u2212"),
    "zip": lambda r: r.choice(["01234", "04567", "98765", "1234", "SW1A"]),
    "code": lambda r: r.choice(["007", "07", "7", "12"]),
    "version": lambda r: r.choice(["1.1", "1.10", "1.2", "2.0b"]),
    "smoker": lambda r: r.choice(["yes", "no"]),
    "flag": lambda r: r.choice(["True", "False"]),
    "mode": lambda r: r.choices(["bus", "car", "walk", "on foot"], [5, 4, 2, 0.2])[0],
    "city": lambda r: f"city {r.randrange(30)}",
    "day": lambda r: f"20{r.randrange(10, 25)}-{r.randrange(1, 13):02}-{r.randrange(1, 29):02}",
    "german day": lambda r: f"{r.randrange(1, 29):02}.{r.randrange(1, 13):02}.{r.randrange(1700, 2300)}",
    "two ways": lambda r: r.choice(["{2}-{1:02}-{0:02}", "{0:02}.{1:02}.{2}"]).format(
        r.randrange(1, 29), r.randrange(1, 13), r.randrange(2000, 2025)
    ),
}
DASHED = ("percent", "money", "weight", "minus")


def drawn_cell(name, rng, missing):
    if rng.random() < missing:
        return "-" if name in DASHED and rng.random() < 0.5 else ""
    return CELLS[name](rng)


@settings(max_examples=examples(4, 150), derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(sorted(CELLS)), min_size=2, max_size=7, unique=True),
    st.integers(0, 2**20),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from(",;\t"),
)
def test_each_row_has_one_score_in_any_company(tmp_path_factory, names, seed, missing, separator):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("table"))
        rows = [[drawn_cell(name, rng, missing) for name in names] for _ in range(90)]
        labels = [int(rng.random() < 0.35 + 0.2 * (at % 2)) for at in range(90)]
        training = [[*names, "y"], *([*row, label] for row, label in zip(rows, labels, strict=True))]
        numbers = [name for name in ("point", "minus") if name in names]
        texts = [name for name in ("code", "version") if name in names]
        keys = {"numbers": numbers, "categories": texts}
        run = trained(training, "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()), separator)
        new = [[drawn_cell(name, rng, missing) for name in names] for _ in range(12)]
        whole = scores(run, [names, *new], separator)
        assert np.isfinite(whole).all()
        for at in range(4):  # alone
            np.testing.assert_array_equal(scores(run, [names, new[at]], separator), whole[at : at + 1])
        # other columns beside, in another order, in a file of another kind
        order = rng.sample(range(len(names)), len(names))
        header = ["account", *(names[j] for j in order), "price"]
        beside = [["10.100.200", *(row[j] for j in order), "1,05"] for row in new]
        other = rng.choice([mark for mark in ",;\t" if mark != separator])
        np.testing.assert_array_equal(scores(run, [header, *beside[::-1]], other)[::-1], whole)
        # commands
        write("new.csv", [names, *new], separator)
        assert main(["predict", "runs/t", "new.csv", "-o", "ranked.csv", "-q"]) == 0
        ranked = pd.read_csv("ranked.csv").sort_values("row")
        np.testing.assert_array_equal(ranked["ltr_score" if "ltr_score" in ranked else "score"], whole)
        explained = explain_rows(read_rows_for(run, Path("new.csv"), card=False))
        np.testing.assert_allclose(explained.list["score"].to_numpy(), whole, rtol=1e-9, atol=1e-9)
        # a test file, and frames of texts, alone and together
        write("test.csv", [["y", *names], *([at % 2, *row] for at, row in enumerate(new))], separator)
        options = load_config("t.toml").data.model_dump(exclude_unset=True) | {"test_path": "test.csv"}
        part = split_of(DataConfig(**options), 0)
        preparation = TablePreparation.from_json(run.preparation.read_text(encoding="utf-8"))
        frame = pd.DataFrame(new, columns=names).replace("", None)
        X = preparation.transform(frame)
        np.testing.assert_array_equal(X[:1], preparation.transform(frame.head(1)))
        np.testing.assert_array_equal(ranker_of(run).predict(X), whole)
        assert part.test.X.shape == (12, len(part.feature_names))
        full = split_of(DataConfig(**options | {"path": "t.csv"}), 0).preparation
        np.testing.assert_array_equal(part.test.X, full.transform(frame))
        # another language
        assert main(["export", "runs/t", "-o", "model.onnx"]) == 0
        session = onnxruntime.InferenceSession("model.onnx")
        inputs = {}
        for one in encodings_in(run.preparation.read_text(encoding="utf-8")):
            column = one.read(Column(one.column, frame[one.column]))
            given = column.numbers if isinstance(one, NumberEncoding) else None
            raw = frame[one.column].fillna("").to_numpy(dtype=object) if given is None else given
            inputs[one.column] = raw
        found = session.run(["score"], {each.name: inputs[each.name] for each in session.get_inputs()})[0]
        np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-12)
        # a card
        command = ["card", "t.csv", "--label", "y", "-q", "--time-limit", "5", "--questions", "2", "-o", "card"]
        if main([*command, *(f"data.{key}={json.dumps(value)}" for key, value in keys.items())]) == 0:
            card = Card.load("card/card.json")
            totals = []
            for rows_of_file in ([names, *new], *([names, row] for row in new[:4])):
                write("new.csv", rows_of_file, separator)
                assert main(["score", "card/card.json", "new.csv", "-o", "scored.csv"]) == 0
                totals.append(pd.read_csv("scored.csv").iloc[:, 1].tolist())
            assert totals[0][:4] == [one[0] for one in totals[1:]]
            assert totals[0] == card.totals(frame).tolist()


def test_what_stands_for_missing_values_does_so_in_files_of_all_kinds_and_in_cards(folder):
    rng = np.random.default_rng(0)
    m = np.where(rng.random(120) < 0.3, -999.0, rng.normal(size=120).round(2))
    frame = pd.DataFrame({"m": m, "region": rng.choice(["EU", "NA", "AS", "?"], 120), "y": rng.integers(0, 2, 120)})
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    frame.to_excel("t.xlsx")
    found = []
    for name in ("t.csv", "t.parquet", "t.xlsx"):
        options = DataConfig(path=name, label="y", missing=("-999", "-999.0", "?"))
        table = read_raw_table(name, options.roles, options.reading)
        table.check()
        found.append([table.columns["m"].numbers, table.columns["region"].texts])
        assert table.columns["m"].missing.sum() == (m == -999).sum()
        assert set(table.columns["region"].texts) == {"EU", "AS", ""}
    for other in found[1:]:
        np.testing.assert_array_equal(found[0][0], other[0])
        np.testing.assert_array_equal(found[0][1], other[1])
    command = ["card", "t.csv", "--label", "y", "-q", "--time-limit", "5", "--test", "0", "-o", "card"]
    assert main([*command, 'data.missing=["-999", "-999.0", "?"]']) == 0
    ranked = pd.read_csv("card/ranked.csv").sort_values("row")
    assert main(["score", "card/card.json", "t.csv", "-o", "s.csv"]) == 0
    assert pd.read_csv("s.csv").total.tolist() == ranked.total.tolist()
