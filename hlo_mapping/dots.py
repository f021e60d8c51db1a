"""What the dump says of the products behind an instruction: operand, accumulation and result types, precision and algorithm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_mapping.ir import Computation, Instruction, Module
from hlo_mapping.opcodes import PRODUCTS
from hlo_mapping.shape import ELEMENT_BITS, Shape

_LIBRARY = re.compile(r"cublas\$(?!triangular)|cudnn\$conv|matmul|gemm", re.IGNORECASE)
_DEEPEST = 8
"""Called computations deeper than this are not looked into."""

_ACCUMULATION = {"bf16": "f32", "f16": "f32", "f32": "f32", "f64": "f64", "s8": "s32", "u8": "s32"}
"""What a GPU accumulates products of a type in when the program does not say; 8-bit floats in f32."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One product. `precision` is default, high or highest (the operands' highest); `algorithm` is "" where the program leaves it open."""

    kind: str
    """The HLO opcode, or library for a call of cuBLAS or cuDNN."""
    lhs: str
    rhs: str
    result: str
    precision: str
    algorithm: str
    library_algorithm: str = ""
    """The algorithm that the autotuner chose for a library call."""

    @property
    def accumulation(self) -> str:
        """The type that sums are kept in: the algorithm's last one, else what the hardware does with such operands."""
        named = re.findall(r"(?:bf16|tf32|f\d+|f8\w*|s32)", self.algorithm.lower().removeprefix("alg_dot_").removeprefix("dot_"))
        if named:
            return "f32" if named[-1] == "tf32" else str(named[-1])
        if self.lhs.startswith("f8"):
            return "f32"
        return _ACCUMULATION.get(wider(self.lhs, self.rhs), self.result)

    @property
    def compute_type(self) -> str | None:
        """The compute ceiling that bounds it: bf16 (f16 too), tf32, f32, fp8 or int8; None for others (f64, complex).

        XLA lets f32 products run as TF32 unless an operand asks for the highest precision (its rule for cuBLAS, and Triton's default).
        """
        algorithm = self.algorithm.lower()
        for word, kind in (("tf32", "tf32"), ("bf16", "bf16"), ("f16", "bf16"), ("f8", "fp8"), ("f32", "f32")):
            if word in algorithm:
                return kind
        operand = wider(self.lhs, self.rhs)
        if operand.startswith("f8"):
            return "fp8"
        if operand == "f32":
            return "f32" if self.precision == "highest" else "tf32"
        return {"bf16": "bf16", "f16": "bf16", "s8": "int8", "u8": "int8"}.get(operand)


def wider(left: str, right: str) -> str:
    """The operand type with more bits; of equal ones the left."""
    return right if ELEMENT_BITS.get(right, 0) > ELEMENT_BITS.get(left, 0) else left


def dot_from_words(types: str) -> Dot:
    """A product from the facts' dot_type, such as 'bf16,bf16->f32'."""
    operands, _, result = types.partition("->")
    lhs, _, rhs = operands.partition(",")
    return Dot("dot", lhs.strip() or "?", rhs.strip() or lhs.strip() or "?", result.strip() or "?", "default", "")


def dots_of(module: Module, name: str) -> tuple[Dot, ...]:
    """The products that an instruction runs: itself, those in its fusion, or a library call's; () where it has none or is not there."""
    instruction, home = module.instruction(name), module.home.get(name)
    if instruction is None or home is None:
        return ()
    return products_in(module, module.by_name[home], instruction)


def products_in(module: Module, computation: Computation, instruction: Instruction) -> tuple[Dot, ...]:
    """The products that an instruction of a computation runs: itself, those in its fusion, or a library call's."""
    return tuple(_dots(module, computation, instruction, 0))


def operands_of(module: Module, name: str) -> list[Instruction]:
    """The instructions whose values an instruction takes; [] where it is not in the module."""
    instruction, home = module.instruction(name), module.home.get(name)
    return _operands(module.by_name[home], instruction) if instruction is not None and home is not None else []


def operand_leaves(module: Module, name: str) -> list[Shape]:
    """The arrays that an instruction takes: of a tuple of which it names a part (`%x#1`), that part's; [] where it is not in the module."""
    instruction, home = module.instruction(name), module.home.get(name)
    if instruction is None or home is None:
        return []
    leaves: list[Shape] = []
    for operand in instruction.operands:
        source = module.by_name[home].by_name.get(operand.name)
        shape = source.shape if source is not None else None
        for index in operand.index:
            shape = shape.elements[index] if shape is not None and index < len(shape.elements) else None
        leaves.extend(shape.leaves if shape is not None else ())
    return leaves


def _dots(module: Module, computation: Computation, instruction: Instruction, depth: int) -> Iterator[Dot]:
    if instruction.opcode in PRODUCTS:
        yield _dot(computation, instruction)
    elif instruction.opcode == "custom-call" and _LIBRARY.search(instruction.custom_call_target):
        yield _library_call(computation, instruction)
    elif instruction.opcode in ("fusion", "call", "async-start") and depth < _DEEPEST:
        for called in instruction.called:
            body = module.by_name.get(called)
            for inner in body.instructions if body is not None else ():
                if body is not None:
                    yield from _dots(module, body, inner, depth + 1)


def _dot(computation: Computation, instruction: Instruction) -> Dot:
    lhs, rhs = _types(computation, instruction)
    precision = _precision(re.findall(r"[a-z]+", instruction.attribute("operand_precision").lower()))
    return Dot(instruction.opcode, lhs, rhs, _result(instruction), precision, instruction.attribute("algorithm"))


def _library_call(computation: Computation, instruction: Instruction) -> Dot:
    config = instruction.backend_config
    gemm = config.get("gemm_backend_config") or config.get("cudnn_conv_backend_config") or config
    asked = gemm.get("precision_config") or {}
    algorithm = str(asked.get("algorithm", ""))
    lhs, rhs = _types(computation, instruction)
    return Dot(
        kind="library",
        lhs=lhs,
        rhs=rhs,
        result=_result(instruction),
        precision=_precision([str(p).lower() for p in asked.get("operand_precision", ())]),
        algorithm="" if algorithm == "ALG_UNSET" else algorithm,
        library_algorithm=str(gemm.get("selected_algorithm", "")),
    )


def _precision(words: list[str]) -> str:
    order = ("default", "high", "highest")
    known = [w for w in words if w in order]
    return max(known, key=order.index) if known else "default"


def _types(computation: Computation, instruction: Instruction) -> tuple[str, str]:
    found = [o.shape.element_type for o in _operands(computation, instruction)[:2]]
    return (found[0] if found else "?"), (found[1] if len(found) > 1 else found[0] if found else "?")


def _operands(computation: Computation, instruction: Instruction) -> list[Instruction]:
    return [found for o in instruction.operands if (found := computation.by_name.get(o.name)) is not None]


def _result(instruction: Instruction) -> str:
    return next((leaf.element_type for leaf in instruction.shape.leaves), "?")
