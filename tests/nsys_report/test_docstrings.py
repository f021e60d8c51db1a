"""Every public name says what it is and shows how it is used; the examples run as they stand."""

from __future__ import annotations

import doctest
import functools
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import nsys_report
from tests.nsys_report.pages import FIXTURES, analyzed

RUN_ELSEWHERE = {"StepBenchmark", "window"}
"""Names whose examples need a GPU: their own tests run them."""


def members() -> Iterator[tuple[str, str]]:
    """Every public name of the package, and of what it gives, with its docstring."""
    for name in sorted(set(nsys_report.__all__) - {"__version__"} - RUN_ELSEWHERE):
        value = getattr(nsys_report, name)
        yield name, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for member in sorted(n for n, v in vars(value).items() if not n.startswith("_") and (callable(v) or isinstance(v, property))):
                yield f"{name}.{member}", inspect.getdoc(getattr(value, member)) or ""


DOCSTRINGS = dict(members())


@functools.cache
def ranks() -> nsys_report.Ranks:
    folders = [FIXTURES / "ranks" / name for name in ("rank_0", "rank_1")]
    return nsys_report.analyze_ranks([f / "capture.sqlite" for f in folders], [f / "xla_dump" for f in folders])


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_a_public_name_has_an_example_that_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("decode/capture.sqlite", "decode/xla_dump", "ranks/rank_0", "ranks/rank_1"):
        (tmp_path / file.split("/")[1]).symlink_to(FIXTURES / file)
    monkeypatch.chdir(tmp_path)
    given = {"nsys_report": nsys_report, "a": analyzed("decode")}
    if name.startswith("Diff."):
        given["d"] = nsys_report.diff(analyzed("decode"), analyzed("decode"))
    if name.startswith("Ranks."):
        given["r"] = ranks()
    test = doctest.DocTestParser().get_doctest(DOCSTRINGS[name], given, name, None, None)
    assert test.examples, f"{name} shows no example"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)
    assert os.getcwd() == str(tmp_path)


def test_completion_offers_what_is_described_and_nothing_else() -> None:
    assert {f"Analysis.{name}" for name in dir(analyzed("decode"))} == {name for name in DOCSTRINGS if name.startswith("Analysis.")}
