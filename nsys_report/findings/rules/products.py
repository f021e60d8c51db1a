"""Products: written out and summed by a second kernel, far below their roof, or on cores that are slow at them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hlo_mapping import SUMS_SPLIT_PRODUCT, Module, is_written_out
from nsys_report.analysis.arrays.rows import ProductRow
from nsys_report.fact import Fact
from nsys_report.findings.ledger import unclaimed, work_of
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.overlap import alone_ns
from nsys_report.findings.parts import by_time, launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import duration, share, size, things

_NAMING = frozenset({"bitcast", "reshape", "get-tuple-element", "copy", "convert"})
_LIBRARY = re.compile(r"cublas|cudnn|cutlass|nvjet|xmma|gemv|Kernel2")


def split_products(context: Context, step: Step) -> Iterator[Finding]:
    """A matrix-vector product in two kernels: one writes every single product out, another reads them back and sums them."""
    firsts = step.where(lambda r: is_written_out(r["class_rule"]))
    seconds = _sums_of(step, firsts)
    if not firsts or not seconds or context.roof is None:
        return
    both = [*firsts, *seconds]
    needed = sum(r["weight_bytes"] or _largest_operand(step, r) for r in firsts)
    rate = _rate_of_other_products(step, both) or context.roof
    gain = alone_ns(context, step, both) - needed * 1e9 / rate
    if gain < threshold("products", "least_share") * step.kernel_ns:
        return
    written = sum(_result_bytes(step, r) for r in firsts)
    types = " and ".join(sorted({leaf for r in firsts for leaf in _result_types(step, r)}))
    yield Finding(
        slug="split-product",
        title=f"Matrix-vector products are written out ({size(written)}) and read back by a second kernel to be summed",
        why=(
            f"XLA made a multiply and a reduce that did not fuse of each product of a vector and a weight matrix: "
            f"{things(round(launches(step, firsts)), 'kernel')} write {size(written)} of single products in {types}, "
            f"{things(round(launches(step, seconds)), 'kernel')} read them back. Only the {size(needed)} of weights had to move; the rest "
            f"costs {duration(context.bytes_ns(2 * written))} at the roof, and more in fact."
        ),
        remedy=(
            f"Keep the product whole{_rule_of_splitting(step, firsts)}: give it two rows or more (pad the batch by a row), or merge "
            "weights that share their input (q, k and v) into one larger matrix; a kernel of your own for matrix times vector (Pallas, "
            "Triton) does as well."
        ),
        confidence="likely",
        basis=f"Both kernels' time less what their weights take at {rate / 1e9:,.0f} GB/s, as the program's whole products reach it",
        claims=work_of(step, both),
        gain_ns=gain,
        facts=(
            Fact("written_bytes", "products written", written, "bytes"),
            Fact("read_back_bytes", "products read back", written, "bytes"),
            Fact("needed_bytes", "weights that must be read", needed, "bytes"),
            Fact("time_ns", "time of both kernels", alone_ns(context, step, both), "ns"),
            Fact("kernels", "kernels", launches(step, both), "count"),
            Fact("types", "type of the products", types),
            Fact("rate", "bandwidth of the program's whole products", rate, "bytes_per_s"),
        ),
        places=places(step, by_time(step, both)),
    )


def _rule_of_splitting(step: Step, firsts: Sequence[Record]) -> str:
    """When XLA splits a product, where the sizes agree with that."""
    limit = int(threshold("products", "vector_elements"))
    instructions = [step.module.instruction(r["hlo_instruction"]) for r in firsts] if step.module is not None else []
    largest = max((leaf.element_count for i in instructions if i is not None for leaf in i.shape.leaves), default=0)
    if not 0 < largest < limit:
        return ""
    return (
        f" (XLA splits those of a vector and a matrix of under {limit / 1e6:,.0f} million elements; these have up to {largest / 1e6:,.1f})"
    )


def _sums_of(step: Step, firsts: Sequence[Record]) -> list[Record]:
    """The kernels that sum what the first kernels write."""
    names = {record["hlo_instruction"] for record in firsts}
    if step.module is None:
        return []
    module = step.module
    return step.where(lambda r: r["class_rule"] == SUMS_SPLIT_PRODUCT and bool(producers(module, r["hlo_instruction"]) & names))


def producers(module: Module, name: str) -> set[str]:
    """The instructions whose results an instruction reads, seen through those that only name them differently."""
    instruction = module.instruction(name)
    if instruction is None:
        return set()
    found: set[str] = set()
    for operand in instruction.operands:
        source = module.instruction(operand.name)
        found |= producers(module, operand.name) if source is not None and source.opcode in _NAMING else {operand.name}
    return found


def _result_types(step: Step, record: Record) -> set[str]:
    instruction = step.module.instruction(record["hlo_instruction"]) if step.module is not None else None
    return {leaf.element_type for leaf in instruction.shape.leaves} if instruction is not None else set()


def _result_bytes(step: Step, record: Record) -> int:
    """Bytes that an instruction's launches write in an execution, each its whole result."""
    instruction = step.module.instruction(record["hlo_instruction"]) if step.module is not None else None
    return instruction.shape.byte_size * round(record["launches_per_execution"]) if instruction is not None else 0


def _largest_operand(step: Step, record: Record) -> int:
    """What a product of no model parameter reads: what it moves less what it writes."""
    return max(int(record["bytes_accessed"] or 0) - _result_bytes(step, record), 0)


def _rate_of_other_products(step: Step, left_out: Sequence[Record]) -> float | None:
    """Bytes a second of the program's other weight products that take longer than a small kernel; None where it has none."""
    names = {record["instruction_id"] for record in left_out}
    whole = [r for r in step.of("weights", "product") if r["instruction_id"] not in names and _is_judged(step, r) and _is_large(r)]
    time = sum(step.spent(r) for r in whole)
    return moved(whole) * 1e9 / time if time else None


def _is_judged(step: Step, record: Record) -> bool:
    """Whether an instruction is a product with a roof, and not faster than it."""
    roof = step.roofs.get(record["instruction_id"])
    return bool(record["flops"]) and roof is not None and not roof["above_roof"]


def _is_large(record: Record) -> bool:
    """Whether its launch does not decide what a kernel takes."""
    return bool(record["time_per_execution_ns"] > threshold("kernels", "small_ns") * record["launches_per_execution"])


def _reachable_ns(step: Step, record: Record) -> float:
    """What a good kernel takes: a share of a roof that somebody measured, less of one that stands in a data sheet."""
    roof = step.roofs[record["instruction_id"]]
    nominal = roof["roof"] == "compute" and roof["roof_kind"] not in ("measured", "given")
    reachable = threshold("products", "reachable_nominal") if nominal else threshold("products", "reachable")
    return float(roof["roof_time_ns"] / reachable)


def below_roof(context: Context, step: Step, left: Mapping[Source, float]) -> Iterator[Finding]:
    """Products that take much longer than their bytes and their arithmetic: calls of a library, and XLA's own kernels."""
    far = threshold("products", "far_below")
    products = [r for r in unclaimed(step, step.instructions, left) if _is_whole_product(r) and _is_judged(step, r)]
    slow = [r for r in products if _share_of_roof(step, r) < far]
    for library in (True, False):
        mine = [r for r in slow if _is_library(r) == library]
        roof = sum(step.roofs[r["instruction_id"]]["roof_time_ns"] for r in mine)
        gain = alone_ns(context, step, mine) - sum(_reachable_ns(step, r) for r in mine)
        if mine and gain >= threshold("products", "least_share") * step.kernel_ns:
            yield _below_roof(step, mine, library, roof, gain)


def _below_roof(step: Step, mine: Sequence[Record], library: bool, roof: float, gain: float) -> Finding:
    time = sum(step.spent(r) for r in mine)
    limits = {str(step.roofs[r["instruction_id"]]["roof"]) for r in mine}
    limit = {"memory": "their bytes at the bandwidth ceiling", "compute": "their arithmetic at the ceiling of its types"}
    bound = " or ".join(limit[word] for word in sorted(limits))
    convolutions = library and all(_convolves(step, r) for r in mine)
    kind = "library convolution" if convolutions else "library product" if library else "product"
    reach = "reaches {} of its roof" if len(mine) == 1 else "reach {} of their roof"
    return Finding(
        slug="library-below-roof" if library else "product-below-roof",
        title=f"{things(len(mine), kind)} {reach.format(share(roof / time))}",
        why=f"{duration(time)} a step, where {bound} would take {duration(roof)}.",
        remedy=_remedy(step, mine, library, convolutions),
        confidence="likely" if library else "possible",
        basis=f"Their time less that of {threshold('products', 'reachable') * 100:.0f} % of the roof",
        claims=work_of(step, mine, "below_roof", "kernels"),
        gain_ns=gain,
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("roof_ns", "time at the roof", roof, "ns"),
            Fact("share_of_roof", "share of the roof", roof / time, "ratio"),
            Fact("bytes", "bytes", moved(mine), "bytes"),
            Fact("kernels", "kernels", launches(step, mine), "count"),
        ),
        places=places(step, sorted(mine, key=lambda r: -step.roofs[r["instruction_id"]]["headroom_ns"])),
    )


def _remedy(step: Step, mine: Sequence[Record], library: bool, convolutions: bool) -> str:
    """What to try, less what the program was compiled with already."""
    own = step.flag("xla_gpu_enable_triton_gemm") != "false"
    level = step.flag("xla_gpu_autotune_level")
    parts = ["leave --xla_gpu_autotune_level at its default of 4"] if level is not None and level < "4" else []
    if convolutions:
        parts += ["give each convolution more work: a larger batch, channels in multiples of 8 (of 64 better) with the channel as the last "
                  "dimension, fewer groups"]  # fmt: skip
    elif library:
        parts += [] if own else ["let XLA's own kernels compete (drop --xla_gpu_enable_triton_gemm=false)"]
        parts += ["reshape the call: libraries are tuned for large square products, not for a few rows or small batches of them"]
    else:
        exhaustive = step.flag("xla_gpu_exhaustive_tiling_search") == "true"
        parts += [] if exhaustive else ["let the autotuner look further (--xla_gpu_exhaustive_tiling_search=true)"]
        parts += ["compare with the library (--xla_gpu_enable_triton_gemm=false), or write this shape by hand"]
        if any("convert" in step.opcodes(r) and r["weight_bytes"] for r in mine):
            parts += [
                "weights converted inside the product keep the loads waiting: compare with weights stored in the type that is multiplied"
            ]
    wide = [r for r in mine if step.arithmetic_ns(r) and (r["dot_type"] or "").startswith("f32,f32")]
    if wide:
        parts += [
            f"bf16 operands halve the arithmetic of the f32 ones, {duration(sum(step.arithmetic_ns(r) for r in wide) / 2)} less at the roof"
        ]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _is_whole_product(record: Record) -> bool:
    halves = is_written_out(record["class_rule"]) or record["class_rule"] == SUMS_SPLIT_PRODUCT
    return bool(record["flops"] and record["dot_type"]) and not halves


def _convolves(step: Step, record: Record) -> bool:
    instruction = step.module.instruction(record["hlo_instruction"]) if step.module is not None else None
    return instruction is not None and "conv" in (instruction.custom_call_target or instruction.opcode)


def _is_library(record: Record) -> bool:
    return record["opcode"] == "custom-call" or bool(_LIBRARY.search(record["kernel_name"] or ""))


def _share_of_roof(step: Step, record: Record) -> float:
    return float(step.roofs[record["instruction_id"]]["share_of_roof"] or 1.0)


def slow_cores(context: Context, step: Step) -> Iterator[Finding]:
    """f32 products whose precision keeps them off the tensor cores."""
    ceilings = context.results.ceilings
    tensor, plain = ceilings.flops_per_s("tf32"), ceilings.flops_per_s("f32")
    asked = {row["instruction_id"] for row in context.results.precision.to_pylist() if _wants_plain_f32(row)}
    mine = step.where(lambda r: r["instruction_id"] in asked and bool(r["flops"]))
    flops = sum(r["flops"] for r in mine)
    if not mine or not flops or tensor is None:
        return
    # Three TF32 products make up one that is as exact as f32 (the algorithm TF32_TF32_F32_X3).
    possible = max(3 * flops / tensor.value * 1e9, context.bytes_ns(moved(mine)))
    time = alone_ns(context, step, mine)
    gain = time - possible / threshold("products", "reachable")
    if gain < threshold("products", "least_share") * step.kernel_ns:
        return
    run = "runs" if len(mine) == 1 else "run"
    yield Finding(
        slug="slow-cores",
        title=f"{things(len(mine), 'f32 product')} {run} without tensor cores, because the program asks for the highest precision",
        why=f"They take {duration(time)} a step for {flops / 1e9:,.1f} GFLOP; three TF32 products for each take {duration(possible)}.",
        remedy=(
            "Ask for an algorithm instead of precision HIGHEST: jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3 or BF16_BF16_F32_X6 keeps "
            "nearly all of f32's digits on tensor cores. Compare results first."
        ),
        confidence="likely" if plain is not None else "possible",
        basis="Their time less three times their arithmetic at the TF32 ceiling, or their bytes where those take longer",
        claims=work_of(step, mine),
        gain_ns=gain,
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("flops", "operations", flops, "flops"),
            Fact("possible_ns", "time on tensor cores", possible, "ns"),
        ),
        places=places(step, mine),
    )


def _wants_plain_f32(row: ProductRow) -> bool:
    types = {row["lhs_type"], row["rhs_type"]}
    return types == {"f32"} and row["compute_type"] == "f32"
