"""Kernels far below their roof, whatever they compute: grouped by what keeps them slow, with the shape of their launches as evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nsys_report.fact import Fact
from nsys_report.findings.ledger import claimed_ns, unclaimed, work_of
from nsys_report.findings.model import Finding, Source
from nsys_report.findings.parts import by_time, launches, moved, places
from nsys_report.findings.rules import scatters
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.units import count, duration, share, size, things

Told = Callable[[Context, Step, Record], bool]


@dataclass(frozen=True, slots=True)
class Family:
    """Kernels that are slow for one reason: how they are told, what they are called, why they are slow, and what to do."""

    slug: str
    told: Told
    one: str
    """What one of them is called."""
    many: str
    why: str
    remedy: str
    describe: Callable[[Step, Sequence[Record]], tuple[str, str, tuple[Fact, ...]]] | None = None
    """More of the reason, a remedy in place of `remedy` ("" for none), and figures, from the program."""


def _has(*opcodes: str) -> Told:
    return lambda context, step, record: bool(set(opcodes) & step.opcodes(record))


def _calls(*targets: str) -> Told:
    return lambda context, step, record: any(word in step.target(record).lower() for word in targets)


def _random_bits(context: Context, step: Step, record: Record) -> bool:
    """Whether it makes random bits by a counter-based generator: rounds of exclusive ors and shifts."""
    codes = step.opcode_list(record)
    rounds = codes.count("xor") >= threshold("slow", "random_rounds") and codes.count("shift-left") >= threshold("slow", "random_rounds")
    return rounds or "rng-bit-generator" in codes or "rng" in codes


def _few_blocks(context: Context, step: Step, record: Record) -> bool:
    blocks = context.blocks(step, record)
    return blocks is not None and context.multiprocessors is not None and 2 * blocks <= context.multiprocessors


FAMILIES: tuple[Family, ...] = (
    Family(
        "scatter-collisions",
        _has("scatter"),
        "scatter", "scatters",
        "A scatter adds its updates one by one into their places; updates for the same place wait for each other (atomic additions).",
        "Sort the updates by their place and sum the runs (jax.ops.segment_sum with indices_are_sorted=True), or turn the scatter "
        "round: let "
        "each place gather what belongs to it.",
        scatters.describe,
    ),
    Family(
        "slow-sort",
        lambda context, step, record: "sort" in step.opcodes(record) or any(w in step.target(record).lower() for w in ("sort", "topk")),
        "sort", "sorts",
        "A sort passes over its data many times, and one over short rows keeps few multiprocessors busy.",
        "Sort fewer or narrower keys: take the top k (jax.lax.top_k, or jax.lax.approx_max_k where near enough will do) in two stages, "
        "sort "
        "indices instead of rows, or keep the order from the step before.",
    ),
    Family(
        "slow-fft", _has("fft"), "Fourier transform", "Fourier transforms", "A transform of many short or odd lengths runs in several "
        "passes of the library.",
        "Use lengths that are powers of two, batch transforms, and real transforms (rfft) for real data.",
    ),
    Family(
        "slow-solver",
        lambda context, step, record: bool({"cholesky", "triangular-solve"} & step.opcodes(record))
        or any(w in step.target(record).lower() for w in ("cusolver", "potrf", "getrf", "syevd", "geqrf", "gesvd", "trsm", "lapack")),
        "factorization or solve", "factorizations or solves",
        "Such an algorithm goes column by column: each part waits for the one before, and small matrices leave the device mostly empty.",
        "Solve many systems in one batched call, replace a solve by products where the matrix is used often (factorize once, or keep the "
        "inverse of a small block), or use a coarser, iterative method.",
    ),
    Family(
        "random-bits", _random_bits, "kernel with random bits", "kernels with random bits",
        "Random bits are computed with rounds of integer arithmetic (threefry) in the kernel, and again wherever they are used: bytes "
        "are not "
        "what limits it.",
        "Use the hardware-friendly generator (jax.config jax_default_prng_impl='rbg' or 'unsafe_rbg'), keep the mask of the forward pass "
        "instead of making it again, or draw fewer bits.",
    ),
    Family(
        "few-blocks", _few_blocks, "kernel", "kernels",
        "Their grids have fewer blocks than half the multiprocessors, so that most of the GPU has nothing to do.",
        "Give the operation more parallel work: a larger batch, several steps or heads in one operation, or split a long reduction in "
        "two stages.",
    ),
    Family(
        "slow-gather", _has("gather", "dynamic-slice"), "gather", "gathers",
        "It reads short pieces at places that only the indices tell; memory delivers whole sectors for each.",
        "Gather whole rows along the last axis, order the indices (neighbors in memory next to each other), or look up once and reuse.",
    ),
    Family(
        "slow-reduction", _has("reduce", "reduce-window"), "reduction", "reductions",
        "A reduction that crosses rows or ends in few values passes over its data with little work for each thread.",
        "Reduce along the last axis (keep the array in the layout that is reduced), reduce several values in one pass, or let it fuse "
        "with the "
        "kernel that makes its input.",
    ),
    Family(
        "slow-transpose", _has("transpose"), "transposing kernel", "transposing kernels",
        "Reading rows and writing columns leaves either side with short pieces.",
        "Keep the array in the order in which it is used next (swap the axes of the einsum, or of the stored array).",
    ),
    Family(
        "slow-moves", _has("concatenate", "pad", "copy", "dynamic-update-slice", "slice"), "kernel that moves data", "kernels that move "
        "data",
        "It copies parts of arrays into others.", "Write results where they are needed: one larger array, in-place updates, or one "
        "operation on the "
        "parts.",
    ),
    Family(
        "slow-elementwise", lambda context, step, record: True, "kernel", "kernels",
        "Neither its bytes nor its arithmetic at the ceiling explain its time: its threads wait for each other, for special functions, "
        "or for "
        "reads in an unfavourable order.",
        "Look at one of them with Nsight Compute; larger arrays in one operation, another layout, or another formulation help most often.",
    ),
)  # fmt: skip
"""In the order in which they are asked: what names the reason more exactly comes first."""
SPECIAL = 5
"""So many of them name an algorithm; the rest is asked after the rules on traffic and products."""


def slow_algorithms(context: Context, step: Step) -> Iterator[Finding]:
    """Scatters, sorts, transforms, solvers and random bits that take much longer than their bytes and their arithmetic."""
    yield from _families(context, step, FAMILIES[:SPECIAL], step.instructions)


def slow_kernels(context: Context, step: Step, left: Mapping[Source, float]) -> Iterator[Finding]:
    """Other kernels that take much longer than their bytes and their arithmetic: few blocks, gathers, reductions, transposes, moves."""
    yield from _families(context, step, FAMILIES[SPECIAL:], unclaimed(step, step.instructions, left))


def _families(context: Context, step: Step, families: Sequence[Family], records: Sequence[Record]) -> Iterator[Finding]:
    rest = [r for r in records if r["class_detail"] != "collective" and is_slow(step, r)]
    for family in families:
        mine = [record for record in rest if family.told(context, step, record)]
        rest = [record for record in rest if record not in mine]
        if mine and claimed_ns(step, work_of(step, mine)) >= threshold("slow", "least_share") * step.kernel_ns:
            yield _finding(context, step, family, by_time(step, mine))


def near_roof(context: Context, step: Step, left: Mapping[Source, float]) -> Iterator[Finding]:
    """Kernels within a fifth of their roof: what is left there is little, and hard to get."""
    mine = [r for r in unclaimed(step, step.instructions, left) if step.roofs.get(r["instruction_id"]) and not is_slow(step, r)]
    claims = work_of(step, mine, "below_roof")
    time, roof, over = sum(step.spent(r) for r in mine), sum(step.roof_ns(r) for r in mine), claimed_ns(step, claims)
    if not mine or over < threshold("slow", "least_near_share") * step.wall_ns:
        return
    yield Finding(
        slug="near-roof",
        title=f"{things(len(mine), 'kernel')} {'runs' if len(mine) == 1 else 'run'} at {share(roof / time)} of the roof: little is left "
        f"there",
        why=f"{duration(time)} a step, where bytes and arithmetic at the ceiling take {duration(roof)}; good kernels reach about "
        f"{share(threshold('products', 'reachable'))} over whole steps.",
        remedy="Stop here, unless the program can move or compute less: narrower types, a smaller problem, results kept.",
        confidence="possible",
        basis=f"Their time less that of {share(threshold('products', 'reachable'))} of the roof",
        claims=claims,
        gain_ns=max(time - roof / threshold("products", "reachable"), 0.0),
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("roof_ns", "time at the roof", roof, "ns"),
            Fact("share_of_roof", "share of the roof", roof / time, "ratio"),
        ),
        places=places(step, by_time(step, mine)),
    )


def _launches(step: Step, mine: Sequence[Record]) -> str:
    number = round(launches(step, mine))
    return "1 launch" if number == 1 else f"{count(number)} launches"


def is_slow(step: Step, record: Record) -> bool:
    """Whether a kernel is far below the roof, as far as its cost is known."""
    roof = step.roofs.get(record["instruction_id"])
    return roof is None or roof["roof_time_ns"] < threshold("slow", "far_below") * step.spent(record)


def _finding(context: Context, step: Step, family: Family, mine: Sequence[Record]) -> Finding:
    time, roof = sum(step.spent(r) for r in mine), sum(step.roof_ns(r) for r in mine)
    unknown = sum(1 for r in mine if r["instruction_id"] not in step.roofs)
    told, remedy, facts = family.describe(step, mine) if family.describe is not None else ("", "", ())
    blocks = context.blocks(step, mine[0])
    grid = (
        f" {mine[0]['hlo_instruction']} runs on {things(blocks, 'block')}, the GPU has {count(context.multiprocessors)} multiprocessors."
        if blocks is not None and context.multiprocessors is not None
        else ""
    )
    known = f"their bytes and arithmetic need {duration(roof)}" if not unknown else f"what is known of their cost needs {duration(roof)}"
    return Finding(
        slug=family.slug,
        title=f"{count(len(mine))} {family.one if len(mine) == 1 else family.many} {'takes' if len(mine) == 1 else 'take'} "
        f"{duration(time)} "
        f"of each step for {size(moved(mine))}",
        why=f"{duration(time)} a step in {_launches(step, mine)}, where {known}. {family.why}{told}{grid}",
        remedy=remedy or family.remedy,
        confidence="possible",
        basis=f"Their time less that of {share(threshold('products', 'reachable'))} of the roof",
        claims=work_of(step, mine),
        gain_ns=max(time - roof / threshold("products", "reachable"), 0.0),
        facts=(
            Fact("time_ns", "time", time, "ns"),
            Fact("roof_ns", "time at the roof", roof, "ns"),
            Fact("bytes", "bytes", moved(mine), "bytes"),
            Fact("kernels", "launches", launches(step, mine), "count"),
            Fact("blocks", "blocks of the slowest", blocks, "count"),
            Fact("multiprocessors", "multiprocessors", context.multiprocessors, "count"),
            *facts,
        ),
        places=places(step, mine),
    )
