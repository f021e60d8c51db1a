"use strict";
// What every other script of the page stands on: its data, elements made of text alone, light and dark. Each script is a function of
// `report`, the one name that the page's scripts share.
window.report = (function () {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const box = (id) => document.getElementById(id);

  // Text is only ever set as text: names of captures and dumps are anybody's.
  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // HLO text, which scrolls where it is long: reached by key, and named.
  function hloBlock(text, name) {
    const made = element("pre", "hlo", text);
    made.tabIndex = 0;
    made.setAttribute("role", "group");
    made.setAttribute("aria-label", `HLO of ${name}`);
    return made;
  }

  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const painters = [];
  // Canvases keep their colors on paper, which does not wait for them to be drawn anew: the style sheet gives dark ones their ground.
  function paintAll() {
    root.dataset.charts = isDark() ? "dark" : "light";
    for (const paint of painters) paint();
  }
  box("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    paintAll();
  });
  prefersDark.addEventListener("change", paintAll);
  root.dataset.charts = isDark() ? "dark" : "light";

  // Calls `make(id, raw)` for what the page has a place for: a section may leave a chart out whose data are there.
  const each = (charts, make) => Object.entries(charts).forEach(([id, raw]) => box(id) && make(id, raw));

  return { root, data, box, element, hloBlock, isDark, each, paintAll, onPaint: (paint) => painters.push(paint) };
})();
