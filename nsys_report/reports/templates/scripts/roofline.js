"use strict";
// Rooflines: instructions as dots under the lines that bound them, on two logarithmic axes. Drawn as SVG, which paper shows as well.
(function (report) {
  const { data, box, element } = report;
  const SVG = "http://www.w3.org/2000/svg", HEIGHT = 380, MARGIN = { left: 58, right: 12, top: 8, bottom: 40 };
  const charts = new Map();

  function shape(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function draw(chart) {
    const { raw, host } = chart, width = Math.max(host.clientWidth, 240);
    const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
    const along = (value, [low, high]) => Math.log(value / low) / Math.log(high / low);
    const x = (value) => MARGIN.left + along(value, chart.x) * inner.width;
    const y = (value) => MARGIN.top + (1 - along(value, chart.y)) * inner.height;
    const svg = shape("svg", { width, height: HEIGHT, "aria-hidden": "true" });
    const clip = `${chart.id}-clip`, area = shape("clipPath", { id: clip });
    area.append(shape("rect", { x: MARGIN.left, y: MARGIN.top, width: inner.width, height: inner.height }));
    svg.append(area);
    for (const at of decades(chart.x, inner.width)) {
      svg.append(shape("line", { x1: x(at), x2: x(at), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, class: "grid" }),
                 shape("text", { x: x(at), y: HEIGHT - MARGIN.bottom + 15, "text-anchor": x(at) > width - 2 * MARGIN.right - 8 ? "end" : "middle" }, figure(at)));
    }
    for (const at of decades(chart.y, inner.height)) {
      svg.append(shape("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(at), y2: y(at), class: "grid" }),
                 shape("text", { x: MARGIN.left - 6, y: y(at) + 4, "text-anchor": "end" }, figure(at)));
    }
    svg.append(shape("text", { x: MARGIN.left + inner.width / 2, y: HEIGHT - 5, "text-anchor": "middle" }, "arithmetic intensity (FLOP per byte)"),
               shape("text", { transform: `translate(12 ${MARGIN.top + inner.height / 2}) rotate(-90)`, "text-anchor": "middle" }, "TFLOPS"));
    const plot = shape("g", { "clip-path": `url(#${clip})` });
    roofs(plot, chart, x, y, width);
    for (const point of raw.points) plot.append(dot(chart, point, x(point.x), y(point.y)));
    svg.append(plot);
    host.replaceChildren(svg);
    select(chart);
  }

  // Whole powers of ten, and between them 2 and 5 where there is room.
  function decades([low, high], pixels) {
    const found = [], roomy = pixels / Math.log10(high / low) > 130;
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const digit of roomy ? [1, 2, 5] : [1]) found.push(digit * 10 ** power);
    }
    return found.filter((at) => at >= low && at <= high);
  }
  const figure = (value) => (value >= 1 ? value.toLocaleString("en") : String(Number(value.toPrecision(3))));

  function roofs(plot, chart, x, y, width) {
    let line = 0;
    for (const roof of chart.raw.roofs) {
      const [low, high] = chart.x, steep = roof.slope !== undefined;
      const from = steep ? low : Math.max(roof.start ?? low, low), to = steep ? Math.min(roof.end ?? high, high) : high;
      const level = (at) => (steep ? at * roof.slope : roof.level);
      plot.append(shape("line", { x1: x(from), y1: y(level(from)), x2: x(to), y2: y(level(to)), class: roof.dashed ? "roof dashed" : "roof" }));
      const said = steep ? `${roof.dashed ? "- - -" : "——"} ${roof.text}` : roof.text;
      const place = steep ? { x: MARGIN.left + 8, y: MARGIN.top + 14 + 17 * line++ } : { x: width - MARGIN.right - 4, y: y(roof.level) - 5, "text-anchor": "end" };
      plot.append(shape("text", { ...place, class: "says" }, said));
    }
  }

  function dot(chart, point, x, y) {
    const made = shape("circle", { cx: x, cy: y, r: 3 + 17 * Math.sqrt(point.share), style: `fill:var(--${point.color})` });
    made.report = point;
    return made;
  }

  function say(chart, point) {
    const said = box(`${chart.id}-said`), head = element("p", "what"), list = element("dl", "facts");
    if (!point) return said.replaceChildren();
    head.append(element("i", `chip ${point.color}`), element("b", "", point.name));
    for (const [label, value] of point.facts) {
      const pair = element("div");
      pair.append(element("dt", "", label), element("dd", "", value));
      list.append(pair);
    }
    said.replaceChildren(head, list);
  }

  // The dot of the selected instruction has a ring; others stand back.
  function select(chart) {
    const { selection } = report, name = selection?.section === chart.raw.section ? selection.name : null;
    let found = null;
    for (const circle of chart.host.querySelectorAll("circle")) {
      const mine = circle.report.name === name;
      circle.classList.toggle("chosen", mine);
      if (mine) found = circle;
    }
    chart.host.classList.toggle("chosen", Boolean(found));
    say(chart, found?.report);
  }

  function zoom(chart, how) {
    const factor = { in: 0.6, out: 1 / 0.6 }[how];
    for (const axis of ["x", "y"]) {
      const [low, high] = chart.raw[axis];
      if (how === "all") chart[axis] = [low, high];
      else if (factor) {
        const middle = Math.sqrt(chart[axis][0] * chart[axis][1]), reach = (chart[axis][1] / chart[axis][0]) ** (factor / 2);
        chart[axis] = [Math.max(middle / reach, low), Math.min(middle * reach, high)];
      } else if (axis === "x") {
        const by = (chart.x[1] / chart.x[0]) ** (how === "left" ? -0.2 : 0.2);
        if (chart.x[0] * by >= low * 0.999 && chart.x[1] * by <= high * 1.001) chart.x = chart.x.map((at) => at * by);
      }
    }
    draw(chart);
  }

  const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "all" };
  function make(id, raw) {
    const host = box(id), chart = { id, raw, host, x: raw.x, y: raw.y };
    charts.set(id, chart);
    host.addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      zoom(chart, KEYS[event.key]);
    });
    const pointed = (event) => event.target.report;
    host.addEventListener("pointerover", (event) => pointed(event) && say(chart, pointed(event)));
    host.addEventListener("click", (event) => pointed(event) && report.select({ section: raw.section, name: pointed(event).name }));
    host.addEventListener("dblclick", () => zoom(chart, "all"));
    new ResizeObserver(() => draw(chart)).observe(host);
    draw(chart);
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("button[data-zoom]"), chart = target && charts.get(target.dataset.for);
    if (chart) zoom(chart, target.dataset.zoom);
  });
  report.onSelect(() => charts.forEach(select));
  report.drawRooflines = () => charts.forEach(draw);
  report.startRooflines = () => report.each(data.rooflines, make);
})(window.report);
