"""Assertions over the report's figures: the language, what they answer, and the files for CI."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import check_jsonschema
import jsonschema
import pytest
import yaml

from nsys_report import Analysis, analyze
from nsys_report.assertions.files import read_assertions
from nsys_report.assertions.judging import judge
from nsys_report.assertions.language import Bound, FindingIs, parse
from nsys_report.assertions.names import ReportNames, names_of
from nsys_report.cli.app import run
from nsys_report.errors import InputError, UsageError
from nsys_report.findings.slugs import SLUGS

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def decode(fixture_path: Callable[..., Path]) -> Analysis:
    return analyze(fixture_path("decode", "capture.sqlite"), fixture_path("decode", "xla_dump"))


@pytest.fixture(scope="module")
def names(decode: Analysis) -> ReportNames:
    return names_of(decode)


@pytest.mark.parametrize(
    ("text", "claim", "program"),
    [
        ("host_gap_ns < 200us", Bound("host_gap_ns", "<", 200_000.0, "us"), None),
        ("step_ns<=1.5 ms", Bound("step_ns", "<=", 1_500_000.0, "ms"), None),
        ("weights.share_of_measured >= 90%", Bound("weights.share_of_measured", ">=", 0.9, "%"), None),
        ("weights.bytes_accessed == 1_468 MB", Bound("weights.bytes_accessed", "==", 1.468e9, "MB"), None),
        ("kernels( jit_step ) != 162", Bound("kernels(jit_step)", "!=", 162.0, ""), None),
        ("jit_step#7: tokens_per_s > 4e2", Bound("tokens_per_s", ">", 400.0, ""), "jit_step#7"),
        ("no finding(cache-copied)", FindingIs("cache-copied", False), None),
        ("jit_step: finding(launch-bound)", FindingIs("launch-bound", True), "jit_step"),
    ],
)
def test_what_is_written_is_understood(text: str, claim: Bound | FindingIs, program: str | None) -> None:
    found = parse(text)
    assert found.claim == claim and found.program == program


@pytest.mark.parametrize("text", ["", "host_gap_ns", "host_gap_ns <", "< 3", "step_ns < 3 parsecs", "step_ns < 3 GB", "finding()", "a ~ 3"])
def test_what_is_no_assertion_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert raised.value.hint


def test_figures_are_those_of_the_report(decode: Analysis, names: ReportNames) -> None:
    """Values of the JSON's keys; 162 kernels and 735,051,776 bytes of weights and more are on paper."""
    module = decode.modules.iloc[0]
    assert names.figure("host_gap_ns", None) == module.host_gap_ns
    assert names.figure("kernels(jit_decode_step)", None) == 162
    assert names.figure("executions(jit_decode_step)", None) == 10
    classes = decode.classes
    weights = classes[(classes.hlo_module == "jit_decode_step") & (classes.kernel_class == "weights")].iloc[0]
    assert names.figure("weights.share_of_measured", None) == weights.share_of_measured
    assert names.figure("weights.bytes_accessed", "jit_decode_step") == weights.bytes_accessed
    assert names.figure("capture.kernels", None) == 1620
    assert names.figure("findings", None) == len(decode.causes)
    budget = decode.budget
    host = budget[(budget.hlo_module == "jit_decode_step") & (budget.category == "host")].typical_ns.sum()
    assert names.figure("budget.host", None) == pytest.approx(host)
    assert names.figure("budget.compile", None) == 0.0


def test_answers_hold_or_not(names: ReportNames) -> None:
    texts = ["kernels(jit_decode_step) == 162", "kernels(jit_decode_step) > 162", "joined_share >= 99%", "host_gap_ns < 1 ns"]
    answers = judge(names, [parse(text) for text in texts], "decode")
    assert [answer.holds for answer in answers] == [True, False, True, False]
    slugs = {slug for slug, _ in names.findings}
    absent = sorted(SLUGS - slugs)[0]
    there = sorted(slugs & SLUGS)[0]
    claims = [f"no finding({absent})", f"finding({absent})", f"finding({there})", f"no finding({there})"]
    assert [a.holds for a in judge(names, [parse(c) for c in claims], "x")] == [True, False, True, False]


def test_what_is_unknown_fails_and_is_no_wrong_use(fixture_path: Callable[..., Path]) -> None:
    """Without a dump no class is known: the assertion cannot hold."""
    names = names_of(analyze(fixture_path("decode", "capture.sqlite")))
    answer = judge(names, [parse("weights.share_of_measured < 2")], "decode")[0]
    assert not answer.holds and answer.value is None and answer.found == "unknown"


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("host_gap < 1", "host_gap_ns"),
        ("wieghts.share_of_measured > 1", "weights.share_of_measured"),
        ("jit_decode_stepp: step_ns < 1", "jit_decode_step"),
        ("kernels(jit_decode) == 1", "jit_decode_step"),
        ("no finding(cache-copid)", "cache-copied"),
    ],
)
def test_unknown_names_are_wrong_use_with_suggestions(names: ReportNames, text: str, suggestion: str) -> None:
    with pytest.raises(UsageError) as raised:
        judge(names, [parse(text)], "decode")
    assert suggestion in raised.value.hint and text in raised.value.message


def test_of_several_programs_one_must_be_named(fixture_path: Callable[..., Path]) -> None:
    names = names_of(analyze(fixture_path("threads", "capture.sqlite"), fixture_path("threads", "xla_dump")))
    with pytest.raises(UsageError, match="several programs"):
        names.figure("host_gap_ns", None)
    assert names.figure("kernels(jit_left)", None) == 8
    assert names.figure("kernels_per_execution", "jit_right") == 12


def test_the_command_its_files_and_its_exit_code(
    fixture_path: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml, xml, summary = tmp_path / "a.toml", tmp_path / "a.xml", tmp_path / "summary.md"
    toml.write_text('[[assert]]\nname = "gap <1>"\nprogram = "jit_decode_step"\nthat = "host_gap_ns < 1 ns"\n', encoding="utf-8")
    summary.write_text("before\n", encoding="utf-8")
    check = ["check", str(fixture_path("decode", "capture.sqlite")), "--xla-dump", str(fixture_path("decode", "xla_dump"))]
    good = ["--assert", "kernels(jit_decode_step) == 162"]
    assert run([*check, *good]) == 0
    assert run([*check, *good, "--assertions", str(toml), "--junit", str(xml), "--summary", str(summary)]) == 3
    assert "✗ gap <1>: host_gap_ns < 1 ns: " in capsys.readouterr().out
    root = ElementTree.fromstring(xml.read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = {case.get("name"): case.find("failure") for case in root.iter("testcase")}
    assert cases["kernels(jit_decode_step) == 162"] is None and cases["gap <1>"] is not None
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## 1 of 2 assertions hold") and "`host_gap_ns < 1 ns`" in text
    assert run([*check, "--assert", "host_gap < 1"]) == 2
    assert run([*check, "--junit", str(xml)]) == 2


def test_files_of_assertions_that_are_none(tmp_path: Path) -> None:
    for text, error in (
        ("a = ", InputError),
        ("", UsageError),
        ("[[assert]]\nthat = 3\n", UsageError),
        ("[[assert]]\nthis = 'x'\n", UsageError),
    ):
        path = tmp_path / "a.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(error):
            read_assertions(path)
    with pytest.raises(InputError):
        read_assertions(tmp_path / "absent.toml")


def test_every_slug_of_the_rules_can_be_asked_for() -> None:
    literal = re.compile(r'slug="([a-z]+(?:-[a-z]+)*)"')
    found = {
        slug for path in (ROOT / "nsys_report" / "findings").rglob("*.py") for slug in literal.findall(path.read_text(encoding="utf-8"))
    }
    assert found <= SLUGS


def test_the_example_for_github_actions_is_a_valid_workflow() -> None:
    schema = json.loads((files(check_jsonschema) / "builtin_schemas" / "vendor" / "github-workflows.json").read_text(encoding="utf-8"))
    workflow = yaml.load((files("nsys_report.assertions") / "github-actions.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    jsonschema.validate(_typed(workflow), schema)
    steps = [step["run"] for step in workflow["jobs"]["decode"]["steps"] if "run" in step]
    assert any("nsys-report check" in step and "--summary" in step for step in steps)


def _typed(value: object, key: str = "") -> object:
    """YAML 1.2 as GitHub reads it: `on` is a word, numbers are numbers."""
    if isinstance(value, dict):
        return {k: _typed(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_typed(v) for v in value]
    return int(value) if key == "timeout-minutes" and isinstance(value, str) else (value or None)
