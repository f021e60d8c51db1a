"""What launches are called: paths, layers and parameters of programs small enough to name by hand."""

from __future__ import annotations

import pytest

from hlo_mapping.facts import module_facts
from hlo_mapping.naming.layers import find_layers
from hlo_mapping.naming.names import joined_name
from hlo_mapping.naming.paths import Path, argument_path, dotted, owner, scope_path, without_root
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import captured_rows


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("params['layers'][0]['q_proj']", ("params", "layers", "0", "q_proj")),
        ("p['transformer']['h']['10']['ln_1']['scale']", ("p", "transformer", "h", "10", "ln_1", "scale")),
        ("s[0].mu['bert']", ("s", "0", "mu", "bert")),
        ("state[<flat index 3>]", ("state", "3")),
        ('x["a.b"]', ("x", "a.b")),
        ("tokens", ("tokens",)),
        ("", ()),
    ],
)
def test_arguments(name: str, path: Path) -> None:
    assert argument_path(name) == path


@pytest.mark.parametrize(
    ("op_name", "path"),
    [
        ("jit(step)/transpose(jvp(Bert))/encoder/layer/1/dropout/div", ("Bert", "encoder", "layer", "1", "dropout")),
        ("jit(f)/jit(main)/while/body/layer_4/dense/dot_general", ("layer_4", "dense")),
        ("jit(f)/attention/bhd,bthd->bht/dot_general", ("attention",)),
        ("jit(f)/jit(silu)/mul", ("silu",)),
        ("jit(f)/jit(_where)/select_n", ()),
        ("jit(f)/vmap(jvp())/add", ()),
        ("transpose;jit(f)/mlp/transpose", ("mlp",)),
        ("jit(f)/attn/attn.split_heads/reshape", ("attn", "split_heads")),
        ("params['w']", ()),
        ("jit(f)/shard_map/branch_1_fun/checkpoint/rematted_computation/mlp/dot", ("mlp",)),
        ("", ()),
    ],
)
def test_scopes(op_name: str, path: Path) -> None:
    assert scope_path(op_name) == path


def test_paths_as_people_write_them() -> None:
    assert dotted(("layers", "0", "q_proj")) == "layers[0].q_proj"
    assert without_root(("p", "params", "mlp", "kernel")) == ("mlp", "kernel")
    assert without_root(("params", "0", "qkv")) == ("params", "0", "qkv")  # a list at the top would leave a bare place
    assert owner(("mlp", "kernel")) == ("mlp",)
    assert owner(("experts", "3", "w")) == ("experts", "3", "w")
    assert joined_name([("a", "q"), ("a", "k")]) == "a.{q, k}"
    assert joined_name([("a", str(i)) for i in range(5)]) == "a.{5 parameters}"


def test_layers_are_the_outermost_numbers_with_the_same_below() -> None:
    layers = find_layers([("enc", "layer", str(i), "experts", str(e), "w") for i in range(3) for e in range(2)] + [("head", "w")])
    found = layers.of(("enc", "layer", "2", "experts", "1", "w"))
    assert found is not None
    assert (found.name, found.family) == ("enc.layer[2]", "enc.layer[*]")
    assert layers.starred(("enc", "layer", "2", "experts", "1", "w")) == ("enc", "layer", "*", "experts", "1", "w")
    assert layers.of(("head", "w")) is None


def test_numbers_that_are_no_layers() -> None:
    """A list of arrays, two halves of a state with different things, and the two matrices of a block."""
    assert not find_layers([("state", "1", str(i)) for i in range(4)] + [("state", "0", "step")]).families
    assert not find_layers([("w", str(i)) for i in range(4)]).families
    assert not find_layers([("mlp", "w1"), ("mlp", "w2")]).families
    glued = find_layers([(f"h{i}", name) for i in range(2) for name in ("w1", "w2")])
    assert glued.families == {((), "h")}


TWO_LAYERS = """HloModule jit_f, is_scheduled=true

ENTRY main {
  x = f32[8,64]{1,0} parameter(0), metadata={op_name="x"}
  a = f32[64,64]{1,0} parameter(1), metadata={op_name="params[\\'layers\\'][0][\\'up\\'][\\'kernel\\']"}
  b = f32[64,64]{1,0} parameter(2), metadata={op_name="params[\\'layers\\'][1][\\'up\\'][\\'kernel\\']"}
  head = f32[64,64]{1,0} parameter(3), metadata={op_name="params[\\'head\\']"}
  dot.1 = f32[8,64]{1,0} dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general"}
  tanh.1 = f32[8,64]{1,0} tanh(dot.1), metadata={op_name="jit(f)/tanh"}
  dot.2 = f32[8,64]{1,0} dot(tanh.1, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general"}
  add.1 = f32[8,64]{1,0} add(dot.2, tanh.1), metadata={op_name="jit(f)/act/add"}
  dot.3 = f32[8,64]{1,0} dot(add.1, head), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general"}
  ROOT exp.1 = f32[8,64]{1,0} exponential(dot.3), metadata={op_name="jit(f)/exp"}
}
"""


def test_a_program_of_two_layers() -> None:
    rows = {r["hlo_instruction"]: r for r in module_facts(parse_module(TWO_LAYERS), 1).to_pylist()}
    called = {name: (row["label"], row["pattern"], row["layer"]) for name, row in rows.items()}
    assert called == {
        "dot.1": ("layers[0].up", "layers[*].up", "layers[0]"),
        "tanh.1": ("layers[0] (elementwise)", "layers[*] (elementwise)", "layers[0]"),
        "dot.2": ("layers[1].up", "layers[*].up", "layers[1]"),
        "add.1": ("layers[1].act", "layers[*].act", "layers[1]"),  # reads both layers: it is of the later
        "dot.3": ("head", "head", None),
        "exp.1": ("(elementwise)", "(elementwise)", None),
    }
    assert rows["dot.2"]["parameters"] == "params['layers'][1]['up']['kernel']"
    assert rows["dot.2"]["parameter"] == "layers[*].up.kernel"
    assert rows["add.1"]["scope"] == "act"
    assert rows["add.1"]["parameters"] is None


def test_captured_decode_step() -> None:
    """Six layers of q, k, v, o, gate, up and down, merged as XLA merged them; caches are of the layer that reads them."""
    rows = captured_rows("decode", "jit_decode_step").values()
    patterns = {r["pattern"] for r in rows}
    assert {"layers[*].{gate_proj, up_proj}", "layers[*].down_proj", "layers[*].q_proj", "lm_head", "layers[*].attention"} <= patterns
    layers = {r["layer"] for r in rows} - {None}
    assert layers == {f"layers[{i}]" for i in range(6)}
    assert {r["layer"] for r in rows if r["label"] == "pool[3].{v, k}"} == {"layers[3]"}
    assert all(r["layer"] for r in rows if r["kernel_class"] == "attention")


def test_gradients_and_updates_are_called_after_their_parameter() -> None:
    rows = captured_rows("train", "jit_train_step").values()
    updates = {r["label"] for r in rows if r["class_detail"] == "optimizer"}
    assert updates == {f"dense_{i}" for i in range(4)}
    assert {r["label"] for r in rows if r["class_detail"] == "gradient" and r["flops"]} == {f"dense_{i}" for i in range(4)}


def test_a_program_that_cannot_be_named_keeps_its_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("no such place")

    monkeypatch.setattr("hlo_mapping.facts.name_launches", fails)
    rows = module_facts(parse_module(TWO_LAYERS), 1).to_pylist()
    assert {r["label"] for r in rows} == {None}
    assert sum(r["kernel_class"] == "weights" for r in rows) == 3
