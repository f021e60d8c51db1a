"use strict";
// Charts that BokehJS draws.
(function (report) {
  const { root, data, box, element, isDark } = report;
  const charts = new Map();

  const none = (color) => color === null || color?.value === null;
  function paint(doc) {
    const dark = isDark();
    const ink = dark ? "#e6e9ee" : "#1b1f24", line = dark ? "#454d59" : "#c9ced6", grid = dark ? "#2e343d" : "#e3e6eb";
    for (const model of doc.all_models) {
      const type = model.type;
      if (type.endsWith("Axis")) {
        model.setv({ axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: none(model.axis_line_color) ? null : line,
                     major_tick_line_color: none(model.major_tick_line_color) ? null : line });
      } else if (type === "Grid" && !none(model.grid_line_color)) {
        model.setv({ grid_line_color: grid });
      } else if (type === "CategoricalColorMapper" && model.tags.length) {
        model.palette = entry(model.tags[0], dark ? "dark" : "light");
      } else if (model.tags.includes("ink") || model.tags.includes("ground")) {
        const color = model.tags.includes("ink") ? ink : dark ? "#1d2127" : "#ffffff";
        if (type === "Text") model.text_color = { value: color };
        else model.line_color = { value: color };
      }
    }
  }
  const entry = (map, key) => (map instanceof Map ? map.get(key) : map[key]);
  function paintAll() {
    for (const chart of charts.values()) {
      paint(chart.doc);
      if (chart.kind === "timeline") nameBars(chart);
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.classList.contains("pick")) show(event.target.dataset.for, Number(event.target.value));
  });
  document.addEventListener("click", (event) => {
    const target = event.target.closest("button[data-zoom]");
    if (target) zoom(target.dataset.for, target.dataset.zoom);
  });

  function plots(chart) {
    return chart.names.map((name) => chart.doc.get_model_by_name(name)).filter(Boolean);
  }

  function zoom(id, how) {
    const chart = charts.get(id);
    if (!chart) return;
    const range = plots(chart)[0].x_range;
    const [low, high] = chart.full, log = chart.kind === "roofline";
    const to = log ? Math.log10 : (x) => x, from = log ? (x) => 10 ** x : (x) => x;
    let start = to(range.start), end = to(range.end);
    const width = end - start, middle = (start + end) / 2;
    if (how === "all") [start, end] = [to(low), to(high)];
    else if (how === "in") [start, end] = [middle - width / 4, middle + width / 4];
    else if (how === "out") [start, end] = [middle - width, middle + width];
    else [start, end] = how === "left" ? [start - width / 4, end - width / 4] : [start + width / 4, end + width / 4];
    const size = Math.min(end - start, to(high) - to(low));
    if (start < to(low)) [start, end] = [to(low), to(low) + size];
    if (end > to(high)) [start, end] = [to(high) - size, to(high)];
    range.setv({ start: from(start), end: from(end) });
    if (how === "all" && chart.fullY) plots(chart)[0].y_range.setv({ start: chart.fullY[0], end: chart.fullY[1] });
  }

  const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "all" };
  function keys(event) {
    const how = KEYS[event.key];
    if (!how || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(event.currentTarget.id, how);
  }

  // Where bars are wide enough: a line before each, and as much of its name as fits.
  function nameBars(chart) {
    const plot = plots(chart)[0], d = chart.source.data;
    const inner = plot.inner_width || box(chart.id).clientWidth - 90;
    const { start, end } = plot.x_range, pixels = inner / (end - start);
    const texts = { black: { x: [], y: [], text: [] }, white: { x: [], y: [], text: [] } };
    const cuts = { x: [], low: [], high: [] };
    const ground = isDark() ? 1 : 0;
    for (let at = 0; at < d.left.length; at++) {
      const left = Math.max(d.left[at], start), right = Math.min(d.right[at], end), wide = (right - left) * pixels;
      if (!(wide > 4)) continue;
      cuts.x.push(d.left[at]); cuts.low.push(d.bottom[at]); cuts.high.push(d.top[at]);
      const full = d.bytes[at] === "–" ? d.name[at] : `${d.name[at]} · ${d.bytes[at]}`;
      const said = wide < 40 ? "" : fitting(full, d.name[at], wide - 6);
      if (!said) continue;
      const to = texts[(data.inks[d.class[at]] || ["#ffffff", "#000000"])[ground] === "#ffffff" ? "white" : "black"];
      to.x.push((left + right) / 2); to.y.push((d.top[at] + d.bottom[at]) / 2); to.text.push(said);
    }
    chart.cuts.data = cuts;
    chart.texts.black.data = texts.black;
    chart.texts.white.data = texts.white;
  }

  // The longest of a bar's texts that fits: with bytes, the whole name, or its ends; "" where too little of it would be left.
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px system-ui, sans-serif";
  function fitting(full, name, pixels) {
    if (pen.measureText(full).width <= pixels) return full;
    for (let letters = Math.min(name.length, Math.floor(pixels / 4)); letters >= Math.min(8, name.length); letters--) {
      const said = shorten(name, letters);
      if (pen.measureText(said).width <= pixels) return said;
    }
    return "";
  }

  function shorten(text, width) {
    if (text.length <= width) return text;
    const tail = Math.floor((width - 1) / 2);
    return text.slice(0, width - 1 - tail) + "…" + text.slice(text.length - tail);
  }

  const SCALES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  function show(id, place) {
    const chart = charts.get(id), all = data.timelines[id];
    const picked = all.shown[place];
    const [size, unit] = SCALES.find(([scale]) => picked.span >= scale) || SCALES[3];
    const columns = { left: [], right: [], top: [], bottom: [], class: [], name: [], kernel: [], at: [], time: [], bytes: [] };
    for (let i = 0; i < picked.row.length; i++) {
      const [name, kernel, kind, bytes] = all.kinds[picked.kind[i]];
      columns.left.push(picked.start[i] / size);
      columns.right.push((picked.start[i] + picked.length[i]) / size);
      columns.top.push(picked.row[i] - 0.42);
      columns.bottom.push(picked.row[i] + 0.42);
      columns.class.push(kind); columns.name.push(name); columns.kernel.push(kernel || "–");
      columns.at.push(`${(picked.start[i] / size).toLocaleString("en", { maximumFractionDigits: 3 })} ${unit}`);
      columns.time.push(all.times[picked.length[i]]); columns.bytes.push(bytes);
    }
    const plot = plots(chart)[0], end = Math.max(picked.span, 1) / size;
    plot.height = 62 + 36 * picked.rows.length;
    plot.x_range.setv({ bounds: [0, end], min_interval: end / 1e5, start: 0, end });
    plot.y_range.setv({ start: picked.rows.length - 0.5, end: -0.5 });
    const axis = plot.left[0];
    axis.ticker.ticks = picked.rows.map((_, at) => at);
    axis.major_label_overrides = new Map(picked.rows.map((name, at) => [at, name]));
    plot.below[0].axis_label = `time since ${picked.id === null ? "the first activity" : "the execution's start"} (${unit})`;
    chart.full = [0, end];
    chart.picked = picked.id;
    chart.source.selected.indices = [];
    chart.source.data = columns;
    box(`${id}-title`).textContent = picked.title;
    box(id).setAttribute("aria-label", `${picked.title}. Keys: plus and minus zoom, arrows move, 0 shows all.`);
    const select = document.querySelector(`select.pick[data-for="${id}"]`);
    if (select) select.value = String(place);
    key(id, picked, all.kinds);
    nameBars(chart);
  }

  // The classes with their share of the time, and what cannot be shown.
  function key(id, picked, kinds) {
    const total = new Map();
    let sum = 0;
    picked.kind.forEach((kind, at) => {
      const name = kinds[kind][2];
      total.set(name, (total.get(name) || 0) + picked.length[at]);
      sum += picked.length[at];
    });
    const said = box(`${id}-said`);
    const list = element("span", "key");
    for (const [name, time] of Array.from(total).sort((a, b) => b[1] - a[1])) {
      const item = element("span");
      item.append(element("i", Object.hasOwn(data.inks, name) ? `chip c-${name}` : "chip c-unknown"), `${name} ${((100 * time) / sum).toFixed(1)} %`);
      list.append(item);
    }
    said.replaceChildren(list, ...picked.notes.map((note) => element("span", "quiet", note)));
  }

  function tappedBar(chart) {
    const [at] = chart.source.selected.indices;
    if (at === undefined) return;
    const d = chart.source.data, said = box(`${chart.id}-said`);
    let line = said.querySelector(".tapped");
    if (!line) said.append((line = element("span", "tapped")));
    line.textContent = `${d.name[at]}: ${d.class[at]}, ${d.time[at]}, ${d.bytes[at]}; kernel ${d.kernel[at]}`;
  }

  function tappedRun(chart) {
    const [at] = chart.source.selected.indices;
    if (at === undefined) return;
    const d = chart.source.data;
    box(`${chart.id}-said`).textContent =
      `Execution ${d.which[at]} of ${d.program[at]}: begins at ${d.at[at]}, span ${d.span[at]}, kernel time ${d.kernels[at]}, idle before ${d.gap[at]}.`;
    const part = chart.id.split("-")[0];
    for (const [id, all] of Object.entries(data.timelines)) {
      if (!id.startsWith(`${part}-`)) continue;
      const place = all.shown.findIndex((timeline) => timeline.id === d.id[at]);
      if (place >= 0 && charts.has(id)) { show(id, place); break; }
    }
  }

  // The box of a chart takes the keys; what Bokeh drew inside of it is no further stop of the tab key.
  function oneStop(inside) {
    for (const child of inside.querySelectorAll("*")) {
      if (child.tabIndex >= 0) child.tabIndex = -1;
      if (child.shadowRoot) oneStop(child.shadowRoot);
    }
  }

  async function draw(spec) {
    const before = new Set(Bokeh.documents);
    await Bokeh.embed.embed_item(spec.item, spec.id);
    const doc = Bokeh.documents.find((one) => !before.has(one));
    const suffixes = { runs: ["lanes", "durations"], timeline: ["timeline"], roofline: ["roofline"] }[spec.kind];
    const chart = { id: spec.id, kind: spec.kind, doc, names: suffixes.map((suffix) => `${spec.id}-${suffix}`) };
    charts.set(spec.id, chart);
    const range = plots(chart)[0].x_range;
    chart.full = [range.start, range.end];
    paint(doc);
    const target = box(spec.id);
    oneStop(target);
    target.addEventListener("keydown", keys);
    target.addEventListener("dblclick", () => zoom(spec.id, "all"));
    if (spec.kind === "roofline") {
      const y = plots(chart)[0].y_range;
      chart.fullY = [y.start, y.end];
    } else {
      chart.source = doc.get_model_by_name(`${spec.id}-source`);
    }
    if (spec.kind === "runs") {
      const names = doc.get_model_by_name(`${spec.id}-names`);
      range.change.connect(() => { names.data = { ...names.data, x: names.data.x.map(() => range.start) }; });
      chart.source.selected.change.connect(() => tappedRun(chart));
    }
    if (spec.kind === "timeline") {
      const source = (name) => doc.get_model_by_name(`${spec.id}-${name}`);
      chart.cuts = source("cuts");
      chart.texts = { black: source("black"), white: source("white") };
      show(spec.id, 0);
      let waiting = false;
      range.change.connect(() => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => { waiting = false; nameBars(chart); });
      });
      plots(chart)[0].properties.inner_width.change.connect(() => nameBars(chart));
      chart.source.selected.change.connect(() => tappedBar(chart));
    }
  }

  async function drawAll() {
    for (const spec of data.charts) await draw(spec);
    root.dataset.ready = "yes";
  }
  report.charts = charts;
  report.onPaint(paintAll);
  drawAll();
})(window.report);
