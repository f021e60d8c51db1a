"use strict";
// Tables: sorting, searching, rows that open.
(function (report) {
  const { data, box, element } = report;

  function rowsOf(table) {
    return Array.from(table.tBodies[0].rows).filter((row) => !row.classList.contains("detail"));
  }

  // The next order of a column that is pressed: figures begin with the largest, words with the first.
  function nextOrder(heading) {
    const now = heading.getAttribute("aria-sort");
    if (now) return now === "descending" ? "ascending" : "descending";
    return heading.classList.contains("n") ? "descending" : "ascending";
  }

  function sortBy(heading, direction = nextOrder(heading)) {
    const table = heading.closest("table");
    const place = Array.from(heading.parentNode.children).indexOf(heading);
    const numeric = heading.classList.contains("n");
    report.remember(`s.${heading.closest(".tablebox").id}`, `${heading.dataset.key}:${direction}`);
    for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const keyed = rowsOf(table).map((row, at) => {
      const cell = row.cells[place];
      return { row, at, value: numeric ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent };
    });
    keyed.sort((a, b) => {
      const totals = a.row.classList.contains("total") - b.row.classList.contains("total");
      if (totals) return totals;
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.at - b.at; // unknown last
      const order = numeric ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
      return sign * order || a.at - b.at;
    });
    const body = table.tBodies[0];
    for (const { row } of keyed) {
      const next = row.nextElementSibling;
      body.append(row);
      if (next && next.classList.contains("detail")) body.append(next);
    }
  }

  function filter(id) {
    const outer = box(id);
    const words = (outer.querySelector("input[type=search]")?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = outer.querySelector(".tools select")?.value || "";
    const place = classPlace(outer);
    let shown = 0, all = 0;
    for (const row of rowsOf(outer.querySelector("table"))) {
      if (row.classList.contains("total")) continue;
      all += 1;
      const text = searchText(id, row);
      const fits = words.every((word) => text.includes(word)) && (!chosen || row.cells[place].textContent.trim() === chosen);
      row.hidden = !fits;
      const detail = row.nextElementSibling;
      if (detail && detail.classList.contains("detail")) detail.hidden = !fits;
      shown += fits;
    }
    outer.querySelector(".found").textContent = words.length || chosen ? `${shown} of ${all} rows` : "";
    report.remember(`f.${id}`, outer.querySelector("input[type=search]")?.value || "");
    report.remember(`c.${id}`, chosen);
  }

  function classPlace(outer) {
    return Array.from(outer.querySelectorAll("thead th")).findIndex((heading) => heading.dataset.key === "kernel_class");
  }

  const searchTexts = new WeakMap();
  function searchText(id, row) {
    let text = searchTexts.get(row);
    if (text === undefined) {
      const more = data.details[id]?.rows[Number(row.dataset.row)] || [];
      text = (row.textContent + " " + more.join(" ")).toLowerCase();
      searchTexts.set(row, text);
    }
    return text;
  }

  function detailRow(id, row) {
    const details = data.details[id], number = Number(row.dataset.row);
    const made = element("tr", "detail"), cell = element("td"), inner = element("div", "inner");
    cell.colSpan = row.cells.length;
    const list = element("dl", "facts");
    (details ? details.labels : []).forEach((label, at) => {
      const value = details.rows[number]?.[at] ?? "";
      if (value === "" || value === "–") return;
      const pair = element("div");
      pair.append(element("dt", "", label), element("dd", "", value));
      list.append(pair);
    });
    if (list.children.length) inner.append(list);
    const name = details ? details.names[number] : "";
    const text = hloText(details, name);
    if (text) inner.append(report.hloBlock(text, name));
    else inner.append(element("p", "quiet", "The page holds no HLO text of this instruction."));
    cell.append(inner);
    made.append(cell);
    return made;
  }

  function hloText(details, name) {
    const texts = details ? data.hlo[details.section] : undefined;
    return texts && Object.hasOwn(texts, name) ? texts[name] : "";
  }

  function toggle(button) {
    const row = button.closest("tr"), id = button.closest(".tablebox").id;
    const next = row.nextElementSibling;
    const open = next && next.classList.contains("detail");
    if (open) next.remove();
    else row.after(detailRow(id, row));
    const details = data.details[id];
    if (!open && details?.section && report.selection?.name !== details.names[Number(row.dataset.row)]) {
      report.select({ section: details.section, name: details.names[Number(row.dataset.row)] });
    }
    button.setAttribute("aria-expanded", String(!open));
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("button");
    if (!target) return;
    if (target.classList.contains("sort")) sortBy(target.closest("th"));
    else if (target.classList.contains("open")) toggle(target);
  });
  document.addEventListener("input", (event) => {
    const id = event.target.dataset?.for;
    if (event.target.classList.contains("more")) {
      box(id).classList.toggle("wide", event.target.checked);
      for (const target of box(id).querySelectorAll(".scroll")) fade(target);
    }
    else if (id && !event.target.classList.contains("pick")) filter(id);
  });
  for (const select of document.querySelectorAll(".tablebox .tools select")) {
    const outer = box(select.dataset.for), place = classPlace(outer);
    const names = new Set(rowsOf(outer.querySelector("table")).filter((row) => !row.classList.contains("total"))
      .map((row) => row.cells[place].textContent.trim()));
    for (const name of names) {
      const option = element("option", "", name);
      option.value = name;
      select.append(option);
    }
  }

  // Sorting and filters come back with the page's address.
  for (const outer of document.querySelectorAll(".tablebox")) {
    const { id } = outer;
    report.restore(`s.${id}`, (value) => {
      const [key, direction] = value.split(":");
      const heading = Array.from(outer.querySelectorAll("th")).find((one) => key && one.dataset.key === key);
      if (heading) sortBy(heading, direction === "ascending" ? direction : "descending");
    });
    for (const [kind, selector] of [["f", "input[type=search]"], ["c", ".tools select"]]) {
      report.restore(`${kind}.${id}`, (value) => {
        const field = outer.querySelector(selector);
        if (!field || field.value === value) return;
        field.value = value;
        filter(id);
      });
    }
  }

  // The rows of the selected instruction, in every table of its program; the first that nothing hides is brought into view and opened.
  function selectRows(selection, bring) {
    for (const row of document.querySelectorAll("tr.selected")) row.classList.remove("selected");
    if (!selection) return;
    const found = [];
    for (const [id, details] of Object.entries(data.details)) {
      if (details.section !== selection.section) continue;
      details.names.forEach((name, number) => {
        if (name === selection.name) found.push(box(id)?.querySelector(`tr[data-row="${number}"]`));
      });
    }
    const rows = found.filter(Boolean);
    for (const row of rows) row.classList.add("selected");
    const first = rows.find((row) => !row.closest(".finding") && !row.hidden) ?? rows.find((row) => !row.hidden);
    if (!bring || !first) return;
    const button = first.querySelector(".open");
    if (button?.getAttribute("aria-expanded") === "false") toggle(button);
    report.reveal(first);
    button?.focus({ preventScroll: true });
  }
  report.onSelect(selectRows);

  // What is cut off at the right fades, until it is scrolled into view.
  const fade = (target) => target.toggleAttribute("data-more", target.scrollWidth - target.clientWidth - target.scrollLeft > 4);
  const sizes = new ResizeObserver((entries) => { for (const entry of entries) fade(entry.target); });
  report.fades = (target) => {
    target.addEventListener("scroll", () => fade(target), { passive: true });
    sizes.observe(target);
  };
  document.querySelectorAll(".scroll, .top nav").forEach(report.fades);
})(window.report);
