"""Paths in what is passed on: from the package or project on, and none of the machine's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from nsys_report.cli.pairs import part_names
from nsys_report.paths import project_paths, with_project_paths, without_paths


def test_sources_begin_at_their_package_or_project() -> None:
    files = [
        "/home/ann/.venv/lib/python3.12/site-packages/flax/linen/linear.py",
        "/usr/lib/python3/dist-packages/jax/_src/api.py",
        "/usr/lib/python3.12/functools.py",
        "/home/ann/secret/proj/train.py",
        "/home/ann/secret/proj/models/bert.py",
        "relative/step.py",
        "<string>",
        "C:\\Users\\ann\\env\\Lib\\site-packages\\optax\\adam.py",
    ]
    packages = ["flax/linen/linear.py", "jax/_src/api.py", "functools.py"]
    own = ["train.py", "models/bert.py", "relative/step.py", "<string>"]
    assert project_paths(files) == dict(zip(files, [*packages, *own, "optax/adam.py"], strict=True))


@pytest.mark.parametrize("alone", ["/home/ann/train.py", "../../ann/train.py", "C:\\Users\\ann\\train.py"])
def test_a_file_alone_is_its_name(alone: str) -> None:
    assert project_paths([alone]) == {alone: "train.py"}


def test_sources_far_apart_name_nobody() -> None:
    """Only the machine's own folders are common: each begins at what the nearest have in common."""
    files = ["/home/ann/proj/train.py", "/home/ann/proj/nets/bert.py", "/home/bob/step.py", "/opt/tools/run.py", "/srv/a.py", "/a.py"]
    shown = ["train.py", "nets/bert.py", "step.py", "run.py", "a.py", "a.py"]
    assert project_paths(files) == dict(zip(files, shown, strict=True))
    people = ["/mnt/x/users/ann/p/a.py", "/mnt/x/users/bob/q/b.py"]
    assert list(project_paths(people).values()) == ["a.py", "b.py"]


def test_captures_are_told_apart_without_peoples_names() -> None:
    assert part_names([Path("/data/rank_0/c.sqlite"), Path("/data/rank_1/c.sqlite")]) == ["rank_0/c.sqlite", "rank_1/c.sqlite"]
    assert part_names([Path("/home/ann/c.sqlite"), Path("/home/bob/c.sqlite")]) == ["c.sqlite (1)", "c.sqlite (2)"]


def test_a_column_of_sources() -> None:
    table = pa.table({"source_file": pa.array(["/a/b/x.py", None, "/a/c/y.py", "/a/b/x.py"])})
    assert with_project_paths(table, "source_file")["source_file"].to_pylist() == ["b/x.py", None, "c/y.py", "b/x.py"]
    empty = table.slice(0, 0)
    assert with_project_paths(empty, "source_file").num_rows == 0


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("cannot open /home/ann/x.nsys-rep", "cannot open (path)"),
        ("File '/var/ann/a b.qdstrm' is locked", "File '(path)' is locked"),
        ("(/usr/lib/libcuda.so.1): failed", "((path)): failed"),
        ("C:\\Users\\ann\\log.txt is gone", "(path)"),
        ("~/runs/one.sqlite", "(path)"),
        ("5 of 6 launches (83 %) and/or 3/4 of it", "5 of 6 launches (83 %) and/or 3/4 of it"),
    ],
)
def test_a_text_loses_its_paths(said: str, shown: str) -> None:
    assert without_paths(said) == shown
