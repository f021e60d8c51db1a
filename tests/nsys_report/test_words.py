"""Words of language models stand on no page of a program that is none; the names that people gave are theirs."""

from __future__ import annotations

import pytest

from tests.conftest import CAPTURES
from tests.surfaces import llm_lines, serves, surfaces_of_fixture


@pytest.mark.parametrize("name", CAPTURES)
def test_no_word_of_language_models_on_a_program_that_is_none(name: str) -> None:
    surfaces = surfaces_of_fixture(name)
    assert serves(surfaces.analysis) or llm_lines(surfaces) == []


@pytest.mark.parametrize("name", ["int8", "moe", "sharded_nocb", "threads", "torch_mlp", "train", "train_host"])
def test_these_make_no_tokens(name: str) -> None:
    assert not serves(surfaces_of_fixture(name).analysis)


def test_the_words_are_found_where_they_are() -> None:
    """The check is no check if it finds nothing in a report on a decoder."""
    assert {surface for surface, _ in llm_lines(surfaces_of_fixture("decode"))} == {"terminal", "full", "markdown", "page"}
