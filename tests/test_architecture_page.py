"""ARCHITECTURE.md names what is there, and every folder of the two packages."""

from __future__ import annotations

import re

from tests import architecture

PAGE = (architecture.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:hlo_mapping|nsys_report|tests)/[\w./-]*)`", PAGE)))


def test_every_path_that_the_page_names_is_there() -> None:
    assert len(PATHS) > 30
    assert [path for path in PATHS if not (architecture.ROOT / path).exists()] == []


def test_every_folder_is_on_the_page() -> None:
    folders = {folder for file in architecture.source_tree() if (folder := architecture.folder_of(file)).endswith("/")}
    missing = {folder for folder in folders if not any(path.startswith(folder) or folder.startswith(f"{path}") for path in PATHS)}
    assert missing == set()


def test_every_command_that_the_page_names_runs_a_module_that_is_there() -> None:
    modules = re.findall(r"python -m ([\w.]+)", PAGE)
    assert modules
    assert [module for module in modules if not (architecture.ROOT / f"{module.replace('.', '/')}.py").exists()] == []


def test_words_are_explained_once() -> None:
    table = PAGE.split("## Words")[1]
    words = [word for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for word in row.split(", ") if word not in ("word", "---")]
    assert len(words) > 25 and len(words) == len(set(words))
