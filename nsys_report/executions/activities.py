"""The activities table with what the join found: execution, instruction, method, class and costs of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hlo_mapping import ACTIVITIES, COSTS, JOIN, JOIN_METHODS, LAUNCHES, LaunchJoin
from nsys_report.capture.arrays import nullable, word_column

_INSTRUCTION = pa.field("instruction_id", pa.int32())
WITHOUT_COSTS = pa.schema([*ACTIVITIES, *JOIN, *LAUNCHES, _INSTRUCTION, pa.field("bears_cost", pa.bool_())])
WITH_COSTS = pa.schema([*ACTIVITIES, *JOIN, *COSTS, *LAUNCHES, _INSTRUCTION])
BYTES = ("bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")


def joined_activities(activities: pa.Table, join: LaunchJoin, execution_id: np.ndarray, executions: pa.Table, facts: pa.Table) -> pa.Table:
    """ACTIVITIES, JOIN and LAUNCHES, then instruction_id (row of `facts`) and bears_cost.

    `execution_id` holds each row's number in `executions`, -1 for none.
    """
    columns: dict[str, pa.Array | pa.ChunkedArray] = {f.name: activities[f.name] for f in (*ACTIVITIES, *LAUNCHES)}
    columns["execution_id"] = nullable(execution_id, execution_id < 0, pa.int64())
    for name in ("hlo_module", "program_id"):
        columns[name] = take(executions[name], execution_id)
    columns["hlo_instruction"] = word_column(join.instruction, [name for _, name in join.instructions])
    columns["match_method"] = word_column(join.method, list(JOIN_METHODS))
    columns["match_confidence"] = nullable(join.confidence, np.isnan(join.confidence), pa.float64())
    fact = fact_rows(join, facts)[join.instruction]
    # an annotated execution that the dump's program of that number does not fit has names from its ranges, but no facts
    fits = np.array([e.program is not None for e in join.executions] + [False], bool)
    if not fits[:-1].all():
        fact = np.where(fits[join.execution], fact, -1)
    columns["instruction_id"] = nullable(fact.astype(np.int32), fact < 0, pa.int32())
    columns["bears_cost"] = pa.array(join.first_part)
    return pa.table([columns[f.name].cast(f.type) for f in WITHOUT_COSTS], schema=WITHOUT_COSTS)


def with_costs(activities: pa.Table, facts: pa.Table) -> pa.Table:
    """Activities of joined_activities with class and costs: ACTIVITY_TABLE, then LAUNCHES and instruction_id.

    An instruction's whole cost stands on the kernel that bears it, and 0 on the others of its launch. A table that has them stays as it is.
    """
    if COSTS.names[0] in activities.column_names:
        return activities
    columns = {name: activities[name] for name in activities.column_names}
    fact = activities["instruction_id"].fill_null(-1).to_numpy()
    bears = activities["bears_cost"].to_numpy()
    again = None if bears.all() else ~bears
    for field in COSTS:
        columns[field.name] = take(facts[field.name], fact, again if field.name in BYTES else None)
    return pa.table([columns[f.name] for f in WITH_COSTS], schema=WITH_COSTS)


def fact_rows(join: LaunchJoin, facts: pa.Table) -> np.ndarray:
    """For each instruction code of the join the row of `facts`, -1 where there is none (with one more -1 at the end)."""
    known = {
        (number, name): row
        for row, (number, name) in enumerate(zip(facts["program_id"].to_pylist(), facts["hlo_instruction"].to_pylist(), strict=True))
    }
    return np.array([known.get(key, -1) for key in join.instructions] + [-1], np.int64)


def take(column: pa.ChunkedArray, rows: np.ndarray, zero: np.ndarray | None = None) -> pa.Array:
    """The values at rows, null where the row is -1; known numbers are 0 where `zero`."""
    one = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not len(one):
        return pa.nulls(len(rows), one.type)
    stored = one.indices if isinstance(one, pa.DictionaryArray) else one
    values = np.append(stored.fill_null(0).to_numpy(zero_copy_only=False), 0).astype(stored.type.to_pandas_dtype(), copy=False)
    missing = np.append(stored.is_null().to_numpy(zero_copy_only=False), True)[rows]
    found = values[rows]
    if zero is not None:
        found[zero] = 0
    taken = nullable(found, missing, stored.type)
    return pa.DictionaryArray.from_arrays(taken, one.dictionary) if isinstance(one, pa.DictionaryArray) else taken
