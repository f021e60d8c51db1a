"use strict";
// The timeline for who points with no mouse: keys, and what is in view as a table.
(function (report) {
  const { above, element } = report;

  const KEYS = { "+": "in", "=": "in", "-": "out", 0: "all", Home: "all" };
  report.timelineKey = function (timeline, event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== timeline.host) return;
    const { key } = event;
    if (KEYS[key]) report.timelineSteps[KEYS[key]](timeline);
    else if (key.startsWith("Arrow")) arrow(timeline, key.slice(5), event.shiftKey);
    else if (key === "Enter" && report.selection) report.go(`${report.selection.section}:${report.selection.name}`);
    else if (key === "Escape") report.choose(timeline, null);
    else return;
    event.preventDefault();
  };

  // Left and right go from mark to mark of a row, up and down to the nearest mark of the next row; with Shift the view moves.
  function arrow(timeline, way, shifted) {
    if (shifted && (way === "Left" || way === "Right")) return report.timelineSteps[way.toLowerCase()](timeline);
    const rows = timeline.lanes.all.filter((lane) => lane.row?.start.length).map((lane) => lane.row);
    const { chosen } = timeline;
    if (!chosen) return first(timeline, rows);
    if (way === "Left" || way === "Right") {
      const at = chosen.at + (way === "Left" ? -1 : 1);
      if (at >= 0 && at < chosen.row.start.length) step(timeline, chosen.row, at);
      return;
    }
    const row = rows[rows.indexOf(chosen.row) + (way === "Up" ? -1 : 1)];
    if (row) step(timeline, row, Math.min(above(row.end, chosen.row.start[chosen.at]), row.start.length - 1));
  }

  function first(timeline, rows) {
    const row = rows.find((one) => one.kind === "stream") ?? rows[0];
    if (row) step(timeline, row, Math.min(above(row.end, timeline.low), row.start.length - 1));
  }

  function step(timeline, row, at) {
    if (row.kind === "execution") report.chooseQuietly(timeline, { row, at });
    else report.choose(timeline, { row, at }, true);
  }

  // ---- the same as a table ----------------------------------------------------------------------------------------
  const MOST = 300;
  function listing(timeline) {
    const marks = timeline.lanes.all.flatMap(({ row, group }) => {
      if (!row) return [];
      const from = above(row.end, timeline.low), found = [];
      for (let at = from; at < row.start.length && row.start[at] < timeline.high; at++) found.push({ row, at, group });
      return found;
    }).sort((a, b) => a.row.start[a.at] - b.row.start[b.at]);
    const table = element("table"), body = element("tbody"), head = element("thead"), names = element("tr");
    for (const title of ["begins", "takes", "where", "what"]) names.append(element("th", "", title));
    head.append(names);
    for (const mark of marks.slice(0, MOST)) {
      const { row, at, group } = mark, line = element("tr");
      line.append(element("td", "n", report.moment(row.start[at])), element("td", "n", report.duration(row.end[at] - row.start[at])),
                  element("td", "", `${group} · ${row.name}`), element("td", "", report.about(timeline, mark).name));
      body.append(line);
    }
    table.append(head, body);
    const note = element("p", "quiet", marks.length > MOST ? `The first ${MOST} of ${marks.length} marks in view: zoom in for the others.`
                                                         : `${marks.length} marks in view.`);
    return [note, table];
  }
  document.addEventListener("toggle", (event) => {
    const timeline = event.target.classList.contains("listing") && report.timelines.get(event.target.dataset.for);
    if (timeline && event.target.open) event.target.querySelector(".scroll").replaceChildren(...listing(timeline));
  }, true);
})(window.report);
