"""Thunks: the GPU work of one module in the order that its executable runs it.

XLA writes them as an indented list (thunk_sequence.txt) that changed with almost every release, and since late 2025 also as a text proto
that ties thunk ids to instructions (thunk_metadata.txt).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hlo_mapping.quoting import unescape
from hlo_mapping.text.attributes import number
from hlo_mapping.text.lexer import STRING

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Thunk:
    """One step of an executable; most launch one kernel or one copy.

    `branches` are the sequences inside it by the label that the dump prints: ("condition", ...) and ("body", ...) of a while,
    ("branch_0", ...) or ("false_branch", ...) of a conditional, ("sequence", ...) of a command buffer, an async start, a sequential thunk
    or a dynamic-slice fusion. Older dumps leave contents out: a while without branches is not an empty loop.
    """

    id: int | None
    kind: str
    """As XLA spells it: kKernel, kCustomKernel, kCopy, kGemm, kWhile, ..."""
    kernel: str | None = None
    grid: Dim3 | None = None
    """Thread blocks in x, y, z."""
    block: Dim3 | None = None
    """Threads of a block in x, y, z."""
    shared_memory: int | None = None
    """Dynamic shared memory, bytes."""
    instruction: str | None = None
    """The HLO instruction it was made for, where the dump says it."""
    stream_id: int | None = None
    """The number in stream=computation_stream[2] of an async start."""
    branches: tuple[tuple[str, tuple[Thunk, ...]], ...] = ()
    async_id: int | None = None
    """What ties an async start to its done."""
    description: str = ""
    """The rest of its line, as written."""

    def branch(self, label: str) -> tuple[Thunk, ...]:
        """The sequence under a label; () where there is none."""
        return next((sequence for name, sequence in self.branches if name == label), ())


@dataclass(frozen=True, slots=True)
class ThunkMetadata:
    """What thunk_metadata.txt says of one thunk; id 0 stands for thunks made by passes, such as command buffers."""

    id: int
    kind: str
    profile_annotation: str = ""
    execution_stream_id: int = 0


def walk(thunks: tuple[Thunk, ...]) -> Iterator[Thunk]:
    """Every thunk, those inside others after them, in the order written."""
    for thunk in thunks:
        yield thunk
        for _, sequence in thunk.branches:
            yield from walk(sequence)


def with_instructions(thunks: tuple[Thunk, ...], annotations: Mapping[int, str]) -> tuple[Thunk, ...]:
    """The same thunks with the instruction that `annotations` (thunk id → profile annotation) gives for their id."""
    return tuple(
        replace(
            thunk,
            instruction=annotations.get(thunk.id or 0, thunk.instruction),
            branches=tuple((label, with_instructions(inside, annotations)) for label, inside in thunk.branches),
        )
        for thunk in thunks
    )


_BLOCK = re.compile(r"\bthunk_metadata\s*\{")
_FIELD = re.compile(rf"\b(\w+):\s*({STRING}|[\w\-]+)", re.DOTALL)


def read_thunk_metadata(text: str) -> tuple[ThunkMetadata, ...]:
    """The entries of a thunk_metadata.txt, in order."""
    entries = []
    for block in _BLOCK.split(text)[1:]:
        fields = {key: unescape(value.strip('"')) for key, value in _FIELD.findall(block)}
        entries.append(
            ThunkMetadata(
                id=number(fields.get("thunk_id")),
                kind=fields.get("thunk_kind", ""),
                profile_annotation=fields.get("profile_annotation", ""),
                execution_stream_id=number(fields.get("execution_stream_id")),
            )
        )
    return tuple(entries)


_LINE = re.compile(
    r"(?P<indent> *)(?:(?P<id>\d+): +)?(?P<kind>k[A-Z]\w*)(?:[ \t]*\[(?:source|sink|prev|next)[^\]]*\])?(?:[ \t]+(?P<rest>.*))?"
)
_LABEL = re.compile(r"(?P<indent> *)(?P<label>\w+):\s*")
_KERNEL = re.compile(r"\bkernel ?= ?([^,\s]+)")
_ANNOTATION = re.compile(r"\bprofile_annotation ?= ?([^,\s]+)")
_BLOCKS = re.compile(r"\bblocks: \{(\d+), (\d+), (\d+)\}, threads/block: \{(\d+), (\d+), (\d+)\}")
_CUSTOM = re.compile(
    r"(?P<kernel>\S.*?) grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\](?:.*?shared_memory: (?P<shared>\d+))?"
)
_STREAM = re.compile(r"\bstream=\w+\[(\d+)\]")
_ASYNC = re.compile(r"\basync_id=(\d+)")


_DEEPEST = 200
"""Thunks within thunks that are followed; a sequence that nests deeper is of no executable."""


@dataclass(slots=True)
class _Node:
    """A thunk under construction: its column, and the label that the next sequence inside it stands under."""

    thunk: Thunk
    indent: int
    label: str = "sequence"
    branches: dict[str, list[_Node]] = field(default_factory=dict)

    def add(self, child: _Node) -> None:
        self.branches.setdefault(self.label, []).append(child)

    def finished(self) -> Thunk:
        inside = tuple((label, tuple(node.finished() for node in nodes)) for label, nodes in self.branches.items())
        return replace(self.thunk, branches=inside) if inside else self.thunk


def read_thunk_sequence(text: str) -> tuple[tuple[Thunk, ...], tuple[str, ...]]:
    """The top level of a thunk_sequence file of any release, and what in it could not be read."""
    root = _Node(Thunk(None, "root"), -1)
    stack, unread = [root], []
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if found := _LINE.fullmatch(line):
            _add(stack, found, len(found["indent"]))
            if len(stack) > _DEEPEST:
                return (), (f"line {line_number} is nested more than {_DEEPEST} deep, as no executable is",)
        elif label := _LABEL.fullmatch(line):
            _open_branch(stack, label["label"], len(label["indent"]))
        else:
            unread.append(f"line {line_number} is no thunk: {line.strip()[:80]!r}")
    return tuple(node.finished() for node in root.branches.get("sequence", [])), tuple(unread[:1])


def _add(stack: list[_Node], found: re.Match[str], indent: int) -> None:
    """Put a line's thunk under the nearest thunk that stands further left.

    The first child of a kSequential stands on its parent's line, and the rest two columns in.
    """
    while stack[-1].indent >= indent:
        stack.pop()
    rest = found["rest"] or ""
    child = _LINE.fullmatch(rest.lstrip()) if found["kind"] == "kSequential" else None
    node = _Node(_read_thunk(found["id"], found["kind"], "" if child else rest.strip()), indent)
    stack[-1].add(node)
    stack.append(node)
    if child:
        _add(stack, child, indent + 2)


def _open_branch(stack: list[_Node], label: str, indent: int) -> None:
    """Open a labeled sequence of the thunk that the label belongs to.

    XLA prints `condition:` in column 0 at every depth, right below its while (ToString in xla/backends/gpu/runtime/while_thunk.cc);
    other labels stand two columns inside their thunk.
    """
    if label != "condition":
        while len(stack) > 1 and stack[-1].indent >= indent:
            stack.pop()
    stack[-1].label = label
    stack[-1].branches.setdefault(label, [])


def _read_thunk(number: str | None, kind: str, rest: str) -> Thunk:
    custom = _CUSTOM.match(rest)
    blocks = _BLOCKS.search(rest)
    launch = tuple(map(int, (custom.groups()[1:7] if custom else blocks.groups() if blocks else ())))
    kernel, annotation, stream, pair = (pattern.search(rest) for pattern in (_KERNEL, _ANNOTATION, _STREAM, _ASYNC))
    return Thunk(
        id=int(number) if number is not None else None,
        kind=kind,
        kernel=custom["kernel"] if custom else kernel[1] if kernel else None,
        grid=(launch[0], launch[1], launch[2]) if launch else None,
        block=(launch[3], launch[4], launch[5]) if launch else None,
        shared_memory=int(custom["shared"]) if custom and custom["shared"] else None,
        instruction=annotation[1] if annotation else None,
        stream_id=int(stream[1]) if stream else None,
        async_id=int(pair[1]) if pair else None,
        description=rest,
    )
