"""`modules --instructions`: what a dump alone says that its programs cost."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from nsys_report.analysis.roofline.ceilings import find_ceilings
from nsys_report.cli.modules import command

DUMP = Path(__file__).parents[2] / "fixtures" / "decode" / "xla_dump"


def test_the_instructions_of_a_decoder_read_its_weights_and_take_their_time(tmp_path: Path) -> None:
    out = tmp_path / "i.json"
    result = CliRunner().invoke(
        command, [str(DUMP), "--module", "jit_decode_step", "--instructions", "--gpu", "H200", "--json", str(out)], standalone_mode=False
    )
    assert result.exception is None
    sections = json.loads(out.read_text())["captures"][0]["sections"]
    (rows,) = [s["tables"]["instructions"]["rows"] for s in sections if s["key"] == "instructions"]
    assert sum(row["weight_bytes"] for row in rows) == 735_125_504
    assert {row["launches_per_execution"] for row in rows} == {1}
    head = max(rows, key=lambda row: row["bytes_accessed"])
    assert head["bound"] == "memory"
    assert head["roof_ns"] == head["bytes_accessed"] * 1e9 / 4300e9


def test_a_part_of_a_card_has_none_of_its_ceilings() -> None:
    assert find_ceilings("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 3_350_000_000_000).roof is None


def test_reading_alone_may_be_faster_than_a_copy() -> None:
    found = find_ceilings("NVIDIA H200")
    assert found.measured is not None and found.fastest_bytes_per_s is not None
    assert found.measured.high < 4457e9 < found.fastest_bytes_per_s


def test_cards_have_their_own_entries() -> None:
    names = {"NVIDIA GB200": "GB200", "NVIDIA GB300": "GB300", "NVIDIA B300 SXM6 AC": "B300", "NVIDIA H20": "H20"}
    names |= {"NVIDIA A30": "A30", "Tesla V100-PCIE-16GB": "V100 PCIe", "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada"}
    assert {gpu: find_ceilings(gpu).entry for gpu in names} == names
