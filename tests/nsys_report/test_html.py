"""The page as text: it needs nothing else, runs nothing but its own scripts, and says what the report says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest

from nsys_report.cli import app
from nsys_report.findings.model import Confidence
from nsys_report.reports.budget_page import CATEGORIES
from nsys_report.reports.html import glossary
from nsys_report.reports.html.content import Content, Page, build_page
from nsys_report.reports.html.data import json_markup
from nsys_report.reports.html.hlo_text import hlo_text, origin_lines
from nsys_report.reports.html.page import SCRIPTS, render
from nsys_report.reports.model import Report
from nsys_report.reports.pictures.model import Pictures
from nsys_report.units import visible
from tests.nsys_report.pages import FIXTURES, HOSTILE, analyzed, hostile_capture, html_of, page_of, with_hostile_names
from tests.nsys_report.sample_report import report


class Read(HTMLParser):
    """What a browser would find in a page: elements with their attributes, the text of scripts, the text of table cells."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.cells: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag in ("td", "th"):
            self.cells.append("")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif "style" not in self._open:
            self.words.append(data)
            if "td" in self._open or "th" in self._open:
                self.cells[-1] += data

    @property
    def data(self) -> Any:
        return json.loads(next(text for attrs, text in self.scripts if attrs.get("id") == "page-data"))


def test_the_page_fetches_nothing() -> None:
    read = Read(html_of("decode"))
    links = [value for _, attrs in read.elements for name, value in attrs.items() if name in ("src", "href", "action", "data", "srcset")]
    assert links and all(link is not None and link.startswith("#") for link in links)
    assert not any(tag in ("link", "img", "iframe", "object", "embed", "base") for tag, _ in read.elements)
    style = re.search(r"<style>(.*?)</style>", html_of("decode"), re.DOTALL)
    assert style is not None and "url(" not in style[1] and "@import" not in style[1]


def test_the_policy_lets_the_pages_own_scripts_run_and_nothing_else() -> None:
    read = Read(html_of("decode"))
    policy = next(str(attrs["content"]) for tag, attrs in read.elements if tag == "meta" and "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy and "connect-src" not in policy
    own = [text for attrs, text in read.scripts if "type" not in attrs]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in own]
    assert len(own) == len(SCRIPTS)
    assert re.search(r"script-src (.*?);", policy)[1].split() == hashes  # type: ignore[index]
    handlers = [name for _, attrs in read.elements for name in attrs if name.startswith("on")]
    assert handlers == []


def test_the_same_capture_gives_the_same_page() -> None:
    assert html_of("decode") == render(page_of(("decode", analyzed("decode"))))


def test_every_figure_of_the_report_stands_in_its_table() -> None:
    analysis = analyzed("decode")
    cells = set(Read(html_of("decode")).cells)
    for section in analysis.report().parts[0].sections:
        for table in section.tables:
            if table.key.startswith("rollup_") and table.key != "rollup_name":
                continue  # drawn by the page's script from its own data
            shown = [i for i, column in enumerate(table.columns) if column.drop_rank < 7]
            for row in table.rows:
                texts = table.texts(row)
                missing = [texts[i] for i in shown if texts[i] not in cells and any(r.values[i] not in (None, "") for r in table.rows)]
                assert missing == [], (section.title, table.title)


def test_ids_are_unique_and_every_link_within_the_page_leads_somewhere() -> None:
    for name in ("decode", "torch_mlp", "threads"):
        read = Read(html_of(name))
        ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        targets = [str(v)[1:] for _, attrs in read.elements for key, v in attrs.items() if key == "href"]
        assert set(targets) <= set(ids)
        labels = [v for _, attrs in read.elements if (v := attrs.get("aria-labelledby"))]
        assert set(labels) <= set(ids)


def test_the_page_opens_on_the_answer() -> None:
    words = [w.strip() for w in Read(html_of("decode")).words if w.strip()]
    text = "\n".join(words)
    assert text.index("jit_decode_step on NVIDIA H200") < text.index("a step of jit_decode_step") < text.index("Findings\n", 300)
    assert text.index("Timeline\n", 400) < text.index("Programs\n", 600) < text.index("How it was made", 900)


def test_the_answer_says_what_to_look_at_first_and_leads_there() -> None:
    text = html_of("decode")
    answer = text[text.index('class="card answer"') : text.index('id="p0-findings"')]
    assert '<b>Look here first:</b> <a href="#p0-f0">' in answer and 'href="#words"' in answer
    assert "of the GPU busy" in html_of("torch_mlp") and "of the GPU busy" not in text


def test_every_part_of_a_step_is_explained() -> None:
    assert glossary.PARTS.keys() == CATEGORIES.keys()
    assert set(CATEGORIES.values()) <= {term for term, _ in glossary.TERMS}
    assert set(glossary.CERTAINTY) == set(get_args(Confidence))


def test_only_the_page_of_a_program_with_a_cache_explains_its_classes() -> None:
    explained = {name: html_of(name)[html_of(name).index('id="words"') :] for name in ("decode", "train", "torch_mlp")}
    assert [name for name, text in explained.items() if "kv_write" in text or "keys and values" in text] == ["decode"]


def test_no_line_ends_within_a_figure_or_a_flag() -> None:
    said = glossary.prose("15.4 % of 3.07 ms, <b> 1.04 GB in 2026-11: --xla-dump DIR; jit-step 12 MBs and -t cuda")
    assert said == (
        "15.4\N{NO-BREAK SPACE}% of 3.07\N{NO-BREAK SPACE}ms, &lt;b&gt; 1.04\N{NO-BREAK SPACE}GB in "
        '<span class="tied">2026-11</span>: <span class="tied">--xla-dump</span> DIR; jit-step 12 MBs and <span class="tied">-t</span> cuda'
    )
    assert glossary.prose(None) == "" and glossary.prose("a\x1b[0m") == "a\\x1b[0m"


def test_a_capture_without_xla_has_its_activities_and_nothing_empty() -> None:
    read = Read(html_of("torch_mlp"))
    data = read.data
    assert data["rooflines"] == {} and data["timelines"]["p0-time"]["runs"] is None
    assert sum(len(row["start"]) for row in data["timelines"]["p0-time"]["rows"] if row["kind"] == "stream") == 102
    assert "102 GPU activities in 4.49 ms" in "".join(read.words)


def test_instructions_have_their_text_and_source() -> None:
    data = Read(html_of("decode")).data
    key, details = next((k, d) for k, d in data["details"].items() if "operation" in d["labels"])
    name = details["names"][0]
    text = data["hlo"][key.rsplit("-", 1)[0]][name]
    assert text.startswith(f"%{name} = f32[1,32000]") and "metadata" not in text and "\n" in text
    assert re.fullmatch(r"\S+\.py:\d+", details["rows"][0][details["labels"].index("source")])


def test_the_text_of_an_instruction_holds_what_it_calls() -> None:
    program = next(p for p in analyzed("decode").joined.programs.values() if p.name == "jit_decode_step")
    assert program.module is not None
    fusion = next(i for i in program.module.entry.instructions if i.opcode == "fusion")
    text = hlo_text(program.module, fusion.name)
    assert text is not None
    assert text.splitlines()[2] == f"{fusion.called[0]} {{" and text.endswith("}")
    assert hlo_text(program.module, "not there") is None


def test_hostile_names_are_text(tmp_path: Path) -> None:
    analysis = with_hostile_names(analyzed("threads"))
    page = render(page_of((f"{HOSTILE}.sqlite", analysis)))
    read, plain = Read(page), Read(html_of("threads"))
    assert len(read.scripts) == len(plain.scripts) == len(SCRIPTS) + 1
    assert not any(tag == "img" for tag, _ in read.elements)
    assert not any(name.startswith("on") for _, attrs in read.elements for name in attrs)
    shown = visible(HOSTILE)
    assert f"jit_right{shown}" in "".join(read.words)
    assert any(cell.startswith("gemm_fusion_dot") and cell.endswith(shown) for cell in read.cells)
    assert "\u202e" not in page and "\u0007" not in page and "\\u202e" in page
    data = read.data
    looks = [look for look in data["timelines"]["p0-time"]["looks"] if look[2]]
    assert looks and all(shown in name for name, _, _, instruction, *_ in looks if instruction)
    assert "49" not in json.dumps(looks[0][0]).replace(shown, "")


@pytest.mark.parametrize("name", ["decode_nocb", "torch_mlp"])
def test_a_hostile_capture_and_dump_make_a_page(tmp_path: Path, name: str) -> None:
    made = hostile_capture(tmp_path, name)
    out = tmp_path / "page.html"
    dump = ["--xla-dump", str(made / "xla_dump")] if (made / "xla_dump").is_dir() else []
    assert app.run([str(made / "capture.sqlite"), *dump, "--html", str(out)]) == 0
    read = Read(out.read_text(encoding="utf-8"))
    assert len(read.scripts) == len(SCRIPTS) + 1 and not any(tag == "img" for tag, _ in read.elements)
    shown = visible(HOSTILE)
    assert f"on NVIDIA H200 {shown}"[:100] in "".join(read.words)  # names of devices are cut
    details = [text for one in read.data["details"].values() for row in one["rows"] for text in row]
    assert any(shown in text for text in (details if dump else read.cells))


def test_json_in_the_page_holds_no_markup() -> None:
    text = str(json_markup({"</script>": ["<!--", "&", "\u2028", "\ud800"]}))
    assert not set(text) & set("<>&") and text.isascii()
    assert json.loads(text) == {"</script>": ["<!--", "&", "\u2028", "\ud800"]}


def test_a_page_of_several_captures_has_a_part_each_and_a_summary() -> None:
    read = Read(render(page_of(("one", analyzed("decode")), ("two", analyzed("torch_mlp")))))
    headings = "".join(read.words)
    assert "2 captures" in headings and "How it was made" in headings
    ids = {attrs.get("id") for _, attrs in read.elements}
    assert {"summary", "p0", "p1", "p0-time", "p1-time"} <= ids


def test_a_program_of_twenty_thousand_instructions_makes_a_small_page() -> None:
    names = tuple(f"fusion.{i}" for i in range(20_000))
    part = replace(report(names).parts[0], name="long")
    text = render(Page(Report((part,)), (Content(part, Pictures("long", None, ())),)))
    assert len(text) < 2_500_000 and "The first 1,200 of 20,000 rows; --csv and --json have them all." in text
    assert len(Read(text).data["details"]["p0-s1-t0"]["names"]) == 1_200


def test_an_empty_report_is_a_page() -> None:
    assert "<main" in render(build_page(Report((), made_by="test"), []))


@pytest.mark.parametrize("name", sorted(p.parent.name for p in FIXTURES.glob("*/capture.sqlite")))
def test_every_fixtures_page_is_small(name: str) -> None:
    assert len(html_of(name).encode()) < 4_000_000


def test_an_instruction_opens_what_it_came_of_before_the_passes() -> None:
    from hlo_mapping import find_origins, index_dump, read_before

    program = index_dump(FIXTURES / "decode/xla_dump").load(21184)
    before = read_before(program)
    assert before is not None and program.module is not None
    lines = list(origin_lines(find_origins(before, program.module), "loop_multiply_fusion.19"))
    # the fusion that multiplies by layer 0's q_proj, of which a reduction makes the product: in the program it is one dot
    assert any("dot(%mul.331, %params__layers___0___q_proj__.1)" in line for line in lines) and "alike" not in lines[2]
    assert list(origin_lines(find_origins(before, program.module), "not there")) == []
