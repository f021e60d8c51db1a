"""One analyzed capture as text on every surface that people read: the terminal, Markdown, and what of the page is visible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from html.parser import HTMLParser
from pathlib import Path

from nsys_report.notebook import Analysis, analyze
from nsys_report.reports import export, markdown, terminal_page
from nsys_report.reports.build import build_report
from nsys_report.reports.check import check_section
from nsys_report.reports.document import ReportDocument
from nsys_report.reports.html.content import build_page
from nsys_report.reports.html.page import render
from nsys_report.reports.model import Report

FIXTURES = Path(__file__).parent.parent / "fixtures"
UNSEEN = frozenset({"script", "style", "template", "head"})
TIPS = ("title", "aria-label", "alt", "placeholder")
"""Attributes whose text a reader meets."""
EMPTY = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr", "col", "source", "track", "area", "base", "embed", "param"})


class _Visible(HTMLParser):
    """Collects a page's text as a reader sees it, tooltips too; what stands in the glossary is left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._open: list[tuple[str, bool]] = []

    @property
    def _hidden(self) -> bool:
        return any(hidden for _, hidden in self._open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        hidden = tag in UNSEEN or "glossary" in (given.get("class") or "").split()
        if not (hidden or self._hidden):
            self.texts += [text for name in TIPS if (text := given.get(name))]
        if tag not in EMPTY:
            self._open.append((tag, hidden))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.texts.append(data)


def visible_text(page: str) -> str:
    """What a reader of an HTML page sees, a line for each piece of text."""
    parser = _Visible()
    parser.feed(page)
    return "\n".join(" ".join(text.split()) for text in parser.texts)


@dataclass(frozen=True)
class Surfaces:
    """One analysis, and its texts made when they are asked for."""

    name: str
    analysis: Analysis

    @cached_property
    def report(self) -> Report:
        return build_report([self.analysis.named(self.name)], "nsys-report test")

    @cached_property
    def terminal(self) -> str:
        return terminal_page.render(self.report, 120)

    @cached_property
    def full(self) -> str:
        return terminal_page.render(self.report, 200, full=True)

    @cached_property
    def markdown(self) -> str:
        return markdown.render(self.report)

    @cached_property
    def page(self) -> str:
        return visible_text(render(build_page(self.report, [self.analysis.named(self.name)])))

    @cached_property
    def check(self) -> str:
        return terminal_page.render_sections([check_section(self.analysis)], 120)

    @cached_property
    def document(self) -> ReportDocument:
        return export.document(self.report)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Each surface that people read, by name."""
        for surface in ("terminal", "full", "markdown", "page", "check"):
            yield surface, getattr(self, surface)


def surfaces_of(folder: Path) -> Surfaces:
    """The surfaces of a folder that holds a capture, and with it perhaps its dump."""
    dump = folder / "xla_dump"
    return Surfaces(folder.name, analyze(folder / "capture.sqlite", dump if dump.is_dir() else None))


LLM_WORDS = re.compile(r"\btokens?\b|\bkv[ _-]?cache|\bkv_(?:write|gather)|\bKV\b|rotary|prefill|\bdecod(?!ed? by)\w*", re.IGNORECASE)
"""Words of language models that serve."""


@cache
def surfaces_of_fixture(name: str) -> Surfaces:
    """A fixture's surfaces, analyzed once."""
    return surfaces_of(FIXTURES / name)


def serves(analysis: Analysis) -> bool:
    """Whether any program of a capture makes tokens, or prepares to."""
    return any(kind.serves for kind in analysis.joined.kinds.values())


def _own_names(analysis: Analysis) -> set[str]:
    """What people called scopes, in which such a word stands."""
    scopes = {part for name in analysis.joined.facts["op_name"].to_pylist() if name for part in name.split("/")}
    return {scope for scope in scopes if LLM_WORDS.search(scope)}


def llm_lines(surfaces: Surfaces) -> list[tuple[str, str]]:
    """Where a word of language models stands: surface and line. Names from the program and the capture's own are left out."""
    found = []
    names = _own_names(surfaces.analysis)
    for surface, text in surfaces.texts():
        for line in text.splitlines():
            own = re.sub(r"\S*jit[(_]\S*", "", line.replace(surfaces.name, ""))
            for name in names:
                own = own.replace(name, "")
            if LLM_WORDS.search(own):
                found.append((surface, line))
    return found
