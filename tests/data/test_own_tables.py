"""Tables as they are: what is understood, what becomes of their columns, what is said about damaged ones."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from ltr.data import DataError, Reading, Roles, TableError, TablePreparation, read_columns, read_data, read_raw_table
from ltr.data.columns import Column
from ltr.data.forms import ISO, DateForm
from ltr.data.kinds import kinds_of, notes_on
from ltr.data.labels import labels_of
from ltr.rankers import LogisticRegressionRanker
from scripts.messy_table import messy_table, save
from tests.paths import ROOT
from trainers.cli import main
from trainers.commands import card
from trainers.config import load_config
from trainers.config.sections import DataConfig
from trainers.parser import parse
from trainers.task.data import split_of


@pytest.fixture(scope="module")
def survey():
    pytest.importorskip("statsmodels")
    return messy_table().head(400)


def columns(table):
    return {name: Column(name, table[name]) for name in table}


# --- columns and kinds -------------------------------------------------------------------------------------------


def test_every_column_of_a_messy_table_is_understood(survey):
    kinds = kinds_of(columns(survey.drop(columns="affair")))
    assert {name: kind.name for name, kind in kinds.items()} == {
        "person": "id",
        "number": "id",
        **dict.fromkeys(["rate_marriage", "age", "yrs_married", "children", "religious", "educ"], "number"),
        "occupation": "category",
        "occupation_husb": "category",
        "interview": "date",
        "country": "constant",
    }
    assert kinds["person"].reason == "all 400 texts differ"
    assert kinds_of({"town": Column("town", [f"t{k % 40}" for k in range(100)])})["town"].name == "category"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["yes", " Yes ", "NO", "no", "no"], "unclear"),
        (["y", "N", "Y", "y"], "unclear"),
        (["Bus", "bus", "bus"], "unclear"),
        (["Yes", "Yes ", "NO"], "yes/no"),  # spaces do not count
        (["TRUE", "true", "False", "False"], "number"),  # 1 and 0
        (["bus", "Bus", "car", "car", "Car", "bus", "Bus"], "category"),  # may be meant
    ],
)
def test_yes_and_no_in_several_spellings_are_asked_about(cells, kind):
    found = kinds_of({"flag": Column("flag", cells)})["flag"]
    assert found.name == kind
    if kind == "unclear":
        assert "differ only in capital letters: write each value one way" in found.problem.text
        assert kinds_of({"flag": Column("flag", cells)}, {"flag": "category"})["flag"].name == "category"


@pytest.mark.parametrize("positive", [None, "yes", "Yes"])
def test_labels_in_several_spellings_are_not_counted_as_negatives(positive):
    """The rows of the other spelling would silently be negatives."""
    found = labels_of(Column("ill", ["yes", "no", "Yes", "no"]), positive)
    assert found.values is None
    rule = "column 'ill': labels 'Yes' and 'yes' differ only in capital letters: write each label one way"
    assert [problem.text for problem in found.problems] == [rule]
    assert labels_of(Column("ill", ["yes", "no", "Yes", "no"]), "no").values.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,5", "2", None], [1.5, 2, np.nan]),
        (["1.234,5", "7"], [1234.5, 7]),
        (["1.234", "7,5"], [1234, 7.5]),
        (["1,234.5", "7"], [1234.5, 7]),
        (["12 345", "1\u00a0000"], [12345, 1000]),
        (["1'234", "-5"], [1234, -5]),
        (["-1,5e3", "+2,0"], [-1500, 2]),
        (["1,234", "2,345"], None),  # could be both
        (["1,5", "2.5"], None),
        (["1,23,456"], None),
        (["12%"], [12]),
        (["$24.37", "-$1", "(1.50)", "$3-"], None),  # one lacks its unit
        (["(1.50)", "1.50-", "\u22121.5"], [-1.5, -1.5, -1.5]),
        (["60.5 kg", "1.234 kg"], [60.5, 1.234]),
        (["5 kg", "900 g"], None),
        (["0.123", "1.234"], [0.123, 1.234]),  # thousands begin with no zero
        (["950", "1.234", "12.500"], None),
        (["12A", "B7"], None),
        (["True", "false"], [1, 0]),
    ],
)
def test_numbers_in_the_ways_of_several_countries(cells, numbers):
    found = Column("a", cells).numbers
    assert (found is None) == (numbers is None)
    if numbers is not None:
        np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        (["2024-05-31", "2024-06-01T12:00", None], ("ISO 8601",)),
        (["31.05.2024", "1.6.2024"], ("%d.%m.%Y",)),
        (["31/05/2024", "01/06/2024"], ("%d/%m/%Y",)),
        (["05/31/2024 12:30", "06/01/2024"], ("%m/%d/%Y",)),
        (["05/31/2024 12:30 PM", "06/01/2024 12:00 am"], ("%m/%d/%Y",)),
        (["05/06/2024", "06/07/2024"], ("%d/%m/%Y", "%m/%d/%Y")),
        (["May 31, 2024", "1 June 2024"], ("%d %B %Y",)),
        (["2024-02-30"], ()),
        (["2024"], ()),
        (["1.5.2"], ()),
        (["2024-05-31", "soon", "late"], ()),  # mostly other texts
    ],
)
def test_formats_of_dates(cells, formats):
    column = Column("a", cells)
    assert [form for forms in column.date_forms() for form in forms.formats] == list(formats)
    for form in formats[:1]:
        first = pd.to_datetime(
            cells[0], format="ISO8601" if form == "ISO 8601" else None, dayfirst=form.startswith("%d")
        )
        assert column.read_as(DateForm((form,))).numbers[0] == first.timestamp() / 86400


def test_durations_are_days_and_cells_that_hold_several_values_a_problem():
    days = Column("took", [pd.Timedelta(hours=36).to_pytimedelta(), None])
    assert days.numbers[0] == 1.5
    assert days.missing.tolist() == [False, True]
    kinds = kinds_of({"tags": Column("tags", [["a", "b"], ["a"], None])})
    assert "must hold one number, text or date in each cell, got ['a', 'b'] in row 1" in str(kinds["tags"].problem)


def test_times_with_zones_count_from_the_same_moment():
    days = Column("a", ["2024-01-01T12:00+00:00", "2024-01-01T13:00+01:00"]).read_as(DateForm((ISO,))).numbers
    assert days[0] == days[1] == 19723.5


def test_years_of_two_digits_are_those_of_a_hundred_years():
    known = {None: ["01.01.1969", "31.12.2068"], 1930: ["01.01.1930", "31.12.2029"]}
    for first, cells in known.items():
        form, whole = DateForm(("%d.%m.%y",), first), DateForm(("%d.%m.%Y",))
        assert [form.read(cell[:6] + cell[8:]) for cell in cells] == [whole.read(cell) for cell in cells]


# --- the preparation ---------------------------------------------------------------------------------------------


@parametrize_with_checks([TablePreparation()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_features_are_those_of_scikit_learns_transformers(survey):
    numbers = ["age", "religious", "educ"]
    texts = ["occupation", "occupation_husb"]
    train, new = survey[numbers + texts].iloc[:250], survey[numbers + texts].iloc[250:].copy()
    new.iloc[0, 3] = "sailing"
    preparation = TablePreparation(rare=0.04).fit(train)

    def plain(table):
        table = table.astype(dict.fromkeys(numbers, float))
        return table.assign(**{name: table[name].astype(object).where(table[name].notna(), "-") for name in texts})

    theirs = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), numbers),
            ("texts", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), texts),
        ],
        verbose_feature_names_out=False,
    ).fit(plain(train))
    for rows in (train, new):
        ours = pd.DataFrame(preparation.transform(rows), columns=preparation.get_feature_names_out())
        expected = pd.DataFrame(theirs.transform(plain(rows)), columns=theirs.get_feature_names_out())
        expected.columns = [
            re.sub(
                r"missingindicator_(.*)", r"\1 is missing", re.sub(r"^(occupation(?:_husb)?)_(?!husb)", r"\1 = ", name)
            )
            for name in expected.columns
        ]
        shared = [name for name in ours if name in expected]
        np.testing.assert_array_equal(ours[shared], expected[shared])
        for name in texts:
            known = [
                f.removeprefix(f"{name} = ") for f in ours if f.startswith(f"{name} = ") and not f.endswith("= other")
            ]
            reference = train[name].value_counts().index[0]
            other = rows[name].notna() & ~rows[name].isin([*known, reference])
            np.testing.assert_array_equal(ours[f"{name} = other"], other)
    assert {"age", "age is missing", "religious", "religious is missing", "educ"} <= set(shared)
    assert "occupation = office" not in set(ours)  # the most frequent: a linear score needs no weight for it


def test_order_and_number_of_columns_do_not_matter_and_files_keep_everything(survey):
    preparation = TablePreparation().fit(survey.iloc[:200])
    again = TablePreparation.from_json(preparation.to_json())
    assert json.loads(preparation.to_json())["columns"][1] == json.loads(again.to_json())["columns"][1]
    rows = survey.iloc[200:]
    shuffled = rows[rows.columns[::-1]].assign(more=1)
    expected = preparation.transform(rows)
    for one in (preparation, again):
        np.testing.assert_array_equal(one.transform(shuffled), expected)
        np.testing.assert_array_equal(one.transform(shuffled.to_dict("list")), expected)
        assert one.get_feature_names_out().tolist() == preparation.get_feature_names_out().tolist()
    with pytest.raises(TableError, match=r"X: no feature column 'age', 'educ'; the file has person, number"):
        again.transform(rows.drop(columns=["age", "educ"]))
    with pytest.raises(TableError, match=r"column 'educ' must hold numbers, got 'much' in row 2"):
        again.transform(rows.assign(educ=["7", "much"] * 100))


def test_unseen_texts_and_missing_values_are_noted():
    train = pd.DataFrame({"mode": ["bus", "bus", "car", "car", "bus"], "age": [1.0, 2, 3, 4, 5]})
    preparation = TablePreparation().fit(train)
    new = {"mode": ["boat", None, "car"], "age": [None, 7, 8]}
    np.testing.assert_array_equal(preparation.transform(new), [[0, 3], [0, 7], [1, 8]])
    assert notes_on(columns(new), preparation.encodings_) == [
        "column 'mode': missing in 1 rows, taken as 'bus'",
        "column 'mode': 'boat' in 1 rows, new since training, taken as 'bus'",
        "column 'age': missing in 1 rows, taken as the training median 3",
    ]


def test_equal_features_of_missing_values_are_kept_once():
    table = pd.DataFrame({"a": [1.0, None, 3, None, 5], "b": [2.0, None, 1, None, 7], "c": [None, 1.0, 2, None, 4]})
    preparation = TablePreparation().fit(table)
    assert preparation.get_feature_names_out().tolist() == ["a", "a is missing", "b", "c", "c is missing"]
    assert preparation.left_out_ == {"b is missing": "in the same rows as 'a is missing'"}


def test_only_the_training_rows_decide(tmp_path, survey):
    path = tmp_path / "t.csv"
    save(survey, path)
    one = split_of(DataConfig(path=str(path), label="affair"), 0)
    changed = survey.copy()
    held_out = np.random.default_rng(0).permutation(400)[200:]
    changed.loc[changed.index[held_out], ["age", "occupation"]] = [99.0, "sailing"]
    save(changed, path)
    other = split_of(DataConfig(path=str(path), label="affair"), 0)
    assert one.preparation.to_json() == other.preparation.to_json()
    np.testing.assert_array_equal(one.train.X, other.train.X)
    assert one.facts["sha256"] != other.facts["sha256"]


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings_of_files(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("Größe;Ort\n1,5;Köln\n2,25;Zürich\n".encode(encoding))
    found = read_columns(path)
    assert {name: list(values) for name, values in found.items()} == {"Größe": [1.5, 2.25], "Ort": ["Köln", "Zürich"]}


def test_row_numbers_without_a_name_are_left_out(tmp_path):
    pd.DataFrame({"row": [3.0, 4.0], "y": [0, 1]}).to_csv(tmp_path / "t.csv")
    assert read_data(tmp_path / "t.csv", label="y").feature_names == ("row",)


# --- damaged tables: every problem in one message, with what solves it ---------------------------------------------


def put(column, rows, value):
    def damage(table):
        table[column] = table[column].astype(object)
        table.loc[table.index[rows], column] = value
        return table

    return damage


CITIES = [f"city {k % 150}" for k in range(400)]
DAMAGES = {
    # name: (damage, all problems)
    "misspelt label": (None, ["no label column 'Afair'; the file has person, number"]),
    "labels 1 and 2": (lambda t: t.assign(affair=t.affair.map({"yes": 2, "no": 1})), ["must be 0 or 1, got 2 in row "]),
    "no such positive": (None, ["column 'affair' has no label 'Yes'; it has '"]),
    "missing labels": (put("affair", [4, 7], None), ['none in row 5 (and 1 more); data.unlabelled = "drop" leaves']),
    "one label": (lambda t: t.assign(affair="no"), ["column 'affair': labels must hold both classes, got only 'no'"]),
    "words among dates": (put("interview", [1], "unknown"), ["dates such as 2024-05-31, got 'unknown' in row 2"]),
    "day or month": (
        lambda t: t.assign(interview=[f"{1 + k % 12:02}/{1 + k % 7:02}/1974" for k in range(400)]),
        ["column 'interview': day and month of '08/01/1974' in row 8 could be swapped"],
    ),
    "comma or thousands": (
        lambda t: t.assign(income=[f"{1 + k % 9},{100 + k}" for k in range(400)]),
        ["column 'income': the comma of '1,100' could be a decimal mark, or divide thousands"],
    ),
    "infinite": (put("educ", [5], np.inf), ["column 'educ' must hold finite numbers, got inf in row 6"]),
    "nothing to learn from": (
        lambda t: t[["person", "number", "country", "affair"]],
        ["no feature column is left beside the label 'affair' (person: all 400 texts differ; number:"],
    ),
    "four at once": (
        lambda t: put("educ", [5], "?")(t.assign(city=CITIES, affair=t.affair.map({"yes": "a", "no": "b"}))),
        [
            "no column to drop 'persn'",
            "labels must be 0 and 1, or yes and no, got '",
            "column 'educ' must hold numbers, got '?' in row 6; data.missing = [\"?\"] takes it as missing",
        ],
    ),
}
ROLES = {
    "misspelt label": {"label": "Afair"},
    "no such positive": {"positive": "Yes"},
    "four at once": {"drop": ("persn",)},
}
UNSOLVED = {"one label"}  # by the lines that are named


def damaged(survey, damage, path):
    save(survey.copy() if damage is None else damage(survey.copy()), path)
    return path


@pytest.mark.parametrize("name", DAMAGES)
def test_all_problems_are_in_one_message_with_their_remedies(name, survey, tmp_path):
    (damage, problems), roles = DAMAGES[name], ROLES.get(name, {})
    path = damaged(survey, damage, tmp_path / "t.csv")
    with pytest.raises(TableError) as error:
        read_raw_table(path, Roles(**{"label": "affair", **roles})).check()
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    for problem, found in zip(problems, error.value.problems, strict=True):
        assert problem in found.line(error.value.given)
        assert problem in message


class AcceptedError(Exception):
    """A command has checked what it was given."""


def accepted(*_):
    raise AcceptedError


@pytest.mark.parametrize("name", DAMAGES)
def test_every_remedy_that_is_named_works_when_pasted(name, survey, tmp_path, monkeypatch, capsys):
    damage, roles, solved = DAMAGES[name][0], ROLES.get(name, {}), name not in UNSOLVED
    monkeypatch.chdir(tmp_path)
    path = damaged(survey, damage, tmp_path / "t.csv")
    roles_in_file = {key: list(v) if isinstance(v, tuple) else v for key, v in roles.items()}
    given = {"path": "t.csv", "label": "affair", **roles_in_file}

    def checked(changes):
        config = {key: f"{key} = {json.dumps(value)}" for key, value in given.items()}
        config |= {line.partition(" = ")[0].removeprefix("data."): line.removeprefix("data.") for line in changes}
        (tmp_path / "t.toml").write_text("\n".join(["[data]", *config.values()]))
        return main(["check", "t.toml"]), capsys.readouterr().err

    table = read_raw_table(path, Roles(**{"label": "affair", **roles}))
    for problem in table.problems:
        for remedy in problem.remedies:
            if remedy.key:
                line = remedy.text(table.error.given).removesuffix(f" {remedy.effect}")
                assert problem.text not in checked([line])[1]
    code, error = checked([])
    lines = error.partition("lines for the config:\n  [data]\n")[2].splitlines()
    assert (code, checked([line.strip() for line in lines])[0]) == (2, 0 if solved else 2)
    # a card has no config: the same as arguments of its command
    command = ["card", "t.csv", "--label", given["label"]]
    command += [f"data.{key}={json.dumps(given[key])}" for key in ("drop", "positive") if key in given]
    monkeypatch.setattr("trainers.commands._load", accepted)
    if name != "labels 1 and 2":  # a card takes grades
        with pytest.raises(DataError) as refused:
            card(parse(command))
        command += shlex.split(str(refused.value).partition("arguments for the command: ")[2])
    with pytest.raises(AcceptedError if solved or name == "labels 1 and 2" else DataError):
        card(parse(command))


def test_each_column_has_its_own_decimal_mark(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;c;d\n1,5;1.234;52.5;x\n2,5;2.000;48.25;y\n")
    found = read_columns(tmp_path / "t.csv")
    assert [list(found[name]) for name in "abc"] == [[1.5, 2.5], ["1.234", "2.000"], [52.5, 48.25]]
    for mark, value in ((",", 1234), (".", 1.234)):
        table = read_raw_table(tmp_path / "t.csv", Roles(), Reading(decimal=mark))
        assert [float(table.columns[name].numbers[0]) for name in "abc"] == [1.5, value, 52.5]
    asked = read_raw_table(tmp_path / "t.csv", Roles()).problems
    assert [one.text for one in asked] == [
        "column 'b': the point of '1.234' could be a decimal mark, or divide thousands"
    ]
    (tmp_path / "t.csv").write_text("a;b\n1,234;x\n2,345;y\n")
    file = read_raw_table(tmp_path / "t.csv", Roles(), Reading(decimal=","))
    assert file.columns["a"].numbers.tolist() == [1.234, 2.345]


# --- commands ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a messy table, new rows, and a run that three commands made of it."""
    pytest.importorskip("statsmodels")
    folder = tmp_path_factory.mktemp("survey")
    table = messy_table().head(600)
    new = table[::10]
    save(table.drop(new.index), folder / "survey.csv")
    save(new.drop(columns="affair"), folder / "new.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["init", "survey.csv", "--label", "affair"]) == 0
        quick = ["surrogate.losses=ranknet", "baselines.methods=logistic_regression", "exact.time_limit=0.5"]
        assert main(["run", "survey.toml", *quick, "exact.choose=false", "--quiet"]) == 0
    return folder


def test_a_test_set_of_its_own_is_prepared_like_the_training_set(finished, tmp_path):
    table = messy_table().head(600)
    test = table[::10].copy()
    test.iloc[:20, test.columns.get_loc("occupation")] = "sailing"
    save(test[table.columns[::-1]], tmp_path / "test.csv")
    options = DataConfig(path=str(finished / "survey.csv"), test_path=str(tmp_path / "test.csv"), label="affair")
    split = split_of(options, 0)
    assert split.test.X.shape == (60, split.train.X.shape[1])
    assert split.test.X[:20, split.feature_names.index("occupation = other")].tolist() == [1.0] * 20
    save(table[::10].assign(occupation="sailing"), tmp_path / "test.csv")
    with pytest.raises(TableError, match=r"column 'occupation': 'sailing' in 60 of 60 rows are new since training"):
        split_of(options, 0)


@pytest.mark.parametrize("width", [80, 200])
def test_check_prints_every_column_whole(finished, capsys, monkeypatch, width):
    monkeypatch.chdir(finished)
    monkeypatch.setattr("trainers.commands._stdout", lambda: Console(width=width))
    assert main(["check", "survey.csv", "--label", "affair"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= width
    assert "label affair = yes: " in printed
    for word in ("person", "occupation_husb", "1974-01-01", "constant", "17.5", "missing"):
        assert re.search(rf"(^|\W){word}(\W|$)", printed, re.MULTILINE)


def test_a_column_that_is_known_only_afterwards_is_named(tmp_path, capsys, monkeypatch):
    """Whatever it is: a number, two texts, or a date that only the positives have."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    failed = np.arange(60) % 3 == 0
    cost = np.where(failed, rng.integers(50, 900, 60), 0)
    almost = np.where(np.arange(60) == 3, 0, cost)  # one failure that cost nothing
    closed = np.where(failed, "2024-05-01", "")
    table = {"age": rng.normal(size=60), "cost": cost, "almost": almost, "closed": closed, "failed": failed}
    pd.DataFrame(table | {"claim": np.where(failed, "paid", "none")}).to_csv("machines.csv", index=False)
    note = "'cost' alone tells the labels apart, with an AUC of 1.000: it puts rows"
    arguments = ["check", "machines.csv", "--label", "failed"]
    assert main(arguments) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert note in said
    assert "likewise 'almost', 'closed' (filled in or not), 'claim = paid'. Is it known before you act?" in said
    split = split_of(DataConfig(path="machines.csv", label="failed", train_fraction=0.7), seed=0)
    assert any(one.startswith(note) for one in split.notes)
    assert main([*arguments, "--drop", "cost", "almost", "closed", "claim"]) == 0
    assert "apart" not in capsys.readouterr().out
    pd.DataFrame(table | {"age": [*table["age"][1:], "?"]}).to_csv("machines.csv", index=False)
    assert main(arguments) == 2
    assert "to be decided, see below" in " ".join(capsys.readouterr().out.split())


def test_check_prints_json_and_takes_a_config(finished, capsys, monkeypatch):
    monkeypatch.chdir(finished)
    assert main(["check", "survey.toml", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["rows"], checked["problems"], checked["config"]) == (540, [], [])
    assert [one["kind"] for one in checked["columns"]][:3] == ["id", "id", "number"]
    assert main(["check", "survey.csv", "--label", "occupation", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["config"][0].startswith("positive = ")


def test_init_writes_what_it_knows_and_overwrites_nothing(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = messy_table().head(300).assign(city=CITIES[:300])
    save(table, tmp_path / "s.csv")
    assert main(["init", "s.csv"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "wrote s.toml; next: ltr run s.toml\n"
    assert printed.err == ""
    config = load_config("s.toml").data
    assert (config.label, config.drop) == ("affair", ())
    assert read_raw_table("s.csv", config.roles, config.reading).problems == ()
    assert main(["init", "s.csv"]) == 2
    assert "s.toml is there already" in capsys.readouterr().err
    assert main(["init", "s.csv", "--force"]) == 0
    capsys.readouterr()
    save(table.assign(smoker=["yes", "no"] * 150), tmp_path / "two.csv")
    assert main(["init", "two.csv"]) == 0
    assert "fill in its label, then: ltr run two.toml" in capsys.readouterr().out
    assert 'label = ""  # fill in the column to rank by: it could be affair, smoker' in Path("two.toml").read_text()
    assert main(["run", "two.toml"]) == 2
    assert "data.label: must not be empty" in capsys.readouterr().err


def test_columns_that_options_misspell_are_all_named(survey, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(survey, Path("survey.csv"))
    exact = """[exact]
    signs = {agee = "+", "occupation = wood" = "+"}
    required = ["yrs_maried"]
    constraints = ["age >= 2*edcu"]
    base_score = "score"
    """
    Path("t.toml").write_text(f'[data]\npath = "survey.csv"\nlabel = "affair"\ndrop = ["person"]\n{exact}')
    assert main(["run", "t.toml"]) == 2
    said = capsys.readouterr().err
    for problem in (
        "5 errors",
        "exact.base_score: is no column of features",
        "exact.signs: there is no column 'agee' (did you mean 'age'?)",
        "exact.signs: there is no column 'occupation = wood' (did you mean",
        "exact.required: there is no column 'yrs_maried' (did you mean 'yrs_married'?)",
        "exact.constraints: 'age >= 2*edcu': there is no column 'edcu' (did you mean 'educ'?)",
    ):
        assert problem in said


def test_the_page_shows_what_the_commands_print(tmp_path, monkeypatch, capsys):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trainers.commands._stdout", lambda: Console(width=100))
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\$ (.+)\n((?:(?!\$ |```).*\n)*)", page, re.MULTILINE))
    table = messy_table()
    save(table.drop(table.index[::10]), tmp_path / "survey.csv")
    assert Path("survey.csv").read_text().startswith(shown["head -3 survey.csv"])
    changed = pd.read_csv("survey.csv").astype({"educ": object})
    changed["affair"] = changed["affair"].map({"yes": "had one", "no": "had none"})
    changed.loc[5, "educ"] = "?"
    income = [f"{900 + k:,}".replace(",", ".") for k in range(len(changed))]
    changed.assign(income=income).to_csv("damaged.csv", index=False)
    for command in ("init survey.csv", "check survey.csv", "check damaged.csv"):
        full = f"ltr {command} --label affair"
        assert main(full.split()[1:]) == (2 if "damaged" in command else 0)
        printed = capsys.readouterr()
        text = printed.err if "damaged" in command else printed.out
        assert [line.rstrip() for line in text.splitlines()] == shown[full].splitlines()
    assert Path("survey.toml").read_text() in page


def test_mean_labels_have_an_onnx_form(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    cities = [f"city {number}" for number in rng.integers(0, 60, 600)]
    table, y = {"city": cities, "x": rng.normal(size=600)}, rng.integers(0, 2, 600)
    preparation = TablePreparation().fit(table, y)
    ranker = LogisticRegressionRanker().fit(preparation.transform(table), y)
    ranker.to_onnx(tmp_path / "model.onnx", preparation=preparation)
    new = {"city": ["city 1", " city 2 ", "elsewhere", ""], "x": np.arange(4.0)}
    given = {"city": np.array(new["city"], dtype=object), "x": new["x"]}
    found = runtime.InferenceSession(tmp_path / "model.onnx").run(["score"], given)[0]
    np.testing.assert_allclose(found, ranker.decision_function(preparation.transform(new)), rtol=1e-12)
