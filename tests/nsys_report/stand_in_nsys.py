#!/usr/bin/env python3
"""Stands in for nsys in tests: takes its options, runs the program, leaves the files that nsys leaves, and fails as it fails.

STAND_IN_EXPORT is the SQLite file that an export gives; STAND_IN_FAILS names a failure: `strings` (the importer loses the CUDA tables
while NVTX is traced), `library` (a .qdstrm and no report), `window` (no capture range was ever opened), `export`. STAND_IN_SESSION is a
file that an interactive session keeps its output's name in.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

KNOWN = {
    "--trace": None,
    "--cuda-graph-trace": {"node", "graph"},
    "--sample": {"none"},
    "--cpuctxsw": {"none"},
    "--capture-range": {"cudaProfilerApi", "nvtx"},
    "--nvtx-capture": None,
    "--capture-range-end": {"stop", "stop-shutdown"},
    "--delay": None,
    "--duration": None,
    "--kill": {"none"},
    "--force-overwrite": {"true"},
    "--output": None,
    "--type": {"sqlite"},
    "--session-new": None,
    "--session": None,
    "--trace-fork-before-exec": {"true"},
}
FAILS = os.environ.get("STAND_IN_FAILS", "")


def options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    given: dict[str, str] = {}
    for place, word in enumerate(arguments):
        if not word.startswith("--"):
            return given, arguments[place:]
        name, _, value = word.partition("=")
        if name not in KNOWN or (KNOWN[name] is not None and value not in KNOWN[name]):
            sys.exit(f"unrecognised option '{word}'")
        given[name] = value
    return given, []


def profile(given: dict[str, str], program: list[str]) -> int:
    code = subprocess.call(program)
    if FAILS == "window":
        print("Capture range never started.")
        return code
    Path(given["--output"] + ".qdstrm").write_bytes(b"raw")
    if FAILS == "library":
        print("error while loading shared libraries: libdw.so.1: cannot open shared object file")
        return code
    Path(given["--output"] + ".qdstrm").unlink()
    lost = FAILS == "strings" and "nvtx" in given["--trace"]
    if lost:
        print('Importer error status: Importation succeeded with non-fatal errors.\n[message*] = Cannot find string for an exterior index"')
    Path(given["--output"] + ".nsys-rep").write_bytes(b"lost" if lost else given["--cuda-graph-trace"].encode())
    return code


def export(given: dict[str, str], record: str) -> int:
    if FAILS == "export":
        print("ERROR: the report is damaged")
        return 1
    held = Path(record).read_bytes()
    if held == b"lost":
        with sqlite3.connect(given["--output"]) as made:
            made.execute("CREATE TABLE NVTX_EVENTS (start INTEGER)")
            made.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
            made.execute("CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT, globalPid INTEGER)")
            made.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 3, '[message*] = Cannot find string for an exterior index', 1)")
    else:
        source = os.environ.get("STAND_IN_GRAPH_EXPORT") if held == b"graph" else None
        shutil.copy(source or os.environ["STAND_IN_EXPORT"], given["--output"])
    return 0


if sys.argv[1] == "--version":
    print("NVIDIA Nsight Systems version " + os.environ.get("STAND_IN_VERSION", "2025.3.2.474-253236389321v0"))
elif sys.argv[1] == "profile":
    sys.exit(profile(*options(sys.argv[2:])))
elif sys.argv[1] == "launch":
    given, server = options(sys.argv[2:])
    Path(os.environ["STAND_IN_SESSION"] + ".traces").write_text(given["--trace"])
    sys.exit(subprocess.call(server))
elif sys.argv[1] == "start":
    Path(os.environ["STAND_IN_SESSION"]).write_text(options(sys.argv[2:])[0]["--output"])
elif sys.argv[1] == "stop":
    lost = FAILS == "strings" and "nvtx" in Path(os.environ["STAND_IN_SESSION"] + ".traces").read_text()
    Path(Path(os.environ["STAND_IN_SESSION"]).read_text() + ".nsys-rep").write_bytes(b"lost" if lost else b"node")
elif sys.argv[1] == "shutdown":
    sys.exit(1)
else:
    found, rest = options(sys.argv[2:])
    sys.exit(export(found, rest[0]))
