"""Phases of training: against the scopes that JAX wrote into the names, and from dataflow where there are none."""

from __future__ import annotations

from collections import Counter

import pytest

from hlo_mapping.facts import module_facts
from hlo_mapping.phases import TRAINING_PHASES, named_phase
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import Row, captured_rows, program_rows, text, without_names

NAMED = ["vit_remat", "gan_train", "gnn_train", "sgd_scan"]


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("jit(step)/jvp(Bert)/encoder/dot_general", "forward"),
        ("jit(step)/transpose(jvp(Bert))/encoder/dot_general", "backward"),
        ("jit(step)/transpose(jvp(jvp()))/checkpoint/rematted_computation/dot_general", "rematerialized"),
        ("jit(step)/transpose(jvp(jvp()))/checkpoint/dot_general", "backward"),
        ("gradient_tape/model/dense/MatMul", "backward"),
        ("jit(step)/adam/mul", None),
        ("", None),
    ],
)
def test_what_a_name_says(name: str, phase: str | None) -> None:
    assert named_phase(name) == phase


@pytest.mark.parametrize("name", NAMED)
def test_scopes_are_followed(name: str) -> None:
    """No launch that JAX's scopes place is placed elsewhere; the loss is the end of what they call forward."""
    allowed = {
        "forward": {"forward", "loss", "collective"},
        "backward": {"backward", "collective"},
        "rematerialized": {"rematerialized", "collective"},
    }
    placed = [(r["phase"], said, r["hlo_instruction"]) for r in program_rows(name).values() if (said := _scope(r)) is not None]
    assert len(placed) > 10
    assert [p for p in placed if p[0] not in allowed[p[1]]] == []


def _scope(row: Row) -> str | None:
    """The scope that all parts of an instruction's name are in."""
    said = {named_phase(part) for part in (row["op_name"] or "").split(";")}
    return said.pop() if len(said) == 1 else None


def test_phases_of_a_captured_step() -> None:
    """The four-layer perceptron under AdamW: JAX's scopes name every launch, and what has none is AdamW's."""
    rows = captured_rows("train", "jit_train_step").values()
    assert {r["phase"] for r in rows} == {"forward", "loss", "backward", "optimizer"}
    assert all(r["phase"] == "optimizer" for r in rows if named_phase(r["op_name"] or "") is None)
    dots = Counter(r["phase"] for r in rows if r["flops"])
    assert dots["backward"] == 7  # a gradient for each of four layers, and three gradients of activations
    assert dots["forward"] + dots["loss"] == 4


@pytest.mark.parametrize("name", ["vit_remat", "gan_train"])
def test_dataflow_agrees_with_the_scopes_where_it_matters(name: str) -> None:
    """Without a name, products are placed as the names place them: at least 95 % of the arithmetic."""
    named = program_rows(name)
    bare = module_facts(parse_module(without_names(text(name))), 1).to_pylist()
    flops = Counter[bool]()
    for row, other in zip(bare, named.values(), strict=True):
        near = {row["phase"], other["phase"]} <= {"forward", "loss"} or {row["phase"], other["phase"]} <= {"backward", "optimizer"}
        flops[near or row["phase"] == other["phase"]] += row["flops"] or 0
    assert flops[True] >= 0.95 * flops.total() > 0


@pytest.mark.parametrize("name", ["transformer_train", "resnet_train", "conv_train", "fsdp"])
def test_programs_without_names_have_phases(name: str) -> None:
    found = Counter(r["phase"] for r in program_rows(name).values())
    assert {"forward", "backward", "optimizer"} <= found.keys() <= set(TRAINING_PHASES)
    assert found["unknown"] < 0.15 * found.total()


def test_collectives_are_a_phase_of_their_own() -> None:
    rows = program_rows("fsdp").values()
    assert {r["phase"] for r in rows if r["class_detail"] == "collective"} == {"collective"}


@pytest.mark.parametrize("name", ["encoder", "paged_b8", "hmc", "ode"])
def test_what_does_not_train_has_no_phases(name: str) -> None:
    assert {r["phase"] for r in program_rows(name).values()} == {None}
