from __future__ import annotations

import pytest

from nsys_report.analysis.roofline.ceilings import builtin_table, find_ceilings, parse_overrides, read_table
from nsys_report.errors import InputError, UsageError


def test_gb10_floors_of_published_results() -> None:
    found = find_ceilings("NVIDIA GB10", nominal_bytes_per_s=None)
    assert found.measured is not None and found.nominal is not None
    floors = {
        53.0e9: (227.5, 194.1),  # a 53 GB bf16 decoder
        4.14e9: (17.8, 15.2),  # TinyLlama f32
        2.38e9: (10.2, 8.7),  # Qwen3-0.6B f32
        1.19e9: (5.1, 4.4),  # Qwen3-0.6B bf16
    }
    for count, (measured, nominal) in floors.items():
        assert round(count / found.measured.value * 1e3, 1) == measured
        assert round(count / found.nominal.value * 1e3, 1) == nominal
    assert (found.measured.low, found.measured.high) == (231e9, 234e9)
    assert [found.flops_per_s(t).value for t in ("bf16", "tf32", "f32")] == [70e12, 33e12, 19e12]  # type: ignore[union-attr]
    assert found.flops_per_s("fp8") is None


def test_h200_nominal_comes_from_the_capture() -> None:
    found = find_ceilings("NVIDIA H200", 4_814_304_000_000)
    assert found.nominal is not None and found.nominal.value == 4_814_304_000_000 and found.nominal.kind == "capture"
    assert found.measured is not None and found.measured.value == 4.3e12
    assert "reads plus writes" in found.measured.origin
    assert find_ceilings("NVIDIA H200", None).nominal.value == 4.8e12  # type: ignore[union-attr]


def test_table_wins_where_the_capture_cannot_be_relied_on() -> None:
    assert find_ceilings("NVIDIA GB10", 1).nominal.value == 273e9  # type: ignore[union-attr]


def test_unknown_gpu_has_its_capture_s_figure_and_no_measured_one() -> None:
    found = find_ceilings("NVIDIA Future 9", 10**12)
    assert found.entry is None and found.measured is None
    assert found.nominal is not None and found.nominal.value == 1e12
    assert found.roof is found.nominal
    nothing = find_ceilings("NVIDIA Future 9", 0)
    assert nothing.nominal is None and nothing.roof is None


def test_overrides_come_first_and_say_so() -> None:
    found = find_ceilings("NVIDIA H200", 10**12, parse_overrides(["measured=233", " Nominal = 273", "bf16=70"]))
    assert found.measured is not None and found.nominal is not None
    assert (found.measured.value, found.nominal.value) == (233e9, 273e9)
    assert found.flops_per_s("bf16").value == 70e12  # type: ignore[union-attr]
    assert found.measured.kind == "given"


@pytest.mark.parametrize("text", ["measured", "speed=3", "measured=fast", "measured=0", "nominal=-1", "bf16=inf", "measured=nan"])
def test_bad_overrides_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse_overrides([text])


@pytest.mark.parametrize(
    ("gpu", "entry"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA A100-SXM4-40GB", "A100 40 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80 GB PCIe"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA GH200 480GB", "GH200 (HBM3, 96 GB)"),
        ("NVIDIA GH200 144G HBM3e", "GH200 (HBM3e, 144 GB)"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA Thor", "Jetson AGX Thor"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("", None),
    ],
)
def test_gpus_are_found_by_the_name_in_the_capture(gpu: str, entry: str | None) -> None:
    assert find_ceilings(gpu).entry == entry


def test_every_entry_says_where_its_figures_come_from() -> None:
    for entry in builtin_table():
        for ceiling in (entry.nominal, entry.measured, *(c for _, c in entry.compute)):
            assert ceiling is None or (ceiling.low <= ceiling.value <= ceiling.high and ": " in ceiling.origin)
        assert entry.measured is None or (entry.measured.date and entry.measured.date in entry.measured.origin)


def test_own_table(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "mine.toml"
    path.write_text('[[gpu]]\nname = "Mine"\nmatch = ["Future"]\nmeasured = { gb_per_s = 2, low = 1, high = 3, date = "2026-01" }\n')
    assert find_ceilings("Future 9", table=read_table(path)).measured.high == 3e9  # type: ignore[union-attr]
    path.write_text("[[gpu]]\nname = 3")
    with pytest.raises(InputError):
        read_table(path)
    with pytest.raises(InputError):
        read_table(tmp_path / "absent.toml")
