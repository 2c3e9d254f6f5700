"""What docs/tutorial.md says is so: its files and commands, run in an empty folder, print what the page shows.

And what leads from page to page.
"""

import contextlib
import csv
import io
import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.trainers.sweeping import no_processes
from trainers.cli import main

DOCS = ROOT / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {found[1]: text for _, text in BLOCKS if (found := re.match(r"# (\S+\.\w+)\n", text))}
# command -> what the page shows below it, in the order of the page
SHOWN = {
    found[1]: found[2]
    for kind, text in BLOCKS
    if kind == "console"
    for found in re.finditer(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
}
MISTAKES = [command for command, shown in SHOWN.items() if shown.startswith("ltr: error")]


def run(command):
    """Exit code and everything printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(command.removeprefix("ltr ").split())
    return code, out.getvalue()


def rows(text):
    """The rows of the first table, by the method."""
    lines = [line.strip("│ ").split("│") for line in text.partition("└")[0].splitlines() if line.startswith("│")]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The reader's folder, with the files of the page and the run of section 3."""
    folder = tmp_path_factory.mktemp("patients")
    with contextlib.chdir(folder):
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        exec(compile(FILES["make_patients.py"], "make_patients.py", "exec"), {})
        code, printed = run("ltr run patients.toml")
    assert code == 0
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_the_page_has_what_is_tested():
    patients = {"make_patients.py", "patients.toml", "lengths.toml", "make_scores.py", "scored.toml"}
    assert set(FILES) == patients | {"make_survey.py", "survey.toml"}
    assert len(MISTAKES) >= 5


def test_the_run_prints_the_table_of_the_page(here):
    shown, printed = rows(SHOWN["ltr run patients.toml"]), rows(Path("printed.txt").read_text(encoding="utf-8"))
    assert len(shown) == 5
    for method, cells in shown.items():
        if method == "exact *":  # other weights may be as good: the test set would tell
            assert (printed[method][3:7], cells[3:7]) == (["6.4663", "6.4663", "0.00%", "optimal"],) * 2
        else:
            assert printed[method][:-1] == cells[:-1]  # without the seconds


@pytest.mark.slow
def test_one_command_prints_the_answer(here):
    command = next(command for command in SHOWN if command.startswith("ltr rank patients.csv"))
    code, printed = run(command)
    assert code == 0
    assert printed.startswith(SHOWN[command].rstrip())
    with Path("outcomes.csv").open(newline="") as file:
        ill = {row["patient"]: int(row["progressed"]) for row in csv.DictReader(file)}
    with Path("runs/patients-rank/list.csv").open(newline="") as file:
        first = [row["patient"] for row in csv.DictReader(file)][:10]
    assert sum(ill[patient] for patient in first) == 7
    assert first[0] == "P351"
    command = next(command for command in SHOWN if command.startswith("ltr outcome runs/patients-rank"))
    code, printed = run(command)
    assert (code, printed.startswith(SHOWN[command].rstrip())) == (0, True)


def test_the_proof_is_verified(here):
    code, printed = run("ltr verify runs/patients/exact/certificate.json --require-proof")
    assert code == 0
    assert printed.startswith("optimal: the weights have the value 6.466289921")
    shown = SHOWN["ltr verify runs/patients/exact/certificate.json --require-proof"]
    assert printed.partition("; problem: ")[2] == shown.partition("; problem: ")[2]


def test_new_rows_are_ranked(here):
    assert run("ltr predict runs/patients new_patients.csv -o ranked.csv") == (0, "")
    lines = Path("ranked.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == SHOWN["head -4 ranked.csv"].splitlines()[0]
    stages = [line.split(",")[2] for line in lines[1:]]
    assert stages == ["reranked"] * 17 + ["base"] * 28


def test_the_sweep_runs_and_is_reported(here):
    short = FILES["lengths.toml"].replace("splits = 10", "splits = 1").replace('25, 50, 100, "full"', "25")
    assert short != FILES["lengths.toml"]
    Path("short.toml").write_text(short, encoding="utf-8")
    with no_processes():
        code, printed = run("ltr sweep short.toml --jobs 1")
    assert code == 0
    assert "5 results computed; ltr report runs/short makes tables and figures of them" in printed
    code, printed = run("ltr report runs/short")
    assert code == 0
    assert printed == SHOWN["ltr report runs/lengths"].replace("lengths", "short")
    assert "patients" in Path("runs/short/report/report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_choice_and_a_corrected_column_print_what_the_page_shows(here):
    exec(compile(FILES["make_scores.py"], "make_scores.py", "exec"), {})
    choices = [command for command in SHOWN if "choose=" in command or "scored.toml" in command]
    assert len(choices) == 4
    for command in choices:
        code, printed = run(f"{command} -q")
        assert code == 0
        if "choose=false" not in command:
            assert printed.splitlines()[:3] == SHOWN[command].splitlines()[:3]
        shown, found = rows(SHOWN[command]), rows(printed)
        if "choose=false" in command:  # other weights may be as good: the other sets would tell
            shown["exact *"][:2] = found["exact *"][:2]
        assert {method: cells[:-1] for method, cells in shown.items()} == {m: cells[:-1] for m, cells in found.items()}
    assert run("ltr predict runs/corrected scored_new_patients.csv -o corrected.csv") == (0, "")


def test_a_card_is_made_of_texts_missing_values_and_numbers(here):
    assert len(FILES["survey.toml"].splitlines()) <= 15
    exec(compile(FILES["make_survey.py"], "make_survey.py", "exec"), {})
    code, printed = run("ltr run survey.toml -q")
    assert code == 0
    shown = SHOWN["ltr run survey.toml"]
    assert {name: cells[:-1] for name, cells in rows(printed).items()} == {n: c[:-1] for n, c in rows(shown).items()}
    assert printed[printed.index("Card for") :] == shown[shown.index("Card for") :]
    command = "ltr verify runs/survey/card/certificate.json --require-proof"
    assert run(command) == (0, SHOWN[command])
    assert Path("runs/survey/card/card.png").stat().st_size > 10_000
    assert run("ltr predict runs/survey new_survey.csv --method card -o ranked_survey.csv") == (0, "")
    lines = Path("ranked_survey.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    assert "".join(lines[:3]) == SHOWN["head -3 ranked_survey.csv"]


@pytest.mark.parametrize("command", MISTAKES)
def test_mistakes_get_the_messages_of_the_page(here, command):
    code, printed = run(command)
    assert code == 2
    assert printed.replace(str(here), "...") == SHOWN[command]
    assert not Path("runs/try").exists()


def test_the_index_lists_every_page():
    listed = re.findall(r"^\| \[(\S+)\]\((\S+\.md)\) \|", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(target.startswith(name) for name, target in listed)
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= {target for _, target in listed}


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page",
    [*(DOCS.parent / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.rglob("*.md"))],
    ids=lambda page: page.name,
)
def test_links_lead_to_files_and_headings(page):
    lost = []
    for target, anchor in re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        if target.startswith("http"):
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in headings(file)):
            lost.append(f"{target}#{anchor}" if anchor else target)
    assert lost == []
