"""The report of a sweep as files: Markdown, one HTML page, pictures, results; and the command that writes them."""

import dataclasses
import html.parser
import json
import re
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from tests.sweep_results import entry, grid, record, small, sweep
from trainers.cli import main
from trainers.files import RunError
from trainers.records import write_cell, write_export
from trainers.report import report
from trainers.report.evidence import Evidence
from trainers.report.page import (
    Page,
    Picture,
    Section,
    Table,
    Text,
    inline_html,
    literal,
    plain_text,
    to_html,
    to_markdown,
)
from trainers.report.report import advice, build_page, write_report
from trainers.run.folder import find_reported

EVIL = "<script>alert('x')</script> & \"<b>\" *|*"


def picture(name="a picture", caption="It **rises**, `a < b`."):
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([1, 2])
    return Picture(name, figure, caption)


@pytest.fixture
def plain(monkeypatch):
    """Reports with pictures of known content."""
    monkeypatch.setattr(report, "pictures", lambda evidence: [Section("Pictures", [picture()])])


def folder_of(results, path):
    """A sweep's folder."""
    path.mkdir(parents=True)
    index = {"name": results.name, "grids": results.grids, "origin": results.origin}
    (path / "sweep.json").write_text(json.dumps(index))
    for found in results.records:
        write_cell(path, found)
    return path


# --- texts -----------------------------------------------------------------------------------------------------


@given(st.text(st.sampled_from("_*[]()`\\<>&!|é1a-.")))
def test_a_literal_text_is_shown_as_it_is(text):
    assert plain_text(literal(text)) == text
    assert "<" not in re.sub("&lt;", "", inline_html(literal(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**a** *b* `c*d*`", "<strong>a</strong> <em>b</em> <code>c*d*</code>"),
        ("p_norm_push and a * b * c", "p_norm_push and a * b * c"),
        ("[x](https://example.org/?a=1&b=2)", '<a href="https://example.org/?a=1&amp;b=2">x</a>'),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("<img src=x onerror=y> &lt; ![a](b)", '&lt;img src=x onerror=y&gt; &amp;lt; !<a href="b">a</a>'),
    ],
)
def test_texts_know_emphasis_code_and_links_only(text, expected):
    assert inline_html(text) == expected


# --- Markdown --------------------------------------------------------------------------------------------------


def test_markdown_by_hand():
    shown = picture()
    table = Table(
        ["data | set", "half", "dcg"], [["a<b", "train", "**1.0**"], ["`x|y<z`", "", "2"]], "*Below*.", left=2
    )
    page = Page("Title", [Text("one\n  two")], [Section("First", [table]), Section("Second", [shown])])
    assert to_markdown(page, {shown: "figures/a.png"}) == (
        "# Title\n\none two\n\n## First\n\n"
        "| data \\| set | half | dcg |\n| --- | --- | ---: |\n| a&lt;b | train | **1.0** |\n| `x\\|y<z` |  | 2 |\n\n"
        "*Below*.\n\n## Second\n\n![It rises, a &lt; b.](figures/a.png)\n\nIt **rises**, `a < b`.\n"
    )


def test_the_tables_of_the_report_are_rectangular(plain, tmp_path):
    text = write_report(small(), tmp_path / "out").markdown.read_text()
    blocks = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert len(blocks) == 5  # gains, values, exact stage, times, data
    for lines in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
        assert re.fullmatch(r"\|( ---:? \|)+", lines[1])
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert titles == [
        "methods",
        "The exact stage",
        "Exceptions and checks",
        "Times",
        "Data and origin",
    ]


def test_links_to_figures_lead_there(plain, tmp_path):
    written = write_report(small(), tmp_path / "out put")
    [link] = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", written.markdown.read_text())
    assert (written.markdown.parent / urllib.parse.unquote(link)).read_bytes().startswith(b"\x89PNG")


# --- HTML ------------------------------------------------------------------------------------------------------


class Elements(html.parser.HTMLParser):
    """All elements with their attributes, the text outside of styles, and whether tags are balanced."""

    VOID = frozenset({"meta", "img", "br", "wbr"})

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += "" if "style" in self.open else data


def test_the_page_needs_nothing_else(plain, tmp_path):
    text = write_report(small(), tmp_path / "out").html.read_text()
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


def test_every_table_scrolls_in_a_box_of_its_own(plain, tmp_path):
    text = write_report(small(), tmp_path / "out").html.read_text()
    assert text.count("<table>") == len(
        re.findall(r'<div class="scroll" tabindex="0" role="region" aria-label="[^"]+">\s*<table>', text)
    )


def test_names_of_users_cannot_become_markup(plain, tmp_path):
    found = [record(EVIL, split, "ranknet" + EVIL, 1, split) for split in (0, 1)]
    results = sweep(found, [grid([entry(one, **{"data.label": EVIL}) for one in found], title=EVIL)], name=EVIL)
    assert plain_text(advice(Evidence(results))).count(EVIL) >= 2
    written = write_report(results, tmp_path / "out")
    page = Elements(written.html.read_text())
    assert not {"script", "b"} & {tag for tag, _ in page.found}
    assert page.text.count(EVIL) >= 6  # title, heading, answer, section, rows and columns of tables
    assert "<script" not in written.markdown.read_text()


def test_marks_and_breaks_are_markup():
    table = Table(["a_b, K = 50"], [["**1**"], ["*2*"], ["a"], ["a"], [""]])
    text = to_html(Page("T", [table], []), {})
    assert '<th scope="col" class="left">a_<wbr>b, K&nbsp;=&nbsp;50</th>' in text
    assert "<strong>1</strong>" in text
    assert "<em>2</em>" in text
    assert text.count('class="begin"') == 3  # the second "a" goes on with the first


# --- the whole report ------------------------------------------------------------------------------------------


def test_a_report_is_the_same_when_written_again_and_from_its_export(plain, tmp_path):
    first = write_report(small(), tmp_path / "a")
    again = write_report(small(), tmp_path / "b")
    assert main(["report", str(first.export), "-o", str(tmp_path / "c")]) == 0
    for name in ("report.md", "report.html", "cells.jsonl", "figures/a_picture.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    assert not list(tmp_path.rglob("*.tmp"))
    assert again.files == (again.html, again.markdown, again.figures, again.export)


def test_pictures_have_file_names_of_their_own(monkeypatch, tmp_path):
    names = ["../up", "a b", "a/b", "..", "ok-1.0"]
    monkeypatch.setattr(report, "pictures", lambda evidence: [Section("P", [picture(name) for name in names])])
    written = write_report(small(), tmp_path / "out")
    found = sorted(path.name for path in written.figures.iterdir())
    assert found == ["_up.png", "a_b.png", "a_b_2.png", "ok-1.0.png", "picture.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_the_summary_says_what_is_finished(plain):
    results = small()
    whole = build_page(dataclasses.replace(results, name="A *name*"))
    assert whole.title == r"Results of A \*name\*"
    assert whole.summary[0].text == advice(Evidence(results))
    assert whole.summary[-1].text == "All 40 results are finished, on 2 data sets and 4 splits."
    later = grid([entry(record("late", 0, "hinge", 1, 1))], name="later", title="Later on")
    some = dataclasses.replace(results, records=results.records[:15], grids=[*results.grids, later])
    summary = [block.text for block in build_page(some).summary if isinstance(block, Text)]
    assert summary[-1].startswith("**15 of 41 results are finished**")
    assert summary[-1].endswith("Not begun: Later on.")
    assert build_page(some).title == "Results of small"


def test_the_origin_is_told(plain):
    *_, last = build_page(small()).sections
    assert (
        last.blocks[-1].text == "The sweep was begun with Python 3.11.0, ltr 0.1.0, commit 0123456789ab, with changes."
    )


def test_all_parts_go_together(tmp_path):
    """With the findings and pictures that there are."""
    results = small(splits=3)
    written = write_report(results, tmp_path / "out")
    page = Elements(written.html.read_text())
    assert [tag for tag, _ in page.found].count("img") == len(list(written.figures.iterdir())) > 0
    half = dataclasses.replace(results, records=results.records[:7])
    write_report(half, tmp_path / "out")
    first = dataclasses.replace(results, records=results.records[:1])
    write_report(first, tmp_path / "out")


# --- the command -----------------------------------------------------------------------------------------------


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
    """The message with which the command fails."""
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
    (tmp_path / "runs" / "pima").mkdir()
    (tmp_path / "runs" / "pima" / "config.toml").write_text("")
    (tmp_path / "runs" / "pima" / "run.json").write_text("{}")
    for text in ("pima", "runs/pima"):
        assert "runs/pima has no results yet" in failure(capsys, text)
    assert "is a config; give the folder that was made with it, such as runs/all" in failure(capsys, "all.toml")


def test_damage_and_emptiness_are_errors(tmp_path, capsys):
    empty = folder_of(sweep([], [grid([])]), tmp_path / "empty")
    assert "sweep small: no result is finished yet" in failure(capsys, empty)
    damaged = tmp_path / "cells.jsonl"
    damaged.write_text("{}\n")
    assert "cells.jsonl: cannot be read or is damaged (KeyError)" in failure(capsys, damaged)
    results = small()
    del results.records[3]["sizes"], results.records[3]["seconds"]
    write_export(damaged, results)
    assert "cells.jsonl: cannot be read or is damaged (ValueError)" in failure(capsys, damaged)


def test_places_that_cannot_be_written_are_named(plain, tmp_path, capsys):
    path = tmp_path / "cells.jsonl"
    write_export(path, small())
    assert f"cannot write {path}/out: " in failure(capsys, path, "-o", path / "out")


def test_a_sweep_is_found_by_path_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(small(), tmp_path / "here")
    folder_of(small(), tmp_path / "runs" / "there")
    assert str(find_reported("here")) == "here"
    assert str(find_reported("there")) == "runs/there"
    with pytest.raises(RunError, match="no run or sweep at neither"):
        find_reported("neither")
