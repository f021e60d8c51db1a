"""Served models: workloads and logs as written, a real server under load, and a log laid over executions at times worked out by hand."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from nsys_report import analyze
from nsys_report.capture.session import SessionStart, read_session_start
from nsys_report.cli.app import run
from nsys_report.errors import InputError, UsageError
from nsys_report.serving.calls import join_calls, wait_behind
from nsys_report.serving.drivers import Request
from nsys_report.serving.findings import serving_findings
from nsys_report.serving.load import figures, server_times
from nsys_report.serving.prompts import tensor
from nsys_report.serving.timeline import CallLog, read_timeline
from nsys_report.serving.workloads import Workload, parse_workload, parse_workloads

SERVER = Path(__file__).with_name("v2_server.py")
FIXTURES = Path(__file__).parents[2] / "fixtures"


def test_workloads_by_their_written_form() -> None:
    assert parse_workload("decode:512:64:8") == Workload("decode:512:64:8", 512, 64, 1, 8)
    assert parse_workload("decode:512:64").streams == 1
    assert parse_workload("prefill:256:4") == Workload("prefill:256:4", 256, 1, 4, 1)
    assert parse_workload("prompts:128:10:4") == Workload("prompts:128:10:4", 128, 16, 10, 4)


@pytest.mark.parametrize("written", ["", "decode", "decode:0:4", "prefill:1:2:3", "prompts:1:2", "decode:١:4", "decode:1:4:99999999"])
def test_other_forms_are_refused(written: str) -> None:
    with pytest.raises(UsageError):
        parse_workload(written)


def test_streams_may_be_several() -> None:
    assert [w.written for w in parse_workloads("decode:512:64:1,2,4")] == ["decode:512:64:1", "decode:512:64:2", "decode:512:64:4"]
    assert len(parse_workloads("prefill:8:2")) == 1
    with pytest.raises(UsageError):
        parse_workloads("decode:512:64:1,,4")


def test_tensors_are_as_the_metadata_says() -> None:
    ids = tensor({"name": "ids", "datatype": "INT64", "shape": [-1, -1]}, 0, 0, 5)
    assert (ids["shape"], len(ids["data"]), set(ids["data"]) <= {0, 1}) == ([1, 5], 5, True)
    assert tensor({"name": "x", "datatype": "FP32", "shape": [-1, 3]}, 0, 0, 5)["shape"] == [1, 3]
    assert tensor({"name": "text", "datatype": "BYTES", "shape": [1]}, 2, 7, 3)["data"] == ["2.7 the the "]
    with pytest.raises(ValueError, match="FP16"):
        tensor({"name": "half", "datatype": "FP16", "shape": [1]}, 0, 0, 1)
    with pytest.raises(ValueError, match="values"):
        tensor({"name": "large", "datatype": "FP32", "shape": [1, 2**30]}, 0, 0, 1)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.mark.parametrize("driver", ["kserve", "openai"])
def test_a_server_is_started_loaded_and_ended(driver: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    port, target = free_port(), tmp_path / "r.json"
    options = ["--server", f"{sys.executable} {SERVER} {port} {tmp_path / 'calls.log'}", "--url", f"http://127.0.0.1:{port}"]
    load = ["--workload", "decode:8:5:3", "--workload", "prompts:4:2:2", "--repeats", "2", "--wait", "0", "--ready", "60"]
    assert run(["serve-profile", *options, "--model", "small", "--driver", driver, *load, "--json", str(target)]) == 0
    out = capfd.readouterr().out
    assert "WHAT CLIENTS SAW" in out
    assert ("each piece of an answer is taken for one" in out) == (driver == "kserve")
    # two repeats of three streams and five tokens; two repeats of two streams, two rounds and sixteen tokens
    (part,) = json.loads(target.read_text())["captures"]
    rows = part["sections"][0]["tables"]["load"]["rows"]
    assert [(row["requests"], row["failed"], row["tokens"]) for row in rows] == [(6, 0, 30), (8, 0, 128)]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    calls = read_timeline(tmp_path / "calls.log")  # with NUL bytes at its lines' ends
    assert calls.skipped == 0 and {call.program for call in calls.calls} == {"prefill", "decode"}


def test_any_model_is_asked_with_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("V2_SERVER_MODEL", "numpy")
    port, target = free_port(), tmp_path / "r.json"
    options = ["--server", f"{sys.executable} {SERVER} {port}", "--url", f"http://127.0.0.1:{port}", "--model", "small", "--wait", "0"]
    asked = ["serve-profile", *options, "--driver", "infer"]
    assert run([*asked, "--workload", "prompts:4:3:1,2", "--repeats", "1", "--json", str(target)]) == 0
    (part,) = json.loads(target.read_text())["captures"]
    rows = part["sections"][0]["tables"]["load"]["rows"]
    # one and two streams of three requests; a tensor is no token
    assert [(row["streams"], row["requests"], row["failed"], row["tokens"]) for row in rows] == [(1, 3, 0, None), (2, 6, 0, None)]
    assert all(row["requests_per_s"] > 0 and row["tokens_per_s"] is None for row in rows)
    assert run([*asked, "--workload", "decode:4:3"]) == 2


def test_a_request_takes_the_users_own_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("V2_SERVER_MODEL", "numpy")
    port, target, kept = free_port(), tmp_path / "r.json", tmp_path / "kept"
    options = ["--server", f"{sys.executable} {SERVER} {port}", "--url", f"http://127.0.0.1:{port}", "--model", "small", "--wait", "0"]
    asked = ["serve-profile", *options, "--workload", "decode:4:9", "--repeats", "1", "--keep", str(kept), "--json", str(target)]
    assert run([*asked, "--request", '{"max_tokens": 2}']) == 0
    (part,) = json.loads(target.read_text())["captures"]
    assert part["sections"][0]["tables"]["load"]["rows"][0]["tokens"] == 2
    record = json.loads((kept / "run.json").read_text())
    assert record["workload"] == ["decode:4:9"] and record["contended"] is None
    assert run([*asked, "--request", "[1]"]) == 2


@pytest.mark.parametrize("fails", ["", "strings"])
def test_the_first_repeat_is_recorded_under_nsys(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nsys = tmp_path / "nsys"
    nsys.write_text(f"#!{sys.executable}\n" + SERVER.with_name("stand_in_nsys.py").read_text())
    nsys.chmod(0o755)
    monkeypatch.setenv("STAND_IN_EXPORT", str(FIXTURES / "decode/capture.sqlite"))
    monkeypatch.setenv("STAND_IN_FAILS", fails)
    monkeypatch.setenv("STAND_IN_SESSION", str(tmp_path / "session"))
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("V2_SERVER_MODEL", "numpy")  # a dump of programs for a CPU is none of a GPU's capture
    port, kept = free_port(), tmp_path / "kept"
    options = ["--server", f"{sys.executable} {SERVER} {port}", "--url", f"http://127.0.0.1:{port}", "--model", "small", "--wait", "0"]
    recorded = ["--mode", "nsys", "--nsys", str(nsys), "--keep", str(kept), "--workload", "decode:4:3:2", "--repeats", "1"]
    assert run(["serve-profile", *options, *recorded]) == 0
    out, err = capfd.readouterr()
    assert "WHAT CLIENTS SAW" in out and "jit_decode_step" in out and ("without NVTX" in err) == bool(fails)
    assert (kept / "capture.sqlite").exists() and (kept / "server.log").exists()


def test_a_server_that_ends_is_said_with_what_it_printed(capfd: pytest.CaptureFixture[str]) -> None:
    words = f"{sys.executable} -c \"print('no model'); raise SystemExit(3)\""
    options = ["--server", words, "--url", f"http://127.0.0.1:{free_port()}", "--model", "m", "--workload", "decode:1:1", "--wait", "0"]
    assert run(["serve-profile", *options]) == 1
    err = capfd.readouterr().err
    assert "the server ended with exit code 3 before it was ready" in err and "no model" in err


def test_options_come_from_a_file_and_unknown_ones_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('model = "small"\nwrong = 1\n')
    assert run(["serve-profile", "--config", str(file)]) == 2
    assert "wrong is not known" in capfd.readouterr().err
    file.write_text('model = "small"\n')
    assert run(["serve-profile", "--config", str(file)]) == 2
    assert "there is nothing to ask" in capfd.readouterr().err


@pytest.mark.parametrize(
    "line",
    ["workload = 5", "workload = [5]", "repeats = 0", "repeats = true", 'ready = "soon"', 'driver = "http"', "url = 8000", "request = 1"],
)
def test_a_value_of_the_file_that_its_option_does_not_take_is_refused(line: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(f"{line}\n")
    assert run(["serve-profile", "--config", str(file), "--workload", "decode:4:4", "--model", "small"]) == 2
    said = capfd.readouterr().err
    assert f"serve.toml: {line.split(' ')[0]} = " in said and ": it takes " in said


def test_figures_of_two_streams() -> None:
    # stream 0: sent at 0, pieces at 10, 20, 40; stream 1: sent at 5, pieces at 25, 35, 45; all done at 45
    answered = [Request(0, 0, (10, 20, 40), 40, 3, False), Request(1, 5, (25, 35, 45), 45, 3, False)]
    found = figures(parse_workload("decode:1:3:2"), [[*answered, Request(1, 0, (), 1, 0, False, "status 500: no")]])
    assert (found.requests, found.failed, found.tokens, found.wall_ns) == (3, 1, 6, 45)
    assert found.tokens_per_s == pytest.approx(6e9 / 45)
    assert (found.first_token.p50, found.between_tokens.p50, found.latency.p50) == (15, 10, 40)
    assert found.failures == ("status 500: no",)


def test_server_times_are_differences_and_of_a_request() -> None:
    def stats(count: int, queue: int, compute: int, executions: int, batches: dict[int, int]) -> dict[str, object]:
        sums = {"success": {"count": count}, "queue": {"count": count, "ns": queue}, "compute_infer": {"ns": compute}}
        sizes = [{"batch_size": size, "compute_infer": {"count": n}} for size, n in batches.items()]
        return {"execution_count": executions, "inference_stats": sums, "batch_stats": sizes}

    found = server_times(stats(10, 1000, 5000, 10, {1: 10}), stats(18, 5000, 13000, 12, {1: 10, 4: 2}))
    assert found is not None
    assert (found.requests, found.executions, found.queue_ns, found.compute_ns, found.mean_batch) == (8, 2, 500, 1000, 4)
    assert found.batch_sizes == {4: 2}
    assert server_times(None, {}) is None


TEXT = "call 17 decode rows=4 arrived=12.031250,12.031300,12.032100,12.034000 started=12.034120 finished=12.051900\0\n"


def test_both_forms_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT + "I0101 server started\n")
    found = read_timeline(tmp_path / "text")
    assert (found.clock, found.skipped, found.calls[0].rows, found.calls[0].started_ns) == ("monotonic", 1, 4, 12_034_120_000)
    line = {"call": 1, "program": "p", "rows": 1, "arrived_ns": [5], "started_ns": 6, "finished_ns": 9, "clock": "realtime"}
    (tmp_path / "json").write_text(json.dumps(line) + "\0\n" + json.dumps({**line, "call": 2, "finished_ns": 3}) + "\n")
    found = read_timeline(tmp_path / "json")
    assert (found.clock, found.skipped, len(found.calls)) == ("realtime", 1, 1)


@pytest.mark.parametrize("text", ["", "nothing here\n", "[1]\n", '{"call": 1}\n', '{"call": ' + "[" * 5000])
def test_a_log_without_a_call_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    with pytest.raises(InputError):
        read_timeline(tmp_path / "log")


def timeline(tmp_path: Path, *calls: tuple[str, int, list[int], int, int]) -> CallLog:
    lines = [
        json.dumps({"call": n, "program": p, "rows": r, "arrived_ns": a, "started_ns": s, "finished_ns": f, "clock": "realtime"})
        for n, (p, r, a, s, f) in enumerate(calls)
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    return read_timeline(tmp_path / "log")


def executions(*spans: tuple[int, int]) -> pa.Table:
    return pa.table({"execution_id": range(len(spans)), "start_ns": [a for a, _ in spans], "end_ns": [b for _, b in spans]})


SESSION = SessionStart(1000, None)


def test_a_call_falls_into_its_parts(tmp_path: Path) -> None:
    # in the session's time: arrived at 100 and 120, started at 150, executions 160-180 and 185-200, finished 210; the next begins at 260
    log = timeline(tmp_path, ("decode", 2, [1100, 1120], 1150, 1210), ("decode", 1, [1240], 1250, 1300))
    joined = join_calls(log, executions((160, 180), (185, 200), (260, 290)), SESSION)
    first = joined.calls[0]
    assert (first.batching_ns, first.queueing_ns, first.before_ns, first.device_ns, first.after_ns) == (20, 30, 10, 35, 10)
    assert (first.idle_after_ns, first.executions, first.latency_ns, first.between_ns) == (60, (0, 1), 110, 5)
    assert first.row_batching_ns == [20, 0]
    # the log may move by -10 (call 1 ends at 290) to +10 (both first executions)
    assert (joined.shift_ns, joined.error_ns, joined.outside) == (0, 10.0, 0)


def test_parts_of_a_row_add_up_to_its_latency(tmp_path: Path) -> None:
    # the execution outlasts its call, and the second row arrives while the call runs already
    log = timeline(tmp_path, ("decode", 2, [1100, 1160], 1150, 1210), ("decode", 1, [], 1250, 1300))
    joined = join_calls(log, executions((160, 240), (255, 290)), SESSION)
    first, second = joined.calls
    parts = (first.queueing_ns, first.before_ns, first.device_ns, first.between_ns, first.after_ns)
    assert parts == (0, 10, 50, 0, 0) and first.batching_ns == 50
    assert first.latency_ns == 110 == first.batching_ns + sum(part or 0 for part in parts)
    assert (second.batching_ns, second.queueing_ns, second.latency_ns, second.row_batching_ns) == (None, None, None, [])


def test_executions_within_two_calls_at_once_are_said(tmp_path: Path) -> None:
    log = timeline(tmp_path, ("a", 1, [1100], 1100, 1200), ("b", 1, [1120], 1120, 1180))
    assert join_calls(log, executions((110, 115), (130, 140), (190, 195)), SESSION).shared == 1


def test_a_log_whose_clock_is_off_is_moved_into_the_room_that_executions_leave(tmp_path: Path) -> None:
    log = timeline(tmp_path, ("decode", 1, [1100], 1170, 1215))
    joined = join_calls(log, executions((160, 200)), SESSION)
    assert (joined.shift_ns, joined.error_ns) == (-10, 2.5)
    assert joined.calls[0].before_ns == 0


def test_calls_outside_the_window_are_counted(tmp_path: Path) -> None:
    log = timeline(tmp_path, ("decode", 1, [1001], 1002, 1010), ("decode", 1, [1100], 1150, 1210))
    assert join_calls(log, executions((160, 200)), SESSION).outside == 1
    with pytest.raises(InputError):
        join_calls(log, executions((160, 200)), SessionStart(None, 5))


def test_what_serving_loses(tmp_path: Path) -> None:
    # a prefill of 100 ns; two decodes arrived meanwhile, and run one after the other with one row each, 30 ns apart
    decodes = [("decode", 1, [1110], 1200, 1210), ("decode", 1, [1120], 1240, 1250), ("decode", 1, [1300], 1300, 1310)]
    log = timeline(tmp_path, ("prefill", 1, [1100], 1100, 1200), *decodes)
    joined = join_calls(log, executions((102, 198), (202, 208), (242, 248), (302, 308)), SESSION)
    assert wait_behind(joined.calls) == {"prefill": 90 + 80}
    found = serving_findings(joined.calls)
    assert next(f for f in found if f.slug == "queue-behind-program").remedy.startswith("Cut prefill into smaller calls")
    assert {f.slug for f in found} == {"queue-behind-program", "batches-of-one", "gaps-between-calls"}


def test_session_starts_are_read_where_a_capture_says_them() -> None:
    assert read_session_start(FIXTURES / "decode/capture.sqlite").realtime_ns is None


def test_each_call_of_a_real_log_holds_the_execution_that_it_made() -> None:
    served = FIXTURES / "served"
    analysis = analyze(served / "capture.sqlite", served / "xla_dump")
    joined = join_calls(read_timeline(served / "calls.log"), analysis.joined.executions, read_session_start(served / "capture.sqlite"))
    programs = {row["execution_id"]: row["hlo_module"] for row in analysis.joined.executions.to_pylist()}
    made = [(call.call.program, [programs[number] for number in call.executions]) for call in joined.calls]
    assert made.count(("decode", ["jit_decode"])) == 52 and made.count(("prefill", ["jit_prefill"])) == 5 and len(made) == 57
    assert joined.outside == 6 and joined.shift_ns == 0 and joined.error_ns is not None and joined.error_ns < 300_000


def test_a_log_is_laid_over_a_capture_that_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    served = FIXTURES / "served"
    dump = ["--xla-dump", str(served / "xla_dump")]
    assert run(["serve-profile", "--capture", str(served / "capture.sqlite"), *dump, "--timeline", str(served / "calls.log")]) == 0
    assert "57 calls of the server's log lie within the capture, 6 outside" in capfd.readouterr().out
    assert run(["serve-profile", "--capture", str(served / "capture.sqlite")]) == 2
