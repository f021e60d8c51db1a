"""KV caches: copied, rewritten or laid out anew to add one entry, or put in another order whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hlo_mapping import COPIES_CACHE, donated
from nsys_report.fact import Fact
from nsys_report.findings.ledger import work_of
from nsys_report.findings.model import Finding
from nsys_report.findings.overlap import alone_ns
from nsys_report.findings.parts import by_time, launches, moved, places
from nsys_report.findings.step import Context, Record, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.words import duration, size, things


def copied_caches(context: Context, step: Step) -> Iterator[Finding]:
    """Whole caches copied, filled or rewritten where a step adds a few entries; whole caches brought into another layout and back."""
    if step.of("kv_gather", "reorder"):
        return  # reordered_caches speaks of them
    moves = _moves(step)
    relaid = moves.only(lambda r: "transpose" in step.opcodes(r))
    if relaid.records and not _in_loop(step, relaid.records):
        yield from _laid_out(context, step, relaid)
        moves = moves.only(lambda r: r not in relaid.records)
    yield from _copied(context, step, moves)


@dataclass(frozen=True, slots=True)
class _Moves:
    """What moves whole caches: copies of them, updates that rewrite more than their entries, and fills of new buffers."""

    copies: list[Record]
    rewrites: list[Record]
    fills: list[Record]

    @property
    def records(self) -> list[Record]:
        return [*self.copies, *self.rewrites, *self.fills]

    def only(self, wanted: Callable[[Record], bool]) -> _Moves:
        return _Moves(*([r for r in some if wanted(r)] for some in (self.copies, self.rewrites, self.fills)))


def _moves(step: Step) -> _Moves:
    copies = step.where(lambda r: r["class_rule"] == COPIES_CACHE)
    rewrites = [r for r in step.of("kv_write", "update") if _is_rewrite(r)]
    return _Moves(copies, rewrites, step.where(lambda r: _fills_cache(step, r, [*copies, *rewrites])))


def _entries(step: Step) -> int:
    """Bytes of new entries in a step."""
    return sum(r["kv_write_bytes"] or 0 for r in step.of("kv_write"))


def _laid_out(context: Context, step: Step, moves: _Moves) -> Iterator[Finding]:
    mine = moves.records
    time, entries = alone_ns(context, step, mine), _entries(step)
    if time < threshold("caches", "least_share") * step.kernel_ns:
        return
    yield Finding(
        slug="cache-laid-out",
        title=f"KV caches are brought into another layout whole, {size(moved(mine))} a step"
        + (f", to add {size(entries)}" if entries else ""),
        why=f"Attention reads the cache in another order of its axes than it is stored in, so XLA transposes each cache and writes it "
        f"back: "
        f"{duration(time)} a step in {things(round(launches(step, mine)), 'kernel')}." + _donated_already(step, mine),
        remedy="Store the cache in the order in which attention reads it (heads before positions: [batch, heads, positions, head "
        "size]), write "
        "new entries in that order, or let the compiler choose the arguments' layouts (jax.experimental.layout, AUTO).",
        confidence="likely",
        basis="The time in which only these ran",
        claims=work_of(step, mine),
        gain_ns=time,
        facts=(
            Fact("bytes", "bytes moved", moved(mine), "bytes"),
            Fact("entry_bytes", "new entries", entries, "bytes"),
            Fact("time_ns", "time", time, "ns"),
        ),
        places=places(step, by_time(step, mine)),
    )


def _copied(context: Context, step: Step, moves: _Moves) -> Iterator[Finding]:
    mine, entries = moves.records, _entries(step)
    total = moved(mine)
    if not mine or not total:
        return
    time = alone_ns(context, step, mine)
    gain = time * max(1 - 2 * entries / total, 0.0)
    if gain < threshold("caches", "least_share") * step.kernel_ns:
        return
    cause = _cause(step, mine)
    yield Finding(
        slug="cache-copied",
        title=f"KV caches are {_how(moves)} whole" + (f" to add {size(entries)} of new entries" if entries else ""),
        why=_why_copied(step, moves, cause),
        remedy=cause.remedy,
        confidence="likely",
        basis="The time in which only these ran, less that of the new entries' share of the bytes",
        claims=work_of(step, mine),
        gain_ns=gain,
        facts=(
            Fact("bytes", "bytes moved", total, "bytes"),
            Fact("entry_bytes", "new entries", entries, "bytes"),
            Fact("time_ns", "time", sum(step.spent(r) for r in mine), "ns"),
            Fact("copy_bytes", "moved by copies", moved(moves.copies), "bytes"),
            Fact("rewrite_bytes", "moved by rewriting updates", moved(moves.rewrites), "bytes"),
            Fact("fill_bytes", "filled", moved(moves.fills), "bytes"),
            Fact("cause", "cause", cause.name),
        ),
        places=places(step, by_time(step, mine)),
    )


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a cache is copied: in a word, in a sentence, and what to do."""

    name: str
    why: str
    remedy: str


_LOOPED = _Cause(
    "passes through a loop",
    "The cache passes through a loop as input and stacked output: XLA fills a new buffer, writes a whole layer's cache into it in each "
    "iteration and copies it back into the argument's buffer",
    "Update the cache in place: carry it through the loop and write the new entries into it at the layer's index, instead of passing each "
    "layer's cache in and stacking the results (scan's xs and ys); or keep one buffer a layer and unroll.",
)
_DONATED = _Cause(
    "is donated and copied all the same",
    "The caches are donated, so that their buffers may be overwritten; XLA copies them because something still reads the old entries after "
    "the new ones are written (copy insertion)",
    "Read from the updated cache, or read before the update: no use of the old array may come after it.",
)
_NOT_DONATED = _Cause(
    "is not updated in place",
    "The buffer that the new entry goes into may not be overwritten, so XLA copies the whole cache first",
    "Donate the cache (jax.jit(..., donate_argnums=...)) and return it updated, so that XLA writes into the same buffer; do not keep a "
    "reference to the old one.",
)


def _cause(step: Step, mine: Sequence[Record]) -> _Cause:
    if _in_loop(step, mine):
        return _LOOPED
    return _DONATED if _all_donated(step, mine) else _NOT_DONATED


def _all_donated(step: Step, mine: Sequence[Record]) -> bool:
    """Whether every argument that these instructions read as it came in may be overwritten; False where they read none."""
    flow = step.flow
    if flow is None:
        return False
    read = {place for record in mine for place in flow.arguments(record["hlo_instruction"])}
    large = {place for place in read if flow.argument_bytes(place) >= CACHE_BYTES}
    return bool(large) and large <= donated(flow.graph.module)


CACHE_BYTES = 1 << 16
"""Smaller arguments are positions and lengths."""


def _donated_already(step: Step, mine: Sequence[Record]) -> str:
    return " The caches are donated already: that is not what it waits for." if _all_donated(step, mine) else ""


def reordered_caches(context: Context, step: Step) -> Iterator[Finding]:
    """Whole caches put in another order, as beams' caches are after each token, and copied back into their buffers."""
    gathers = step.of("kv_gather", "reorder")
    copies = step.where(lambda r: r["class_rule"] == COPIES_CACHE)
    mine = [*gathers, *copies]
    gain = alone_ns(context, step, mine)
    if not gathers or gain < threshold("caches", "least_share") * step.kernel_ns:
        return
    back = f", and copied into the arguments' buffers ({size(moved(copies))} more)" if copies else ""
    yield Finding(
        slug="cache-reordered",
        title=f"KV caches are put in another order whole in every step: {size(moved(mine))} moved",
        why=(
            f"Every row is gathered by an index into a new buffer{back}: {duration(gain)} a step, whether rows change places or not. "
            f"A gather cannot write into the buffer it reads."
        ),
        remedy=(
            "Keep the caches where they are and carry a table from row (beam) to the rows that hold its past, which attention looks up; or "
            "reorder only the entries since the beams parted, and share the prompt's."
        ),
        confidence="likely",
        basis="The time in which only these ran",
        claims=work_of(step, mine),
        gain_ns=gain,
        facts=(
            Fact("bytes", "bytes moved", moved(mine), "bytes"),
            Fact("copy_bytes", "moved by copies", moved(copies), "bytes"),
            Fact("time_ns", "time", sum(step.spent(r) for r in mine), "ns"),
        ),
        places=places(step, by_time(step, mine)),
    )


def _how(moves: _Moves) -> str:
    words = [word for word, some in (("filled", moves.fills), ("rewritten", moves.rewrites), ("copied", moves.copies)) if some]
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def _why_copied(step: Step, moves: _Moves, cause: _Cause) -> str:
    named = (
        ("fills of new buffers", moves.fills),
        ("updates that rewrite more than their entries", moves.rewrites),
        ("copies", moves.copies),
    )
    parts = [f"{word} {size(moved(some))} in {duration(sum(step.spent(r) for r in some))}" for word, some in named if some]
    return f"{cause.why}: {', '.join(parts)} a step."


def _is_rewrite(record: Record) -> bool:
    entries = record["kv_write_bytes"] or 0
    return bool(
        entries and (record["bytes_accessed"] or 0) > threshold("caches", "rewritten") * entries and record["bytes_accessed"] > 1 << 20
    )


def _fills_cache(step: Step, record: Record, others: Sequence[Record]) -> bool:
    """Whether a fill makes a buffer of the shape of a cache that is copied or rewritten."""
    if (record["kernel_class"], record["class_detail"]) != ("other", "broadcast"):
        return False
    caches = {shape for other in others for shape in _shapes(step, other)}
    return bool(caches & _shapes(step, record))


def _shapes(step: Step, record: Record) -> set[tuple[str, tuple[int, ...]]]:
    instruction = step.module.instruction(record["hlo_instruction"]) if step.module is not None else None
    return {(leaf.element_type, leaf.dimensions) for leaf in instruction.shape.leaves if len(leaf.dimensions) > 1} if instruction else set()


def _in_loop(step: Step, mine: Sequence[Record]) -> bool:
    """Whether one of them stands in a loop's body, or reads what a loop returns."""
    module = step.module
    if module is None:
        return False
    bodies = {name for c in module.computations for i in c.instructions if i.opcode == "while" for name in i.called}
    for record in mine:
        if module.home.get(record["hlo_instruction"]) in bodies:
            return True
        instruction = module.instruction(record["hlo_instruction"])
        sources = [module.instruction(o.name) for o in instruction.operands] if instruction is not None else []
        if any(source is not None and source.opcode in ("while", "get-tuple-element") for source in sources):
            return True
    return False
