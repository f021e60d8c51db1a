"""`nsys-report capture`: a program's run under a stand-in for nsys, from the command line to the report, and each way it can fail."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nsys_report.cli.app import run
from nsys_report.errors import UsageError
from nsys_report.nsys_tool import find_nsys
from nsys_report.profiling.environment import HOOK, RANKS, rank_of, xla_flags
from nsys_report.profiling.gpu import Gate
from nsys_report.profiling.hook.nsys_report_window import LOG, SPEC, Window, bracket, module_name
from nsys_report.profiling.ranks import SIZES, Arrived, size_of, wait_for_ranks
from nsys_report.profiling.window_spec import parse_window

FIXTURES = Path(__file__).parents[2] / "fixtures"
STAND_IN = Path(__file__).with_name("stand_in_nsys.py")
PROGRAM = """
import os, re, shutil, sys
dump = re.search(r"--xla_dump_to=(\\S+)", os.environ["XLA_FLAGS"])[1]
assert os.listdir(dump) == []
shutil.copytree(sys.argv[1], dump, dirs_exist_ok=True)
print("flags", os.environ["XLA_FLAGS"], "cache", os.environ["JAX_ENABLE_COMPILATION_CACHE"])
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
"""


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in under nsys's name, exporting the decoder's capture; a program that leaves the decoder's dump."""
    path = tmp_path / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\n" + STAND_IN.read_text())
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("STAND_IN_EXPORT", str(FIXTURES / "decode/capture.sqlite"))
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false")
    for name in (*RANKS, *SIZES):
        monkeypatch.delenv(name, raising=False)
    return path


def capture(nsys: Path, *options: str, code: str = "0", dump: Path = FIXTURES / "decode/xla_dump") -> int:
    program = [sys.executable, str(nsys.parents[1] / "program.py"), str(dump), code]
    return run(["capture", "--nsys", str(nsys), "--wait", "0", "--no-warm", *options, "--", *program])


def test_from_a_program_to_its_report(nsys: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"
    assert capture(nsys, "--keep", str(kept), "--label", "host=spark", "--json", str(tmp_path / "r.json")) == 0
    out, err = capfd.readouterr()
    assert "jit_decode_step" in out and "label host" in out and "spark" in out
    assert "--window steps=20,skip=10,module=jit_decode_step" in err
    assert f"flags --xla_gpu_enable_triton_gemm=false --xla_dump_to={kept / 'xla_dump'} --xla_dump_hlo_as_text cache false" in err
    assert sorted(p.name for p in kept.iterdir()) == ["capture.nsys-rep", "capture.sqlite", "export.log", "run.json", "run.log", "xla_dump"]
    made = json.loads((kept / "run.json").read_text())
    assert made["xla_flags"] == "--xla_gpu_enable_triton_gemm=false" and made["labels"] == {"host": "spark"} and made["exit_code"] == 0
    assert made["host"] and made["host"] not in (tmp_path / "r.json").read_text()


def test_the_command_is_printed_and_alone_with_dry_run(nsys: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert capture(nsys, "--keep", str(tmp_path / "kept"), "--window", "steps=20,skip=10,module=jit_f", "--dry-run") == 0
    out = capfd.readouterr().out
    assert not (tmp_path / "kept").exists()
    assert "profile --trace=cuda,nvtx --cuda-graph-trace=node --sample=none" in out and "--capture-range=cudaProfilerApi" in out
    assert "NSYS_REPORT_WINDOW=steps=20,skip=10,module=jit_f" in out and "export --type=sqlite" in out


def test_a_run_that_lost_its_cuda_tables_is_repeated_without_nvtx(
    nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAND_IN_FAILS", "strings")
    assert capture(nsys, "--keep", str(tmp_path / "kept")) == 0
    assert "could not import this program's NVTX ranges" in capfd.readouterr().out
    assert json.loads((tmp_path / "kept/run.json").read_text())["traces"] == "cuda"


@pytest.mark.parametrize(
    ("fails", "options", "says"),
    [
        ("library", (), "its importer could not make a report"),
        ("window", ("--window", "range=step"), "the window never opened: the NVTX range step"),
        ("export", (), "nsys export failed with exit code 1"),
    ],
)
def test_each_failure_is_named(
    nsys: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], fails: str, options: tuple[str, ...], says: str
) -> None:
    monkeypatch.setenv("STAND_IN_FAILS", fails)
    assert capture(nsys, *options) == 1
    err = capfd.readouterr().err
    assert says in err and "Traceback" not in err


def test_a_program_that_fails_is_reported_and_said(nsys: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert capture(nsys, code="7") == 1
    assert "the program ended with exit code 7" in capfd.readouterr().out


def test_ranks_have_folders_and_names_of_their_own(
    nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_PROCID", "1")
    assert capture(nsys) == 2
    assert capture(nsys, "--keep", str(tmp_path / "kept")) == 0
    assert (tmp_path / "kept/rank_1/capture_rank1.sqlite").exists()
    assert "jit_decode_step" not in capfd.readouterr().out


def as_rank(monkeypatch: pytest.MonkeyPatch, rank: int) -> Path:
    """The environment of one of two ranks, and its dump."""
    monkeypatch.setenv("SLURM_PROCID", str(rank))
    monkeypatch.setenv("SLURM_NTASKS", "2")
    monkeypatch.setenv("STAND_IN_EXPORT", str(FIXTURES / f"ranks/rank_{rank}/capture.sqlite"))
    return FIXTURES / f"ranks/rank_{rank}/xla_dump"


def test_rank_0_reports_on_all_ranks(
    nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for rank in (1, 0):
        dump = as_rank(monkeypatch, rank)
        assert capture(nsys, "--keep", str(tmp_path / "kept"), "--json", str(tmp_path / f"{rank}.json"), dump=dump) == 0
    out = capfd.readouterr().out
    assert "run of 2 ranks" in out and "RANKS" in out and "THE RUN" in out
    assert not (tmp_path / "1.json").exists()
    (part,) = json.loads((tmp_path / "0.json").read_text())["captures"]
    (ranks,) = [section["tables"]["ranks"]["rows"] for section in part["sections"] if "ranks" in section["tables"]]
    assert [row["rank"] for row in ranks] == [0, 1]


def test_a_rank_that_fails_is_waited_for_no_longer(
    nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = ("--keep", str(tmp_path / "kept"))
    dump = as_rank(monkeypatch, 1)
    monkeypatch.setenv("STAND_IN_FAILS", "export")
    assert capture(nsys, *kept, dump=dump) == 1
    monkeypatch.setenv("STAND_IN_FAILS", "")
    dump = as_rank(monkeypatch, 0)
    assert capture(nsys, *kept, dump=dump) == 1
    out, err = capfd.readouterr()
    assert "rank 1 gave no capture" in err and "jit_train_step" in out and "run of 2 ranks" not in out


def test_who_is_there_is_waited_for(tmp_path: Path) -> None:
    assert [size_of(e) for e in ({"SLURM_NTASKS": "4"}, {"OMPI_COMM_WORLD_SIZE": "2"}, {"WORLD_SIZE": "no"}, {})] == [4, 2, None, None]
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] >= 2:
            (tmp_path / "rank_1").mkdir(exist_ok=True)
            (tmp_path / "rank_1/run.json").write_text("{}")

    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0/run.json").write_text("{}")
    assert wait_for_ranks(tmp_path, 2, 10.0, lambda: clock[0], sleep) == Arrived((0, 1), (), ()) and clock[0] == 2.0
    assert wait_for_ranks(tmp_path, 3, 10.0, lambda: clock[0], sleep) == Arrived((0, 1), (), (2,)) and clock[0] == 12.0


def test_two_passes_are_one_report(nsys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STAND_IN_EXPORT", str(FIXTURES / "serve/capture.sqlite"))
    monkeypatch.setenv("STAND_IN_GRAPH_EXPORT", str(FIXTURES / "graph_2025/capture.sqlite"))
    assert capture(nsys, "--passes", "2", "--keep", str(tmp_path / "kept")) == 0
    assert (tmp_path / "kept/node_pass/run.json").exists() and (tmp_path / "kept/graph_pass/run.json").exists()


def test_a_kept_folder_is_empty_before(nsys: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert capture(nsys, "--keep", str(tmp_path)) == 2
    assert "not empty" in capfd.readouterr().err


def test_no_nsys_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert run(["capture", "--nsys", "/nowhere/nsys", "--", "true"]) == 2
    assert "/nowhere/nsys: no nsys that can be run" in capfd.readouterr().err


def test_versions_and_what_they_cannot_do(nsys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_nsys(nsys).version == (2025, 3, 2)
    monkeypatch.setenv("STAND_IN_VERSION", "2023.4.4.54-234433681190v0")
    old = find_nsys(nsys.parent)
    assert old.name_and_version == "nsys 2023.4.4" and "before 2025" in old.limits()[0]


@pytest.mark.parametrize("written", ["", "steps=0", "steps=x", "skip=3", "range=", "steps=2,twice=3"])
def test_a_window_that_cannot_be_meant_is_refused(written: str) -> None:
    with pytest.raises(UsageError):
        parse_window(written)


def test_windows_become_options() -> None:
    assert parse_window("range=step").options() == ["--capture-range=nvtx", "--nvtx-capture=step@*", "--capture-range-end=stop"]
    assert parse_window("api").options(end_program=True) == ["--capture-range=cudaProfilerApi", "--capture-range-end=stop-shutdown"]
    assert parse_window(None, 3, 0.5).options() == ["--delay=3", "--duration=0.5", "--kill=none"]
    assert parse_window(None).options() == []


def test_flags_are_added_to_and_a_second_dump_refused() -> None:
    assert xla_flags("--a=b --xla_dump_hlo_as_text", Path("D")) == "--a=b --xla_dump_hlo_as_text --xla_dump_to=D"
    with pytest.raises(UsageError):
        xla_flags("--xla_dump_to=elsewhere", Path("D"))


def test_ranks_by_launcher() -> None:
    assert [rank_of(e) for e in ({"SLURM_PROCID": "3"}, {"OMPI_COMM_WORLD_RANK": "0"}, {})] == [3, 0, None]


class Bell:
    """A profiler that notes when it is started and stopped."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def start(self) -> None:
        self.heard.append("start")

    def stop(self) -> None:
        self.heard.append("stop")


def test_the_window_counts_one_program_and_closes_before_the_call_after_its_last_step() -> None:
    bell = Bell()
    window = Window(2, 3, "jit_step", bell)
    for number in range(7):
        window.before("jit_other")
        window.before("jit_step")
        bell.heard.append(str(number))
    assert bell.heard == ["0", "1", "2", "start", "3", "4", "stop", "5", "6"]
    assert window.seen["steps"] == 2


def test_without_a_name_the_first_program_that_has_run_so_often_is_the_one() -> None:
    window = Window(2, 3, "", Bell())
    for name in "abbbb":
        window.before(name)
    assert (window.module, window.state) == ("b", "open")
    window.close()
    assert window.seen["steps"] == 1


def test_items_are_bracketed_also_where_they_end_early() -> None:
    bell = Bell()
    assert [bell.heard.append(item) or item for item in bracket(iter("abcdef"), 2, 1, bell)] == list("abcdef")
    assert bell.heard == ["a", "start", "b", "c", "stop", "d", "e", "f"]
    early = Bell()
    for item in bracket(iter("abc"), 5, 1, early):
        if item == "b":
            break
    assert early.heard[-1:] in (["start"], ["stop"])


def test_programs_are_named_as_xla_names_them() -> None:
    import functools

    def train_step() -> None: ...

    assert module_name(train_step) == "jit_train_step"
    assert module_name(functools.partial(train_step)) == "jit_train_step"
    assert module_name(lambda: None) == "jit__lambda"


class Gauge:
    """Utilization that falls to nothing after some seconds of a clock that only sleeping moves."""

    def __init__(self, busy_s: float) -> None:
        self.time, self.busy_s = 0.0, busy_s

    def utilization(self) -> float:
        return 80.0 if self.time < self.busy_s else 0.0

    def state(self) -> list[dict[str, object]]:
        return []

    def driver(self) -> str:
        return ""

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def now(self) -> float:
        return self.time


def test_the_gate_waits_for_an_idle_gpu_and_gives_up() -> None:
    free, soon, never = (Gauge(busy) for busy in (0, 25, 1e9))
    gates = [Gate(g, g.now, g.sleep) for g in (free, soon, never)]
    found = [gate.wait(120) for gate in gates]
    assert [f.contended for f in found] == [False, False, True]
    assert found[0].waited_s == 0 and 20 <= found[1].waited_s <= 30 and found[2].waited_s >= 120
    assert found[2].summary.startswith("contended: 80 % used")


HOOKED = """
import functools, jax, jax.numpy as jnp

@functools.partial(jax.jit, donate_argnums=0)
def train_step(x, y):
    return inner(x) + y

@jax.jit
def inner(x):
    return x * 2

class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def call(self, x):
        return x + 1

x, model = jnp.ones(8), Model()
for _ in range(12):
    x = train_step(x, 1.0)
    y = inner(model.call(x))
assert jax.vmap(inner)(x).shape == (8,) and jax.grad(lambda v: inner(v).sum())(x).shape == (8,)
train_step.lower(x, 1.0).compile()(x, 1.0)
assert train_step.__name__ == "train_step"
"""


def test_the_hook_counts_executions_of_jax_and_leaves_the_program_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    environment = {**os.environ, "PYTHONPATH": str(HOOK), "JAX_PLATFORMS": "cpu", LOG: str(tmp_path / "{pid}.json")}
    environment[SPEC] = "steps=4,skip=5,module=jit_train_step"
    done = subprocess.run([sys.executable, "-c", HOOKED], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (log,) = tmp_path.iterdir()
    found = json.loads(log.read_text())
    # twelve steps and one of the program compiled ahead; calls within a trace are no executions
    assert found["executions"] == {"jit_train_step": 10, "jit_call": 9, "jit_inner": 9}
    assert (found["window_module"], found["window_state"], found["window"]["steps"]) == ("jit_train_step", "after", 4)
    assert found["compiles"] >= 3 and found["compiles_in_window"] == 0 and found["cache_hits"] == 0
