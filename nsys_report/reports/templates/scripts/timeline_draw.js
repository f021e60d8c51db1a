"use strict";
// How the timeline is painted. What is thinner than a pixel is shaded by how much of the pixel it covers, so that a row of short kernels
// with pauses does not look like a wall.
(function (report) {
  const { element, duration, SCALES } = report;
  const NARROW = 640;
  const FONT = "11px system-ui, sans-serif";

  report.painter = function (timeline) {
    const main = element("canvas"), over = element("canvas");
    over.className = "over";
    timeline.host.append(main, over);
    timeline.host.style.height = `${timeline.lanes.height}px`;
    const pen = main.getContext("2d", { alpha: false }), mark = over.getContext("2d");
    let width = 0, gutter = 150, inks = {}, letter = 7; // the width of a letter, about: to measure each name costs more than to draw it
    const { lanes, raw } = timeline, OVERVIEW = lanes.overview, AXIS = lanes.axis;

    function resize() {
      width = Math.max(timeline.host.clientWidth, 200);
      gutter = width < NARROW ? 0 : 150;
      const scale = window.devicePixelRatio || 1;
      for (const canvas of [main, over]) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(lanes.height * scale);
        canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
      }
    }
    const plot = () => ({ left: gutter, width: width - gutter });
    const xOf = (time) => gutter + ((time - timeline.low) / (timeline.high - timeline.low)) * (width - gutter);
    const overviewTime = (x) => ((x - gutter) / (width - gutter)) * raw.span;

    // The page's colors as they are now: they change with its theme.
    function recolor() {
      const style = getComputedStyle(report.root), of = (name) => style.getPropertyValue(`--${name}`).trim();
      inks = { ink: of("ink"), quiet: of("quiet"), line: of("line"), ground: of("card"), soft: of("soft"), accent: of("accent") };
      const names = new Set(["c-unknown", ...raw.looks.map((look) => look[1]), ...raw.strips.flatMap((strip) => strip.colors)]);
      for (const row of timeline.rows) if (row.color) names.add(row.color);
      for (const name of names) inks[name] = of(name) || inks.quiet;
      for (const name of names) inks[`${name}-ink`] = of(`${name}-ink`) || inks.ink;
    }

    function draw() {
      pen.font = FONT;
      letter = pen.measureText("gemm_fusion_dot.107 execute").width / 27;
      pen.fillStyle = inks.ground;
      pen.fillRect(0, 0, width, lanes.height);
      pen.textBaseline = "middle";
      grid();
      for (const lane of lanes.all) {
        if (lane.header) heading(lane);
        else if (lane.strip) stripes(lane.strip, lane.y, lane.height, timeline.low, timeline.high);
        else if (lane.dots) dots(lane);
        else bars(lane);
      }
      undetailed();
      labels();
      stripes(raw.strips[0], 0, OVERVIEW, 0, raw.span);
      brush();
      point();
    }

    function grid() {
      const wide = timeline.high - timeline.low, least = wide / Math.max((width - gutter) / 110, 2);
      const size = 10 ** Math.floor(Math.log10(least)), step = [1, 2, 5, 10].map((n) => n * size).find((n) => n >= least);
      const [scale, unit] = SCALES.find(([one]) => raw.span >= one) || SCALES[3];
      const digits = Math.max(Math.ceil(-Math.log10(step / scale)), 0);
      pen.fillStyle = inks.line;
      for (let at = Math.ceil(timeline.low / step) * step; at <= timeline.high; at += step) {
        const x = Math.round(xOf(at));
        pen.fillStyle = inks.line;
        pen.fillRect(x, OVERVIEW + AXIS - 4, 1, lanes.height);
        pen.fillStyle = inks.quiet;
        const text = `${(at / scale).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
        pen.fillText(text, Math.min(x + 3, width - pen.measureText(text).width), OVERVIEW + AXIS / 2 - 1);
      }
    }

    function heading({ y, height, group }) {
      pen.fillStyle = inks.soft;
      pen.fillRect(0, y, width, height);
      pen.fillStyle = inks.ink;
      pen.fillText(group, 4, y + height / 2);
    }

    function labels() {
      if (gutter) {
        pen.fillStyle = inks.ground;
        for (const lane of lanes.all) if (!lane.header) pen.fillRect(0, lane.y - 1, gutter - 1, lane.height + 2);
      }
      for (const { y, height, name, header } of lanes.all) {
        if (header || !name) continue;
        const said = fitting(name, (gutter || 140) - 8);
        if (!gutter) {
          pen.fillStyle = inks.ground;
          pen.globalAlpha = 0.8;
          pen.fillRect(0, y, pen.measureText(said).width + 6, Math.min(height, 13));
          pen.globalAlpha = 1;
        }
        pen.fillStyle = inks.quiet;
        pen.fillText(said, gutter ? 8 : 3, gutter ? y + height / 2 : y + Math.min(height, 13) / 2);
      }
    }

    function fitting(text, pixels) {
      const letters = Math.floor(pixels / letter);
      if (text.length <= letters) return text;
      const tail = Math.floor((letters - 1) / 2);
      return letters < 6 ? "" : `${text.slice(0, letters - 1 - tail)}…${text.slice(text.length - tail)}`;
    }

    // What a person calls it; of layers[3].o_proj the last part, where there is no room for more.
    function called([name, , , , , label], pixels) {
      if (!label) return fitting(name, pixels);
      return label.length * letter <= pixels ? label : fitting(label.split(".").pop(), pixels);
    }

    const colorOf = (row, at) => row.color ?? raw.looks[row.look[at]][1];
    const isDim = (row, at) => timeline.matches !== null && !row.color && !timeline.matches.has(row.look[at]);

    function bars({ row, y, height }) {
      const { start, end } = row, { low, high } = timeline, scale = (width - gutter) / (high - low);
      let pixel = -1, covered = 0, longest = 0, color = "", lit = false; // what lies within one pixel, and of that the longest
      const flush = () => {
        if (pixel < 0) return;
        pen.globalAlpha = Math.min(Math.max(covered, 0.3), 1) * (lit ? 1 : 0.2);
        pen.fillStyle = inks[color];
        pen.fillRect(pixel, y, 1, height);
        pixel = -1;
      };
      for (let at = report.above(end, low); at < start.length && start[at] < high; at++) {
        const from = gutter + (start[at] - low) * scale, wide = (end[at] - start[at]) * scale, bright = !isDim(row, at);
        if (wide >= 1) {
          flush();
          bar(row, at, Math.max(from, gutter), Math.min(from + wide, width), y, height, bright);
          continue;
        }
        const here = Math.floor(from);
        if (here !== pixel) {
          flush();
          pixel = here; covered = 0; longest = -1; lit = false;
        }
        covered += wide;
        if ((bright && !lit) || (bright === lit && wide > longest)) { longest = wide; color = colorOf(row, at); }
        lit ||= bright;
      }
      flush();
      pen.globalAlpha = 1;
    }

    function bar(row, at, from, to, y, height, bright) {
      const color = colorOf(row, at), wide = to - from;
      if (row.gap && row.gap[at] > 0) {
        pen.globalAlpha = 0.25;
        pen.fillStyle = inks[color];
        const before = Math.max(xOf(row.start[at] - row.gap[at]), gutter);
        pen.fillRect(before, y + height / 4, from - before, height / 2);
      }
      pen.globalAlpha = bright ? 1 : 0.2;
      pen.fillStyle = inks[color];
      pen.fillRect(from, y, wide > 3 ? wide - 0.5 : wide, height);
      if (wide < 34) return;
      const said = row.kind === "execution" ? fitting(String(row.id[at]), wide - 6) : called(raw.looks[row.look[at]], wide - 6);
      if (!said) return;
      pen.fillStyle = inks[`${color}-ink`];
      pen.fillText(said, from + 3, y + height / 2 + 0.5, wide - 6); // letters wider than the mean are set closer
    }

    // Shares of what ran and of why nothing did, stacked; each bin as wide as it is in view.
    function stripes(strip, y, height, low, high) {
      if (!strip) return;
      const scale = (width - gutter) / (high - low), { bin, percent, colors } = strip, count = percent[0]?.length ?? 0;
      const first = Math.max(Math.floor(low / bin), 0), last = Math.min(Math.ceil(high / bin), count);
      const each = Math.max(Math.floor((last - first) / (width - gutter)), 1);
      for (let at = first; at < last; at += each) {
        const from = Math.max(Math.floor(gutter + (at * bin - low) * scale), gutter);
        const to = Math.min(Math.ceil(gutter + ((at + each) * bin - low) * scale), width);
        let base = y + height;
        for (let kind = 0; kind < colors.length; kind++) {
          const tall = (percent[kind][at] / 100) * height;
          if (!tall) continue;
          base -= tall;
          pen.fillStyle = inks[colors[kind]];
          pen.fillRect(from, Math.max(base, y), Math.max(to - from, 1), tall);
        }
      }
    }

    const largest = (columns) => columns.reduce((most, column) => column.reduce((m, v) => Math.max(m, v), most), 1);
    function stroke(...lines) {
      pen.beginPath();
      for (const [[x, y], ...others] of lines) {
        pen.moveTo(x, y);
        for (const to of others) pen.lineTo(...to);
      }
      pen.stroke();
    }

    // Each execution's kernel time as a dot and the idle time before it as a cross, on one scale of time; of several executions in one
    // mark the medians, and the slowest one's span as a triangle.
    function dots({ dots: rows, y, height }) {
      const several = rows.map((row) => row.slowest.filter((_, at) => row.count[at] > 1));
      const top = largest([...several, ...rows.flatMap((row) => [row.kernels, row.gap])]);
      const level = (ns) => y + height - 4 - (ns / top) * (height - 10);
      pen.fillStyle = inks.quiet;
      pen.fillRect(gutter, Math.round(level(0)), width - gutter, 1);
      for (const row of rows) {
        pen.fillStyle = pen.strokeStyle = inks[row.color];
        for (let at = report.above(row.end, timeline.low); at < row.start.length && row.start[at] < timeline.high; at++) {
          const x = xOf(row.start[at]);
          if (row.kernels[at] > 0) pen.fillRect(x - 2, level(row.kernels[at]) - 2, 4, 4);
          if (row.gap[at] > 0) {
            const cross = level(row.gap[at]);
            stroke([[x - 2.5, cross - 2.5], [x + 2.5, cross + 2.5]], [[x + 2.5, cross - 2.5], [x - 2.5, cross + 2.5]]);
          }
          if (row.count[at] > 1) {
            const tip = level(row.slowest[at]);
            stroke([[x, tip - 3], [x + 3, tip + 2], [x - 3, tip + 2], [x, tip - 3]]);
          }
        }
      }
      pen.fillStyle = inks.quiet;
      const said = duration(top);
      pen.fillText(said, width - pen.measureText(said).width - 2, y + 6);
    }

    // Where the page holds no marks: said, so that it is not taken for idle time.
    function undetailed() {
      const top = lanes.all.find((lane) => lane.row && lane.row.kind !== "execution")?.y ?? lanes.height;
      let from = timeline.low;
      for (const [low, high] of [...raw.windows, [timeline.high, timeline.high]]) {
        if (low > from && from < timeline.high) {
          const left = Math.max(xOf(from), gutter), right = Math.min(xOf(Math.min(low, timeline.high)), width);
          if (right - left > 120) {
            pen.fillStyle = inks.quiet;
            pen.fillText("no details here: see the strip", left + 6, top + 8);
          }
        }
        from = Math.max(from, high);
      }
    }

    function brush() {
      const x = (time) => gutter + (time / Math.max(raw.span, 1)) * (width - gutter);
      const from = x(timeline.low), to = Math.max(x(timeline.high), from + 2);
      pen.fillStyle = inks.ground;
      pen.globalAlpha = 0.6;
      pen.fillRect(gutter, 0, from - gutter, OVERVIEW);
      pen.fillRect(to, 0, width - to, OVERVIEW);
      pen.globalAlpha = 1;
      pen.strokeStyle = inks.accent;
      pen.lineWidth = 1.5;
      pen.strokeRect(from, 0.75, to - from, OVERVIEW - 1.5);
      pen.lineWidth = 1;
      if (!timeline.brush) return;
      const [low, high] = [...timeline.brush].sort((a, b) => a - b);
      pen.fillStyle = inks.accent;
      pen.globalAlpha = 0.25;
      pen.fillRect(low, 0, high - low, lanes.height);
      pen.globalAlpha = 1;
    }

    // What is pointed at, chosen and selected, on a canvas of its own: pointing paints no bars again.
    function point() {
      mark.clearRect(0, 0, width, lanes.height);
      mark.strokeStyle = inks.ink;
      if (timeline.selected) for (const lane of lanes.all) if (lane.row && !lane.row.color) outline(lane, (at) => timeline.selected.has(lane.row.look[at]), 1);
      for (const [one, size] of [[timeline.hover, 1.5], [timeline.chosen, 2.5]]) {
        const lane = one && lanes.all.find((other) => other.row === one.row);
        if (lane) outline(lane, (at) => at === one.at, size);
      }
    }
    function outline({ row, y, height }, wanted, size) {
      mark.lineWidth = size;
      let last = -1;
      for (let at = report.above(row.end, timeline.low); at < row.start.length && row.start[at] < timeline.high; at++) {
        if (!wanted(at)) continue;
        const from = Math.max(xOf(row.start[at]), gutter), to = Math.max(Math.min(xOf(row.end[at]), width), from + 2);
        if (to <= last + 1) continue;
        mark.strokeRect(from - 0.5, y - 1, to - from + 1, height + 2);
        last = to;
      }
    }

    recolor();
    resize();
    return { draw, point, resize, recolor, plot, overviewTime };
  };
})(window.report);
