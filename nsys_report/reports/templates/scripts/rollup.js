"use strict";
// Roll-ups: a typical step as boxes within boxes, as wide as their time and colored by their share of the roof, over a table of the same
// rows that open. What is asked for (by name, source line, layer, ...), searched and opened stands in the address.
(function (report) {
  const { data, box, element } = report;
  const NAME = 0, TIME = 1, ROOF = 2, LAUNCHES = 3, WORDS = 4, FIRST = 12, THINNEST = 0.0015, WORDY = 34, USUAL = 1000; // the last two in pixels: a box with a name, the whole while it is hidden
  const HEADINGS = [["name", "what", NAME], ["launches", "launches", LAUNCHES], ["time", "time", TIME], ["share", "share", TIME], ["roof", "of the roof", ROOF], ["bytes", "bytes", -1], ["floor", "floor", -1]];
  // Cividis: as even for the color-blind as for others (Nuñez, Anderton, Renslow, PLOS ONE 13(7), 2018), here at even steps.
  const RAMP = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];

  function color(roof) {
    const at = Math.min(Math.max(roof, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2), part = at - low;
    return RAMP[low].map((value, i) => Math.round(value + (RAMP[low + 1][i] - value) * part));
  }
  function paint(made, roof) {
    if (roof < 0) return made.classList.add("unknown");
    const [red, green, blue] = color(roof);
    made.style.background = `rgb(${red},${green},${blue})`;
    made.style.color = red * 0.299 + green * 0.587 + blue * 0.114 > 118 ? "#000" : "#fff";
  }

  // Rows in the order of reading become nodes that know what is in them.
  function grown(raw, rows) {
    const top = { inside: [], depth: -1, figures: ["all of a typical step", 0, -1] }, open = [top];
    for (const [depth, ...rest] of rows) {
      const leaf = rest.length === 1 ? raw.leaves[rest[0]] : null, figures = leaf ? leaf.slice(1) : rest;
      while (open[open.length - 1].depth >= depth) open.pop();
      const above = open[open.length - 1], node = { depth, figures, leaf: leaf ? leaf[0] : null, inside: [], above, open: false };
      above.inside.push(node);
      open.push(node);
    }
    top.figures[TIME] = top.inside.reduce((sum, node) => sum + node.figures[TIME], 0);
    return top;
  }

  function make(id, raw) {
    const host = box(id), view = { id, raw, host, way: raw.ways[0][0], query: "", all: false, sort: "time", down: true, trees: new Map() };
    const tools = element("div", "tools"), by = element("label", "", "by "), choice = element("select"), find = element("label", "", "Search "), input = element("input");
    view.icicle = element("div", "icicle");
    view.icicle.setAttribute("aria-hidden", "true");
    view.said = element("p", "said");
    view.said.setAttribute("role", "status");
    view.table = element("div", "scroll");
    view.table.tabIndex = 0;
    view.table.setAttribute("role", "group");
    view.table.setAttribute("aria-label", "What runs, group within group");
    report.fades(view.table);
    view.more = element("p", "quiet");
    for (const [key, title] of raw.ways) {
      const option = element("option", "", title);
      option.value = key;
      choice.append(option);
    }
    input.type = "search";
    input.autocomplete = "off";
    input.spellcheck = false;
    by.append(choice);
    find.append(input);
    tools.append(by, find, scale());
    view.table.addEventListener("click", (event) => event.stopPropagation()); // the page's other tables sort and open in their own way
    host.replaceChildren(tools, view.icicle, view.said, view.table, view.more);
    view.set = (way) => {
      view.way = raw.ways.some(([key]) => key === way) ? way : raw.ways[0][0];
      choice.value = view.way;
      view.root = view.tree = tree(view);
      view.all = false;
      draw(view);
    };
    choice.addEventListener("change", () => { report.remember(`r.${id}`, choice.value === raw.ways[0][0] ? "" : choice.value); view.set(choice.value); });
    input.addEventListener("input", () => { report.remember(`rf.${id}`, input.value); view.query = input.value; draw(view); });
    report.restore(`r.${id}`, (value) => view.set(value || raw.ways[0][0]));
    report.restore(`rf.${id}`, (value) => { input.value = view.query = value; draw(view); });
    report.onSelect(() => draw(view));
    view.set(view.way);
  }

  function tree(view) {
    if (!view.trees.has(view.way)) view.trees.set(view.way, grown(view.raw, view.raw.ways.find(([key]) => key === view.way)[2]));
    return view.trees.get(view.way);
  }

  function scale() {
    const made = element("span", "ramp"), bar = element("i");
    bar.style.background = `linear-gradient(to right,${RAMP.map((c) => `rgb(${c})`).join(",")})`;
    const unknown = element("span", "tied");
    unknown.append(element("i", "unknown"), " unknown");
    made.append("0 %", bar, "100 % of the roof", unknown);
    return made;
  }

  // What is searched for: a node fits if it or what it is in says all words; what holds a node that fits is kept to lead to it.
  function mark(view, node, words, text) {
    const mine = `${text} ${node.figures[NAME]} ${node.leaf ?? ""}`.toLowerCase();
    node.fits = words.every((word) => mine.includes(word));
    let within = false;
    for (const one of node.inside) within = mark(view, one, words, mine) || within;
    node.kept = node.fits || within;
    node.within = within && !node.fits;
    return node.kept;
  }

  function draw(view) {
    const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
    mark(view, view.tree, words, "");
    drawBoxes(view, words.length > 0);
    drawTable(view, words.length > 0);
  }

  // ---- boxes: each row a depth, the chosen group as wide as all ------------------------------------------------------
  function drawBoxes(view, searching) {
    const rows = [], way = [], wordy = WORDY / (view.icicle.clientWidth || USUAL);
    for (let node = view.root; node; node = node.above) way.unshift(node);
    const place = (node, left, width, row) => {
      if (width < THINNEST) return;
      const made = element("button", "", width > wordy ? node.figures[NAME] : "");
      made.type = "button";
      made.tabIndex = -1;
      made.style.left = `${left * 100}%`;
      made.style.width = `${width * 100}%`;
      made.style.top = `${row * 1.65}rem`;
      made.title = said(node);
      if (node.above) paint(made, node.figures[ROOF]);
      if (searching && !node.fits) made.classList.add("faded");
      if (chosen(view, node)) made.classList.add("chosen");
      made.addEventListener("click", () => press(view, node));
      made.addEventListener("pointerenter", () => { view.said.textContent = said(node); });
      view.icicle.append(made);
      rows[row] = true;
    };
    const fill = (node, left, width, row) => {
      let at = left;
      for (const one of node.inside) {
        const part = (one.figures[TIME] / (node.figures[TIME] || 1)) * width;
        place(one, at, part, row);
        if (part >= THINNEST) fill(one, at, part, row + 1);
        at += part;
      }
    };
    view.icicle.replaceChildren();
    way.forEach((node, row) => place(node, 0, 1, row));
    fill(view.root, 0, 1, way.length);
    view.icicle.style.height = `${rows.length * 1.65}rem`;
  }

  function said(node) {
    const [launches, time, part, roof, bytes] = node.figures.slice(WORDS);
    if (launches === undefined) return node.figures[NAME];
    return [`${node.figures[NAME]}: ${time}`, part && `${part} of the program's`, launches, roof ? `${roof} of the roof` : "roof unknown", bytes, node.leaf].filter(Boolean).join(" · ");
  }
  const chosen = (view, node) => node.leaf !== null && report.selection?.section === view.raw.section && report.selection.name === node.leaf;

  function press(view, node) {
    if (node.leaf) return report.select({ section: view.raw.section, name: node.leaf });
    view.root = view.root === node && node.above ? node.above : node;
    node.open = true;
    draw(view);
  }

  // ---- the table: groups that open ----------------------------------------------------------------------------------------
  function drawTable(view, searching) {
    const table = element("table"), head = element("tr"), body = element("tbody"), rows = [];
    for (const [key, title, at] of HEADINGS) {
      const cell = element("th", key === "name" ? "" : "n"), sort = element("button", "sort", title);
      cell.scope = "col";
      if (view.sort === key) cell.setAttribute("aria-sort", view.down ? "descending" : "ascending");
      if (at < 0) cell.textContent = title;
      else {
        sort.type = "button";
        sort.addEventListener("click", () => {
          view.down = view.sort === key ? !view.down : key !== "name";
          view.sort = key;
          draw(view);
          view.table.querySelector("[aria-sort] button")?.focus();
        });
        cell.append(sort);
      }
      head.append(cell);
    }
    collect(view, view.root, searching, rows);
    const shown = view.all || searching ? rows.slice(0, 400) : rows.slice(0, Math.max(FIRST, rows.filter((node) => node.depth > view.root.depth + 1).length + FIRST));
    for (const node of shown) body.append(tableRow(view, node, searching));
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    view.table.replaceChildren(table);
    view.more.replaceChildren();
    if (shown.length < rows.length) {
      const button = element("button", "", `all ${rows.length.toLocaleString("en")} rows`);
      button.type = "button";
      button.addEventListener("click", () => { view.all = true; draw(view); });
      view.more.append(button);
    }
  }

  function collect(view, node, searching, rows) {
    const at = HEADINGS.find(([key]) => key === view.sort)[2], sign = view.down ? -1 : 1;
    const order = (a, b) => (at === NAME ? a.figures[at].localeCompare(b.figures[at], "en", { numeric: true }) : a.figures[at] - b.figures[at]);
    for (const one of node.inside.filter((inner) => inner.kept).sort((a, b) => sign * order(a, b))) {
      rows.push(one);
      if (one.open || (searching && one.within)) collect(view, one, searching, rows);
    }
  }

  function tableRow(view, node, searching) {
    const row = element("tr"), first = element("th"), isOpen = node.open || (searching && node.within);
    const opens = node.inside.length > 0, name = element(opens || node.leaf ? "button" : "span", "open", (opens ? (isOpen ? "▾ " : "▸ ") : "") + node.figures[NAME]);
    first.scope = "row";
    first.style.paddingLeft = `${0.55 + 1.1 * (node.depth - view.root.depth - 1)}rem`;
    if (opens) {
      name.type = "button";
      name.setAttribute("aria-expanded", String(isOpen));
      name.addEventListener("click", () => { node.open = !isOpen; draw(view); });
    } else if (node.leaf) {
      name.type = "button";
      name.addEventListener("click", () => report.select({ section: view.raw.section, name: node.leaf }, true));
    }
    first.append(name);
    if (node.leaf) first.append(element("span", "quiet", ` ${node.leaf}`));
    row.append(first);
    const [launches, time, part, roof, bytes, floor] = node.figures.slice(WORDS), chip = element("i", "chip");
    paint(chip, node.figures[ROOF]);
    for (const text of [launches, time, part, roof, bytes, floor]) row.append(element("td", "n", text));
    row.cells[4].prepend(chip);
    if (chosen(view, node)) row.classList.add("selected");
    row.addEventListener("pointerenter", () => { view.said.textContent = said(node); });
    return row;
  }

  report.startRollups = () => report.each(data.rollups, make);
})(window.report);
