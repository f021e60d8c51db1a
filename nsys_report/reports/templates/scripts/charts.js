"use strict";
// Charts that BokehJS draws.
(function (report) {
  const { data, box, isDark } = report;
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
    }
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("button[data-zoom]");
    if (target) zoom(target.dataset.for, target.dataset.zoom);
  });

  const plot = (chart) => chart.doc.get_model_by_name(`${chart.id}-roofline`);

  function zoom(id, how) {
    const chart = charts.get(id);
    if (!chart) return;
    const range = plot(chart).x_range;
    const [low, high] = chart.full, to = Math.log10, from = (x) => 10 ** x;
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
    if (how === "all") plot(chart).y_range.setv({ start: chart.fullY[0], end: chart.fullY[1] });
  }

  const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "all" };
  function keys(event) {
    const how = KEYS[event.key];
    if (!how || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(event.currentTarget.id, how);
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
    const chart = { id: spec.id, doc };
    charts.set(spec.id, chart);
    const { x_range: x, y_range: y } = plot(chart);
    chart.full = [x.start, x.end];
    chart.fullY = [y.start, y.end];
    paint(doc);
    const target = box(spec.id);
    oneStop(target);
    target.addEventListener("keydown", keys);
    target.addEventListener("dblclick", () => zoom(spec.id, "all"));
  }

  report.charts = charts;
  report.onPaint(paintAll);
  report.drawCharts = async () => {
    for (const spec of data.charts) await draw(spec);
  };
})(window.report);
