"""The report of a sweep as files: Markdown, one HTML page, pictures, results; and the command that writes them."""

import json
import re

import pytest
from matplotlib.figure import Figure

from tests.trainers.pages import Elements
from tests.trainers.sweep_results import entry, grid, record, small, sweep
from trainers.cli import main
from trainers.records import write_cell, write_export
from trainers.report import report
from trainers.report.evidence import Evidence
from trainers.report.page import Page, Picture, Section, Table, Text, plain_text, to_markdown
from trainers.report.report import advice, write_report

EVIL = "<script>alert('x')</script> & \"<b>\" *|*"


def picture(name="a_picture.png", caption="It **rises**, `a < b`."):
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([1, 2])
    return Picture(name, figure, caption)


@pytest.fixture
def plain(monkeypatch):
    """Reports with pictures of known content."""
    monkeypatch.setattr(report, "gain_picture", lambda evidence: picture())


def folder_of(results, path):
    """A sweep's folder."""
    path.mkdir(parents=True)
    index = {"name": results.name, "grids": results.grids, "origin": results.origin}
    (path / "sweep.json").write_text(json.dumps(index))
    for found in results.records:
        write_cell(path, found)
    return path


def test_markdown_by_hand():
    shown = picture()
    table = Table(
        ["data | set", "half", "dcg"], [["a<b", "train", "**1.0**"], ["`x|y<z`", "", "2"]], "*Below*.", left=2
    )
    page = Page("Title", [Text("one\n  two")], [Section("First", [table]), Section("Second", [shown])])
    assert to_markdown(page, "figures") == (
        "# Title\n\none two\n\n## First\n\n"
        "| data \\| set | half | dcg |\n| --- | --- | ---: |\n| a&lt;b | train | **1.0** |\n| `x\\|y<z` |  | 2 |\n\n"
        "*Below*.\n\n## Second\n\n![It rises, a &lt; b.](figures/a_picture.png)\n\nIt **rises**, `a < b`.\n"
    )


def test_the_page_needs_nothing_else(plain, tmp_path):
    text = write_report(small(), tmp_path / "out")[0].read_text()
    page = Elements(text)
    tags = [tag for tag, _ in page.found]
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(tags)
    assert (tags.count("table"), tags.count("img"), tags.count("details")) == (5, 1, 5)
    assert all("open" not in attributes for tag, attributes in page.found if tag == "details")
    ids = {attributes["id"] for _, attributes in page.found if "id" in attributes}
    for tag, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on") or name in ("srcset", "style")]
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        if tag == "a":
            assert attributes["href"].removeprefix("#") in ids
    assert not re.search(r"url\(|@import|http", re.sub(r"base64,[\w+/=]*", "", text))
    assert "prefers-color-scheme: dark" in text
    [image] = [attributes for tag, attributes in page.found if tag == "img"]
    assert (image["alt"], image["width"], image["height"]) == ("It rises, a < b.", "192", "96")


def test_names_of_users_cannot_become_markup(plain, tmp_path):
    found = [record(EVIL, split, "ranknet" + EVIL, 1, split) for split in (0, 1)]
    results = sweep(found, [grid([entry(one, **{"data.label": EVIL}) for one in found], title=EVIL)], name=EVIL)
    assert plain_text(advice(Evidence(results))).count(EVIL) >= 2
    html, markdown, *_ = write_report(results, tmp_path / "out")
    page = Elements(html.read_text())
    assert not {"script", "b"} & {tag for tag, _ in page.found}
    assert page.text.count(EVIL) >= 6  # title, heading, answer, section, rows and columns of tables
    assert "<script" not in markdown.read_text()


def test_a_report_is_the_same_when_written_again_and_from_its_export(plain, tmp_path):
    written = write_report(small(), tmp_path / "a")
    write_report(small(), tmp_path / "b")
    assert main(["report", str(written[-1]), "-o", str(tmp_path / "c")]) == 0
    for name in ("report.md", "report.html", "cells.jsonl", "figures/a_picture.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_command_writes_beside_the_cells_and_says_where(plain, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(small(), tmp_path / "runs" / "small")
    assert main(["report", "small"]) == 0
    out = [f"runs/small/report/{name}" for name in ("report.html", "report.md")]
    out += ["runs/small/report/figures", "runs/small/report/cells.jsonl"]
    assert capsys.readouterr().out.splitlines() == out
    text = (tmp_path / "runs" / "small" / "report" / "report.md").read_text()
    assert text.startswith("# Results of small\n")


def failure(capsys, *arguments):
    assert main(["report", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ltr: error: ")
    assert "Traceback" not in captured.err
    return captured.err


def test_what_is_no_sweep_is_named_with_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no run or sweep at papr or runs/papr" in failure(capsys, "papr")
    folder_of(small(), tmp_path / "runs" / "paper")
    assert "no run or sweep at papr or runs/papr (did you mean 'paper'?)" in failure(capsys, "papr")
    assert "; known are paper" in failure(capsys, "zzz")
    assert "is a config; give the folder that was made with it, such as runs/all" in failure(capsys, "all.toml")


def test_damage_and_emptiness_are_errors(tmp_path, capsys):
    empty = folder_of(sweep([], [grid([])]), tmp_path / "empty")
    assert "sweep small: no result is finished yet" in failure(capsys, empty)
    damaged = tmp_path / "cells.jsonl"
    damaged.write_text("{}\n")
    assert "cells.jsonl: cannot be read or is damaged (KeyError)" in failure(capsys, damaged)
    results = small()
    damaged.write_text(json.dumps({"name": "x", "grids": results.grids, "origin": {}}).replace('"base":', '"x":'))
    assert "cells.jsonl: cannot be read or is damaged (ValueError)" in failure(capsys, damaged)
    del results.records[3]["sizes"], results.records[3]["seconds"]
    write_export(damaged, results)
    assert "cells.jsonl: cannot be read or is damaged (ValidationError)" in failure(capsys, damaged)
