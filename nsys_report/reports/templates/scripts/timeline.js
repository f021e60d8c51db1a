"use strict";
// The timeline: a view on one axis that is zoomed, moved, pointed at and selected on. timeline_rows.js lays it out, timeline_draw.js draws
// it, timeline_keys.js is for who points with no mouse.
(function (report) {
  const { data, box, element, above } = report;
  const timelines = new Map();
  const LEAST = 200; // ns that a view shows at least

  // Columns come as differences, which are short as text; a row's marks never overlap, so that both ends ascend.
  function unpacked(row) {
    const count = row.start.length;
    const start = new Float64Array(count), end = new Float64Array(count);
    for (let i = 0, at = 0; i < count; i++) {
      at += row.start[i];
      start[i] = at;
      end[i] = at + row.length[i];
    }
    return { ...row, start, end, look: Uint32Array.from(row.look) };
  }

  function make(id, raw) {
    const host = box(id);
    const made = { id, part: id.split("-")[0], raw, host, rows: raw.rows.map(unpacked), low: 0, high: Math.max(raw.span, LEAST),
                   hover: null, chosen: null, matches: null };
    made.lanes = report.layout(made);
    made.painter = report.painter(made);
    host.addEventListener("keydown", (event) => report.timelineKey(made, event));
    host.addEventListener("wheel", (event) => onWheel(made, event), { passive: false });
    host.addEventListener("dblclick", (event) => onDouble(made, event));
    drags(made);
    new ResizeObserver(() => { made.painter.resize(); draw(made); }).observe(host);
    timelines.set(id, made);
    report.restore(`t.${made.part}`, (value) => {
      const [low, high] = value.split("~").map(Number);
      if (high > low) view(made, low, high);
      else if (raw.picks.length) pick(made, 0);
      else view(made, 0, raw.span);
    });
    return made;
  }

  let frame = 0;
  const waiting = new Set();
  function draw(timeline) {
    waiting.add(timeline);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      for (const one of waiting) one.painter.draw();
      waiting.clear();
    });
  }

  // ---- what is in view ------------------------------------------------------------------------------------------
  function view(timeline, low, high) {
    const span = Math.max(timeline.raw.span, LEAST);
    const wide = Math.min(Math.max(high - low, LEAST), span);
    const middle = (low + high) / 2;
    timeline.low = Math.min(Math.max(middle - wide / 2, 0), span - wide);
    timeline.high = timeline.low + wide;
    draw(timeline);
    report.remember(`t.${timeline.part}`, `${Math.round(timeline.low)}~${Math.round(timeline.high)}`);
  }
  const zoom = (timeline, factor, at = (timeline.low + timeline.high) / 2) =>
    view(timeline, at - (at - timeline.low) * factor, at + (timeline.high - at) * factor);
  const move = (timeline, share) => {
    const by = (timeline.high - timeline.low) * share;
    view(timeline, timeline.low + by, timeline.high + by);
  };

  const STEPS = { in: (t) => zoom(t, 0.5), out: (t) => zoom(t, 2), left: (t) => move(t, -0.25), right: (t) => move(t, 0.25),
                  all: (t) => view(t, 0, t.raw.span) };
  document.addEventListener("click", (event) => {
    const target = event.target.closest("button[data-zoom]");
    if (target && timelines.has(target.dataset.for)) STEPS[target.dataset.zoom](timelines.get(target.dataset.for));
  });

  // A typical step fills the middle of the view; before and after it stand the ends of its neighbors.
  function pick(timeline, place) {
    const one = timeline.raw.picks[place];
    const [low, high] = one.view;
    view(timeline, low, high);
    box(`${timeline.id}-title`).textContent = one.title;
    const select = document.querySelector(`select.pick[data-for="${timeline.id}"]`);
    if (select) select.value = String(place);
  }
  document.addEventListener("change", (event) => {
    if (event.target.classList.contains("pick")) pick(timelines.get(event.target.dataset.for), Number(event.target.value));
  });

  // Shows an execution by its number; of marks that stand for several, the one that holds it.
  report.showExecution = function (part, number) {
    const timeline = timelines.get(`${part}-time`);
    if (!timeline) return;
    const place = timeline.raw.picks.findIndex((one) => one.id === number);
    const row = timeline.rows.find((one) => one.kind === "execution" && one.id.includes(number));
    report.reveal(timeline.host);
    if (place >= 0) pick(timeline, place);
    else if (row) choose(timeline, { row, at: row.id.indexOf(number) }, true);
  };

  // ---- pointing -------------------------------------------------------------------------------------------------
  const timeAt = (timeline, x) => {
    const { left, width } = timeline.painter.plot();
    return timeline.low + ((x - left) / width) * (timeline.high - timeline.low);
  };
  const inStrip = (timeline, y) => y < timeline.lanes.overview;

  // The mark under a point: of marks thinner than the pointer the nearest.
  function markAt(timeline, x, y) {
    const lane = timeline.lanes.all.find((one) => one.row && y >= one.y && y < one.y + one.height);
    if (!lane) return null;
    const time = timeAt(timeline, x), near = (timeAt(timeline, x + 4) - time);
    const { start, end } = lane.row;
    let best = null, distance = near;
    for (let at = Math.max(above(end, time - near) - 1, 0); at < start.length && start[at] <= time + near; at++) {
      const away = Math.max(start[at] - time, time - end[at], 0);
      if (away < distance) { best = at; distance = away; }
    }
    return best === null ? null : { row: lane.row, at: best };
  }

  function point(timeline, event) {
    const area = timeline.host.getBoundingClientRect();
    return [event.clientX - area.left, event.clientY - area.top];
  }

  // Dragging moves the view; over the overview, or with Shift, it marks what to zoom to. A press that does not move selects.
  function drags(timeline) {
    let from = null;
    const { host } = timeline;
    host.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const [x, y] = point(timeline, event);
      from = { x, y, low: timeline.low, high: timeline.high, marks: event.shiftKey || inStrip(timeline, y), moved: false };
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener("pointermove", (event) => {
      const [x, y] = point(timeline, event);
      if (!from) return hover(timeline, markAt(timeline, x, y));
      from.moved ||= Math.abs(x - from.x) > 3;
      if (!from.moved) return;
      if (from.marks) {
        timeline.brush = [from.x, x];
        draw(timeline);
      } else {
        const by = ((from.x - x) / timeline.painter.plot().width) * (from.high - from.low);
        view(timeline, from.low + by, from.high + by);
      }
    });
    const end = (event) => {
      if (!from) return;
      const [x, y] = point(timeline, event);
      const { marks, moved, x: begun } = from;
      from = timeline.brush = null;
      if (moved && marks) {
        const scale = (at) => (inStrip(timeline, y) || y < 0 ? timeline.painter.overviewTime(at) : timeAt(timeline, at));
        view(timeline, ...[scale(begun), scale(x)].sort((a, b) => a - b));
      } else if (!moved && inStrip(timeline, y)) {
        const middle = timeline.painter.overviewTime(x), half = (timeline.high - timeline.low) / 2;
        view(timeline, middle - half, middle + half);
      } else if (!moved) choose(timeline, markAt(timeline, x, y));
      draw(timeline);
    };
    host.addEventListener("pointerup", end);
    host.addEventListener("pointercancel", () => { from = timeline.brush = null; draw(timeline); });
    host.addEventListener("pointerleave", () => { if (!from) hover(timeline, null); });
  }

  function onWheel(timeline, event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const [x] = point(timeline, event);
    zoom(timeline, Math.exp(event.deltaY * 0.002), timeAt(timeline, x));
  }

  function onDouble(timeline, event) {
    const mark = markAt(timeline, ...point(timeline, event));
    if (!mark) return STEPS.all(timeline);
    const { start, end } = mark.row, room = (end[mark.at] - start[mark.at]) * 0.1 + 50;
    view(timeline, start[mark.at] - room, end[mark.at] + room);
  }

  // ---- hovering and choosing --------------------------------------------------------------------------------------
  const same = (one, other) => one === other || (one && other && one.row === other.row && one.at === other.at);
  function hover(timeline, mark) {
    if (same(mark, timeline.hover)) return;
    timeline.hover = mark;
    timeline.painter.point();
    timeline.host.style.cursor = mark ? "pointer" : "";
    inspect(timeline, mark || timeline.chosen);
  }

  function choose(timeline, mark, bring = false) {
    timeline.chosen = mark;
    inspect(timeline, mark);
    const look = mark && timeline.raw.looks[mark.row.look[mark.at]];
    if (mark?.row.kind === "execution") goExecution(timeline, mark);
    else if (bring && mark) show(timeline, mark);
    const name = look?.[3], section = name && (look[2] || sectionOf(timeline, name));
    report.select(section ? { section, name } : null);
    draw(timeline);
  }

  function goExecution(timeline, { row, at }) {
    const room = Math.max(row.end[at] - row.start[at], 1000) * 0.6;
    view(timeline, row.start[at] - Math.max(row.gap[at], 0) - room, row.end[at] + room);
    box(`${timeline.id}-title`).textContent = `Execution ${row.id[at]} of ${row.name}`;
  }

  // A range of XLA names its instruction and no program: the one program that has it, if there is one.
  function sectionOf(timeline, name) {
    return timeline.raw.looks.find((look) => look[3] === name && look[2])?.[2] ?? "";
  }

  // Moves the view so that a mark is in it, and so wide that it can be seen.
  function show(timeline, { row, at }) {
    const wide = timeline.high - timeline.low, length = row.end[at] - row.start[at];
    const wanted = length * 400 < wide ? length * 400 : Math.max(wide, length * 1.2);
    if (row.start[at] < timeline.low || row.end[at] > timeline.high || wanted !== wide) {
      const middle = (row.start[at] + row.end[at]) / 2;
      view(timeline, middle - wanted / 2, middle + wanted / 2);
    }
  }

  // What a mark is, beside the timeline: nothing of it is hidden.
  function inspect(timeline, mark) {
    const said = box(`${timeline.id}-said`);
    if (!mark) {
      said.replaceChildren(element("p", "quiet", "Point at a mark to see what it is; press one to select it everywhere."));
      return;
    }
    const { name, color, facts, look } = report.about(timeline, mark);
    const head = element("p", "what");
    head.append(element("i", `chip ${color}`), element("b", "", name));
    if (look?.[3] && look[2]) {
      const link = element("a", "", "in the table");
      link.href = `#${look[2]}:${encodeURIComponent(look[3])}`;
      head.append(" ", link);
    }
    const list = element("dl", "facts");
    for (const [label, value] of facts) {
      const pair = element("div");
      pair.append(element("dt", "", label), element("dd", "", value));
      list.append(pair);
    }
    said.replaceChildren(head, list);
    const hlo = look && data.hlo[look[2]]?.[look[3]];
    if (!hlo || !same(mark, timeline.chosen)) return;
    const fold = element("details", "fold");
    fold.append(element("summary", "", "HLO"), report.hloBlock(hlo, look[3]));
    said.append(fold);
  }

  report.onSelect((selection) => {
    for (const timeline of timelines.values()) {
      timeline.selected = selection ? looksOf(timeline, selection) : null;
      draw(timeline);
    }
  });
  function looksOf(timeline, { section, name }) {
    return new Set(timeline.raw.looks.flatMap((look, at) => (look[3] === name && (!look[2] || look[2] === section) ? [at] : [])));
  }

  report.timelines = timelines;
  report.viewTimeline = view;
  report.timelineSteps = STEPS;
  report.choose = choose;
  report.chooseQuietly = (timeline, mark) => { timeline.chosen = mark; inspect(timeline, mark); draw(timeline); };
  report.redraw = () => timelines.forEach(draw);
  report.startTimelines = () => report.each(data.timelines, (id, raw) => inspect(make(id, raw), null));
  report.onPaint(() => timelines.forEach(({ painter }) => { painter.recolor(); painter.draw(); })); // at once: paper does not wait
})(window.report);
