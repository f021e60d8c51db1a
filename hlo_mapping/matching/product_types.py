"""What a module says of its matrix products that launches depend on."""

from __future__ import annotations

from hlo_mapping.ir import Instruction, Module


def multiplied_types(product: Instruction, module: Module) -> frozenset[str]:
    """The element types that a matrix product multiplies, by its operands, precision and algorithm; empty where unknown."""
    if not product.operands or (found := module.instruction(product.operands[0].name)) is None:
        return frozenset()
    try:
        kind = found.shape.at(product.operands[0].index).element_type
    except IndexError:
        return frozenset()
    if kind.startswith("f8"):
        return frozenset({"f8"})
    if kind != "f32":
        return frozenset({kind}) if kind in ("bf16", "f16", "f64", "s8") else frozenset()
    precision = (product.backend_config.get("gemm_backend_config") or {}).get("precision_config") or {}
    algorithm = str(precision.get("algorithm", ""))
    if "TF32" in algorithm or "BF16" in algorithm:
        return frozenset({"tf32"}) if "TF32" in algorithm else frozenset({"bf16"})
    exact = algorithm.startswith("ALG_DOT_F32") or "HIGHEST" in precision.get("operand_precision", ())
    return frozenset({"f32"}) if exact else frozenset({"f32", "tf32"})
