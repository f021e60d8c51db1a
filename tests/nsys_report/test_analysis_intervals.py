from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsys_report import intervals
from nsys_report.analysis.arrays.quantiles import grouped_quantiles
from nsys_report.intervals import Ranges

_RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(-2, 12)), max_size=12)


def _set(pairs: list[tuple[int, int]]) -> tuple[Ranges, set[int]]:
    starts = np.array([s for s, _ in pairs], np.int64)
    ends = np.array([s + d for s, d in pairs], np.int64)
    return Ranges(starts, ends), {t for s, d in pairs for t in range(s, s + d)}


def _points(ranges: Ranges) -> set[int]:
    return {t for s, e in zip(ranges.starts.tolist(), ranges.ends.tolist(), strict=True) for t in range(s, e)}


@given(_RANGES, _RANGES)
def test_set_arithmetic_agrees_with_sets_of_points(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    (a, in_a), (b, in_b) = _set(left), _set(right)
    ua, ub = intervals.union(*a), intervals.union(*b)
    assert _points(ua) == in_a
    assert intervals.length(ua) == len(in_a) == intervals.union_length(*a)
    assert np.all(ua.starts[1:] > ua.ends[:-1])
    assert _points(intervals.union_of(ua, ub)) == in_a | in_b
    assert _points(intervals.intersect(ua, ub)) == in_a & in_b
    assert _points(intervals.subtract(ua, ub)) == in_a - in_b
    assert _points(intervals.gaps(ua, 10, 50)) == set(range(10, 50)) - in_a
    assert _points(intervals.clip(ua, 10, 50)) == in_a & set(range(10, 50))


@given(_RANGES, _RANGES)
def test_windows_measure_what_they_cover(ranges: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    (a, in_a), (w, _) = _set(ranges), _set(windows)
    found = intervals.within(intervals.union(*a), *w)
    assert found.tolist() == [len(in_a & set(range(s, s + d))) for s, d in windows]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(-2, 12)), max_size=15))
def test_grouped_union(rows: list[tuple[int, int, int]]) -> None:
    group, starts, lengths = (np.array([r[i] for r in rows], np.int64) for i in range(3))
    found = intervals.grouped_union_length(group, starts, starts + lengths, 4)
    assert found.tolist() == [len({t for g, s, d in rows if g == k for t in range(s, s + d)}) for k in range(4)]


def test_previous_end_is_the_latest_so_far() -> None:
    starts, ends = np.array([0, 2, 3, 20]), np.array([10, 4, 5, 25])
    assert intervals.previous_end(starts, ends).tolist() == [0, 10, 10, 10]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-(10**6), 2**40)), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
)
def test_grouped_quantiles_are_numpy_s(rows: list[tuple[int, int]], q: float) -> None:
    group, values = np.array([g for g, _ in rows], np.int64), np.array([v for _, v in rows], np.int64)
    found = grouped_quantiles(group, values, 4, (q,))[0]
    for k in range(4):
        mine = values[group == k]
        assert np.isnan(found[k]) if len(mine) == 0 else np.isclose(found[k], np.quantile(mine, q), rtol=1e-12)
