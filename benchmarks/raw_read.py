"""The least that a report can take: the columns of the kernel table, fetched and forgotten. `python -m benchmarks.raw_read CAPTURE`."""

from __future__ import annotations

import sys
from pathlib import Path

import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

COLUMNS = (
    "start", "end", "shortName", "graphNodeId", "deviceId", "streamId", "correlationId", "globalPid",
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
)  # fmt: skip
BATCH_ROWS = 65_536


def raw_read(capture: Path) -> int:
    """Rows of the kernel table, after all of them came through ADBC in batches."""
    query = f"SELECT {', '.join(f'{chr(34)}{name}{chr(34)}' for name in COLUMNS)} FROM CUPTI_ACTIVITY_KIND_KERNEL"
    with (
        adbc_driver_sqlite.connect(f"file:{capture}?mode=ro") as database,
        adbc_driver_manager.AdbcConnection(database) as connection,
        adbc_driver_manager.AdbcStatement(connection) as statement,
    ):
        statement.set_options(**{adbc_driver_sqlite.StatementOptions.BATCH_ROWS.value: str(BATCH_ROWS)})
        statement.set_sql_query(query)
        stream, _ = statement.execute_query()
        with pa.RecordBatchReader.from_stream(stream) as reader:
            return sum(batch.num_rows for batch in reader)


if __name__ == "__main__":
    print(raw_read(Path(sys.argv[1])))
