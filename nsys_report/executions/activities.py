"""The activities table with what the join found: execution, instruction, method, class and costs of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping.columns import ACTIVITIES, COSTS, JOIN, LAUNCHES, WORD
from hlo_mapping.matching.confidence import METHODS
from hlo_mapping.matching.join import Joined as Join

BYTES = ("bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")


def joined_activities(activities: pa.Table, join: Join, execution_id: np.ndarray, executions: pa.Table, facts: pa.Table) -> pa.Table:
    """ACTIVITY_TABLE, then LAUNCHES, then instruction_id (row of `facts`).

    `execution_id` holds each row's number in `executions`, -1 for none. An instruction's whole cost stands on the first kernel of a
    launch and 0 on the others.
    """
    columns = {f.name: activities[f.name] for f in (*ACTIVITIES, *LAUNCHES)}
    columns["execution_id"] = pa.array(execution_id, mask=execution_id < 0)
    for name in ("hlo_module", "program_id"):
        columns[name] = take(executions[name], execution_id)
    columns["hlo_instruction"] = words(join.instruction, [name for _, name in join.instructions])
    columns["match_method"] = words(join.method.astype(np.int64), list(METHODS))
    columns["match_confidence"] = pa.array(join.confidence, mask=np.isnan(join.confidence))
    fact = fact_rows(join, facts)[join.instruction]
    fact[join.instruction < 0] = -1
    for name in ("kernel_class", "class_detail"):
        columns[name] = take(facts[name], fact)
    again = pa.array(~join.first_part)
    for name in BYTES:
        cost = take(facts[name], fact)
        columns[name] = pc.if_else(pc.and_(again, cost.is_valid()), pa.scalar(0, pa.int64()), cost) if not join.first_part.all() else cost
    columns["instruction_id"] = pa.array(fact.astype(np.int32), mask=fact < 0)
    schema = pa.schema([*ACTIVITIES, *JOIN, *COSTS, *LAUNCHES, pa.field("instruction_id", pa.int32())])
    return pa.table([columns[f.name].cast(f.type) for f in schema], schema=schema)


def fact_rows(join: Join, facts: pa.Table) -> np.ndarray:
    """For each instruction code of the join the row of `facts`, -1 where there is none (with one more -1 at the end)."""
    known = {
        (number, name): row
        for row, (number, name) in enumerate(zip(facts["program_id"].to_pylist(), facts["hlo_instruction"].to_pylist(), strict=True))
    }
    return np.array([known.get(key, -1) for key in join.instructions] + [-1], np.int64)


def words(codes: np.ndarray, dictionary: list[str]) -> pa.DictionaryArray:
    """A dictionary column from codes (-1 is null), whose words may repeat."""
    distinct = {w: n for n, w in enumerate(dict.fromkeys(dictionary))}
    lookup = np.array([distinct[w] for w in dictionary] + [-1], np.int32)
    indices = lookup[codes]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32(), mask=indices < 0), pa.array(list(distinct), pa.string())).cast(WORD)


def take(column: pa.ChunkedArray, rows: np.ndarray) -> pa.Array:
    """The values at rows, null where the row is -1."""
    one = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not len(one):
        return pa.nulls(len(rows), one.type)
    return one.take(pa.array(rows, pa.int64(), mask=rows < 0))
