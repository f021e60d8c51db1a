"use strict";
// One search over everything on the page: findings, instructions with their HLO and source, kernels, rows of tables. What it finds is
// listed, and lit in the timelines. Every word must occur; the index is made when somebody first searches.
(function (report) {
  const { data, box, element } = report;
  const field = box("search"), list = box("results"), count = box("results-count");
  const MOST = 40;
  let index = null, looks = null, active = -1;

  // What can be found: what it is, its name, where it leads, and all its words.
  function makeIndex() {
    const found = [];
    for (const finding of document.querySelectorAll("article.finding")) {
      found.push({ kind: "finding", name: finding.querySelector("h3").firstChild.textContent.trim(), to: finding.id, text: finding.textContent });
    }
    const instructions = new Map();
    for (const [id, details] of Object.entries(data.details)) {
      if (!details.section) continue;
      details.names.forEach((name, number) => {
        if (!name) return; // a total, or what was not joined
        const row = box(id)?.querySelector(`tr[data-row="${number}"]`), to = `${details.section}:${name}`;
        const operation = details.rows[number]?.[details.labels.indexOf("operation")] ?? "";
        const one = instructions.get(to) || { kind: "instruction", name, to, more: operation, text: `${name} ${data.hlo[details.section]?.[name] ?? ""}` };
        one.text += ` ${row?.textContent ?? ""} ${(details.rows[number] || []).join(" ")}`;
        instructions.set(to, one);
      });
    }
    found.push(...instructions.values());
    for (const row of document.querySelectorAll(".tablebox tbody tr:not([data-row]):not(.detail):not(.total)")) {
      const place = row.closest(".tablebox");
      found.push({ kind: place.querySelector("caption")?.textContent || "row", name: row.cells[0].textContent, to: place.id, row, text: row.textContent });
    }
    for (const term of document.querySelectorAll("#words dt")) {
      found.push({ kind: "word", name: term.textContent, to: "words", text: `${term.textContent} ${term.nextElementSibling.textContent}` });
    }
    for (const one of found) one.text = one.text.toLowerCase();
    return found;
  }

  function makeLooks() {
    return Array.from(report.timelines.values(), (timeline) => [timeline, timeline.raw.looks.map(([name, , section, instruction, facts]) =>
      `${name} ${facts.join(" ")} ${data.hlo[section]?.[instruction] ?? ""}`.toLowerCase())]);
  }

  function search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    report.remember("q", text.trim());
    index ??= makeIndex();
    looks ??= makeLooks();
    const fits = (said) => words.every((word) => said.includes(word));
    let marks = 0;
    for (const [timeline, texts] of looks) {
      timeline.matches = words.length ? new Set(texts.flatMap((said, at) => (fits(said) ? [at] : []))) : null;
      if (words.length) for (const row of timeline.rows) if (!row.color) for (const look of row.look) marks += timeline.matches.has(look);
    }
    report.redraw();
    const found = words.length ? index.filter((one) => fits(one.text)) : [];
    // What has the words in its name comes before what has them somewhere.
    const named = (one) => words.every((word) => one.name.toLowerCase().includes(word));
    found.sort((a, b) => named(b) - named(a));
    show(found, words, marks);
  }

  function show(found, words, marks) {
    active = -1;
    list.replaceChildren(...found.slice(0, MOST).map((one, at) => {
      const option = element("div", "result"), name = element("span", "name");
      option.id = `result-${at}`;
      option.setAttribute("role", "option");
      name.append(...marked(one.name, words));
      option.append(element("span", "quiet", one.kind), name);
      if (one.more) option.append(element("span", "more-of-it", one.more));
      option.addEventListener("click", () => follow(one));
      option.follow = () => follow(one);
      return option;
    }));
    const more = found.length > MOST ? `, the first ${MOST} are listed` : "";
    count.textContent = words.length ? `${found.length.toLocaleString("en")} found${more}; ${marks.toLocaleString("en")} marks lit in the timeline` : "";
    open(words.length > 0);
  }

  // A text with the words that were found in it, marked.
  function marked(text, words) {
    const parts = [], low = text.toLowerCase();
    for (let at = 0; at < text.length;) {
      const word = words.find((one) => low.startsWith(one, at));
      if (word) parts.push(element("mark", "", text.slice(at, at + word.length)));
      else if (typeof parts.at(-1) === "string") parts[parts.length - 1] += text[at];
      else parts.push(text[at]);
      at += word ? word.length : 1;
    }
    return parts;
  }

  function follow(one) {
    open(false);
    report.go(one.to);
    if (one.row) report.reveal(one.row);
  }

  function open(shown) {
    box("found").hidden = !shown;
    field.setAttribute("aria-expanded", String(shown));
    if (!shown) field.removeAttribute("aria-activedescendant");
  }

  function move(by) {
    const options = list.children;
    if (!options.length) return;
    options[active]?.classList.remove("active");
    active = (active + by + options.length) % options.length;
    options[active].classList.add("active");
    options[active].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", options[active].id);
  }

  field.addEventListener("input", () => search(field.value));
  field.addEventListener("focus", () => { if (field.value) open(true); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter") (list.children[Math.max(active, 0)])?.follow();
    else if (event.key === "Escape") { field.value = ""; search(""); }
    else return;
    event.preventDefault();
  });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".search")) open(false); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    field.focus();
  });
  report.restore("q", (value) => {
    if (field.value === value) return;
    field.value = value;
    search(value);
    open(false);
  });
})(window.report);
