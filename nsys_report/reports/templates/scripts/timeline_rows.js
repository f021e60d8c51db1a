"use strict";
// Where the timeline's rows lie, and what its marks are in words.
(function (report) {
  const HEIGHT = { execution: 17, stream: 26, copies: 15, idle: 17, block: 15, range: 15, call: 14, strip: 30, dots: 64, header: 20 };
  const OVERVIEW = 34, AXIS = 22, GAP = 3;

  // ---- where rows lie ---------------------------------------------------------------------------------------------
  function executionRows({ runs }) {
    if (!runs) return [];
    return runs.lanes.map((name, lane) => {
      const at = runs.lane.flatMap((one, place) => (one === lane ? [place] : []));
      const of = (column) => at.map((place) => column[place]);
      const start = Float64Array.from(of(runs.start)), end = Float64Array.from(of(runs.end));
      return { kind: "execution", group: "Programs", name, start, end, look: new Uint32Array(at.length), color: `p-${lane % 8}`,
               id: of(runs.id), kernels: of(runs.kernels), gap: of(runs.gap), slowest: of(runs.slowest), count: of(runs.count),
               complete: of(runs.complete) };
    });
  }

  report.layout = function (timeline) {
    const { raw, rows } = timeline;
    const runs = executionRows(raw);
    timeline.rows = [...runs, ...rows];
    const all = [], groups = new Map();
    let y = OVERVIEW + AXIS;
    const add = (lane, height) => { all.push({ ...lane, y, height }); y += height + GAP; };
    const header = (group) => { y += 4; add({ group, header: true }, HEIGHT.header - 6); };
    if (runs.length) {
      header("Programs");
      for (const row of runs) add({ row, group: "Programs", name: row.name }, HEIGHT.execution);
      add({ group: "Programs", name: "kernel time ● and idle before ×", dots: runs }, HEIGHT.dots);
    }
    for (const row of rows) {
      if (!groups.has(row.group)) {
        header(row.group);
        const strip = raw.strips.find((one) => one.group === row.group);
        if (strip) add({ group: row.group, name: "busy, by what ran", strip }, HEIGHT.strip);
        groups.set(row.group, "");
      }
      add({ row, group: row.group, name: groups.get(row.group) === row.name ? "" : row.name }, HEIGHT[row.kind]);
      groups.set(row.group, row.name);
    }
    return { all, overview: OVERVIEW, axis: AXIS, height: y + 2 };
  };

  // ---- words ------------------------------------------------------------------------------------------------------
  const SCALES = report.SCALES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  function duration(ns) {
    const [size, unit] = SCALES.find(([one]) => ns >= one * 0.9995) || SCALES[3];
    const value = ns / size, digits = size === 1 ? 0 : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return `${value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
  }
  const moment = (ns) => `${(ns / 1e6).toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 6 })} ms`;

  report.duration = duration;
  report.moment = moment;

  // A mark in words: its name, its color, and labels with values.
  report.about = function (timeline, { row, at }) {
    const begins = ["begins", moment(row.start[at])], takes = ["takes", duration(row.end[at] - row.start[at])];
    if (row.kind === "execution") {
      const said = (ns) => (ns < 0 ? "–" : duration(ns)), several = row.count[at] > 1;
      const which = several ? `${row.id[at]} and the next ${row.count[at] - 1} (medians)` : `${row.id[at]}${row.complete[at] ? "" : ", cut off"}`;
      return { name: `Execution ${which} of ${row.name}`, color: row.color,
               facts: [begins, ["span", several ? `up to ${duration(row.slowest[at])}` : takes[1]], ["kernel time", said(row.kernels[at])],
                       ["idle before", said(row.gap[at])]] };
    }
    const look = timeline.raw.looks[row.look[at]], facts = [];
    for (let i = 0; i < look[4].length; i += 2) facts.push([look[4][i], look[4][i + 1]]);
    return { name: look[0], color: look[1], look, facts: [takes, begins, ...facts, ["on", `${row.group}, ${row.name}`]] };
  };

  // The first index whose value is greater than x; values ascend.
  report.above = function (values, x) {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > x) high = middle;
      else low = middle + 1;
    }
    return low;
  };
})(window.report);
