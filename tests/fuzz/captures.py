"""Faults in captures, by the structure of an SQLite export. Each takes an open database (or a file's bytes) and says what it did."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable

Fault = Callable[[sqlite3.Connection, random.Random], str]

ODD_NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**32, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
ODD_VALUES = (None, "", "text", "²", b"\xff\xfe", 1.5, 1e300, *ODD_NUMBERS)


def _tables(db: sqlite3.Connection) -> list[str]:
    names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")]
    return [n for n in names if not n.startswith("ENUM_")]


def _table(db: sqlite3.Connection, rng: random.Random) -> str:
    return rng.choice(_tables(db))


def _column(db: sqlite3.Connection, table: str, rng: random.Random) -> str:
    return str(rng.choice([row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]))


def drop_table(db: sqlite3.Connection, rng: random.Random) -> str:
    table = _table(db, rng)
    db.execute(f'DROP TABLE "{table}"')
    return f"{table} dropped"


def drop_column(db: sqlite3.Connection, rng: random.Random) -> str:
    table = _table(db, rng)
    column = _column(db, table, rng)
    try:
        db.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    except sqlite3.OperationalError:
        db.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "was_{column}"')
    return f"{table}.{column} gone"


def odd_values(db: sqlite3.Connection, rng: random.Random) -> str:
    """One odd value in one row, in some, or in all."""
    table = _table(db, rng)
    column, value, share = _column(db, table, rng), rng.choice(ODD_VALUES), rng.choice((0.0, 0.1, 1.0))
    rows = [r for (r,) in db.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]
    chosen = rows if share == 1.0 else rng.sample(rows, min(len(rows), max(1, int(share * len(rows)))))
    try:
        db.executemany(f'UPDATE OR REPLACE "{table}" SET "{column}" = ? WHERE rowid = ?', [(value, row) for row in chosen])
    except (sqlite3.Error, OverflowError) as error:
        return f"{table}.{column} refused {value!r}: {error}"
    return f"{table}.{column} = {value!r} in {len(chosen)} of {len(rows)} rows"


def shifted_numbers(db: sqlite3.Connection, rng: random.Random) -> str:
    table = _table(db, rng)
    column, by = _column(db, table, rng), rng.choice((-(10**12), -1000, 1000, 10**12, 2**40))
    db.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = "{column}" + ? WHERE typeof("{column}") = \'integer\'', (by,))
    return f"{table}.{column} moved by {by}"


def lost_rows(db: sqlite3.Connection, rng: random.Random) -> str:
    table, share = _table(db, rng), rng.choice((0.01, 0.3, 1.0))
    rows = [r for (r,) in db.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid')]
    gone = rng.sample(rows, int(len(rows) * share))
    db.executemany(f'DELETE FROM "{table}" WHERE rowid = ?', [(row,) for row in gone])
    return f"{len(gone)} of {len(rows)} rows of {table} lost"


def doubled_rows(db: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice([t for t in _tables(db) if t != "StringIds"])
    db.execute(f'INSERT OR IGNORE INTO "{table}" SELECT * FROM "{table}" WHERE rowid % 3 = 0')
    return f"a third of {table} twice"


def swapped_values(db: sqlite3.Connection, rng: random.Random) -> str:
    """Two columns of one table change places."""
    table = _table(db, rng)
    one, other = _column(db, table, rng), _column(db, table, rng)
    try:
        db.execute(f'UPDATE OR IGNORE "{table}" SET "{one}" = "{other}", "{other}" = "{one}"')
    except sqlite3.Error as error:
        return f"{table}: {one} and {other} stay: {error}"
    return f"{table}: {one} and {other} swapped"


FAULTS: tuple[Fault, ...] = (
    drop_table,
    drop_column,
    odd_values,
    odd_values,
    odd_values,
    shifted_numbers,
    lost_rows,
    doubled_rows,
    swapped_values,
)


def other_order(db: sqlite3.Connection, rng: random.Random) -> str:
    """Nothing guarantees the order of rows."""
    table = rng.choice([t for t in _tables(db) if t.startswith(("CUPTI_ACTIVITY", "NVTX")) or t == "StringIds"])
    names = ", ".join(f'"{row[1]}"' for row in db.execute(f'PRAGMA table_info("{table}")'))
    db.execute(f'CREATE TABLE reordered AS SELECT {names} FROM "{table}" ORDER BY (rowid * 7919) % 10007, rowid')
    db.execute(f'DROP TABLE "{table}"')
    db.execute(f'ALTER TABLE reordered RENAME TO "{table}"')
    return f"{table} in another order"


def foreign_table(db: sqlite3.Connection, rng: random.Random) -> str:
    db.execute("CREATE TABLE OF_ANOTHER_TOOL (a INTEGER, b TEXT)")
    db.execute("INSERT INTO OF_ANOTHER_TOOL VALUES (1, 'x')")
    return "a table of another tool"


def more_columns(db: sqlite3.Connection, rng: random.Random) -> str:
    table = _table(db, rng)
    db.execute(f'ALTER TABLE "{table}" ADD COLUMN unheard_of INTEGER DEFAULT 7')
    return f"{table} has a column more"


def unused_strings(db: sqlite3.Connection, rng: random.Random) -> str:
    db.execute("INSERT INTO StringIds SELECT max(id) + 1, 'XlaModule:#hlo_module=jit_never,program_id=99999#' FROM StringIds")
    return "a string that nothing refers to"


def appended_again(db: sqlite3.Connection, rng: random.Random) -> str:
    """An export that was appended to itself: what happened once is counted once."""
    for table in (t for t in _tables(db) if t.startswith(("CUPTI_ACTIVITY", "NVTX"))):
        db.execute(f'INSERT OR IGNORE INTO "{table}" SELECT * FROM "{table}"')
    return "all events twice"


HARMLESS: tuple[Fault, ...] = (other_order, foreign_table, more_columns, unused_strings, appended_again)
"""What changes no figure."""


def damaged_bytes(data: bytearray, rng: random.Random) -> str:
    """Pages flipped, swapped or missing, as disks and copies leave them."""
    kind, page = rng.choice(("flip", "swap", "cut", "zero")), 4096
    pages = max(len(data) // page, 2)
    one, other = rng.randrange(1, pages), rng.randrange(1, pages)
    if kind == "flip":
        for _ in range(rng.choice((1, 16, 256))):
            data[rng.randrange(100, len(data))] ^= 1 << rng.randrange(8)
    elif kind == "swap":
        first, second = bytes(data[one * page : one * page + page]), bytes(data[other * page : other * page + page])
        if len(first) == len(second) == page:
            data[one * page : one * page + page], data[other * page : other * page + page] = second, first
    elif kind == "zero":
        data[one * page : one * page + page] = bytes(len(data[one * page : one * page + page]))
    else:
        del data[one * page :]
    return f"{kind} of pages"
