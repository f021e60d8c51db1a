"""Markdown and CSV: what stands in them, and that names stay text."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from nsys_report.errors import InputError
from nsys_report.findings.model import Finding, Place
from nsys_report.reports.csv_files import csv_text, files, write_csv
from nsys_report.reports.markdown import code, render, text
from nsys_report.reports.model import Column, Report, Row, Table
from tests.nsys_report.sample_report import CLASSES, report


def test_a_table_has_its_headings_its_alignment_and_its_total() -> None:
    page = render(report())
    assert "| 412\N{NO-BREAK SPACE}µs |" in page  # a narrow column parts no figure from its unit
    lines = page.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    at = lines.index("| class | time | share | launches | bytes | implied GB/s | of measured | of nominal |")
    assert lines[at + 1] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    assert lines[at + 2] == "| weights | 412 µs | 75.5 % | 43 | 735 MB | 1,783 | 41.5 % | 37.0 % |"
    assert lines[at + 3] == "| kv_gather | 2.00 µs | 0.4 % | 12 | 12.6 MB | 6,290 ▲ | 146.3 % | 130.7 % |"
    assert lines[at + 5] == "| **all** | **546 µs** | **100.0 %** | **162** | **–** | **–** | **–** | **–** |"


def test_marks_notes_and_hidden_rows_are_said_below() -> None:
    page = render(report(lead=1))
    assert "<sub>▲ above the measured ceiling: served from L2, or the count is wrong</sub>" in page
    assert "<sub>24 complete executions</sub>" in page
    assert "<sub>1 more of 2 rows</sub>" in page
    assert "> ⚠ 12 launches have no kernel. *Trace a shorter window.*" in page


def test_findings_come_first_the_later_ones_short() -> None:
    one = Finding(
        "slug",
        "Products are *written* out",
        "Because.",
        "Keep them.",
        "likely",
        "",
        hlo_module="jit_f",
        program_id=1,
        gain_ns=181_000,
        places=tuple(Place(f"fusion.{n}", 1.0, 1.0, None) for n in range(1, 7)),
        to_capture="More.",
    )
    page = render(Report((replace(report().parts[0], findings=(one,) * 4),)))
    lines = page.splitlines()
    at = lines.index("1. **Products are \\*written\\* out** (181 µs to gain; likely; `jit_f#1`)")
    assert lines[at + 2 : at + 5 : 2] == ["   Because.", "   → Keep them."]
    assert lines[at + 6] == "   <sub>in `fusion.1`, `fusion.2`, `fusion.3`, `fusion.4` and 2 more</sub>"
    assert lines[at + 8] == "   <sub>to decide it: More.</sub>"
    assert page.count("Because.") == 3 and "4. **Products" in page
    assert page.index("### What to do") < page.index("### Classes")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a*b_c_ [x](y) `z`", r"a\*b_c\_ \[x\](y) \`z\`"),
        ("<script>alert(1)</script> & more", "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"),
        ("@octocat fixes #12", "@<span></span>octocat fixes #<span></span>12"),
        ("https://example.com", "https:<span></span>//example.com"),
        ("- no list", r"\- no list"),
        ("1. no list", r"1\. no list"),
        ("2.14 ms", "2.14 ms"),
        ("# no title", r"\# no title"),
        ("one\ntwo", r"one\\x0atwo"),
        ("a|b $x$ ~~y~~", r"a\|b \$x\$ \~\~y\~\~"),
    ],
)
def test_running_text_stays_text(words: str, shown: str) -> None:
    assert text(words) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [("fusion.1", "`fusion.1`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", r"`a\|b`"), ("a\u202eb", "`a\\u202eb`"), ("", "")],
)
def test_names_stay_code(name: str, shown: str) -> None:
    assert code(name) == shown


def test_a_hostile_name_stays_in_its_cell() -> None:
    page = render(report(names=("x` | <img src=x onerror=alert(1)> |", "fusion.2")))
    row = next(line for line in page.splitlines() if "onerror" in line)
    assert row.replace("\N{NO-BREAK SPACE}", " ") == r"| x\` \| &lt;img src=x onerror=alert(1)&gt; \| | 0 ns | fusion |"


def test_csv_holds_raw_figures_under_keys() -> None:
    rows = list(csv.reader(io.StringIO(csv_text(CLASSES))))
    assert rows[0][:3] == ["kernel_class", "time_per_execution_ns", "time_share"]
    assert rows[1][:6] == ["weights", "412345", "0.755", "43", "735109120", "1783000000000.0"]
    assert rows[3][4] == ""


def test_csv_gives_a_spreadsheet_no_formula() -> None:
    names = Table("t", "T", (Column("name", "name", "name"),), tuple(Row((n,)) for n in ("=1+1", "@x", 'a,"b"', "a\nb", -2)))
    assert csv_text(names) == 'name\n\'=1+1\n\'@x\n"a,""b"""\na\\x0ab\n-2\n'


def test_every_table_has_a_file_of_its_own(tmp_path: Path) -> None:
    twice = replace(report().parts[0], sections=report().parts[0].sections * 2)
    assert sorted(files(Report((twice,)))) == ["classes-2.csv", "classes.csv", "instructions-2.csv", "instructions.csv"]
    several = Report((replace(twice, name="a/b.sqlite"), report().parts[0]))
    assert "a-b.classes.csv" in files(several) and "capture.classes.csv" in files(several)
    write_csv(several, tmp_path / "new")
    assert len(list((tmp_path / "new").iterdir())) == len(files(several)) == 6


def test_csv_cannot_be_written_into_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_csv(report(), tmp_path / "file")


def test_a_page_that_would_be_too_long_loses_rows_and_then_its_end_and_stays_well_formed() -> None:
    names = tuple(f"fusion_of_a_long_name_{n}" for n in range(4000))
    one = render(report(names=names, lead=4000))
    assert len(one) <= 65_000 and "3,992 more of 4,000 rows" in one and "fusion_of_a_long_name_7" in one
    many = render(Report(report(names=names[:20]).parts * 200))
    assert len(many) <= 65_000 and many.count("<details>") == many.count("</details>") > 0
    assert many.endswith("`--html FILE` holds all of it.</sub>\n")
