"use strict";
// One capture of several at a time, sections that fold, and paper, on which everything is open.
(function (report) {
  const parts = Array.from(document.querySelectorAll("section.part"));

  // Shows one capture; without `id` the first. The others stay in the page, for paper and for the search.
  report.showPart = function (id) {
    if (parts.length < 2) return;
    const shown = parts.find((part) => part.id === id) ?? parts[0];
    for (const part of parts) part.classList.toggle("closed", part !== shown);
    for (const link of document.querySelectorAll(".top [data-part]")) {
      const mine = link.dataset.part === shown.id;
      if (link.classList.contains("tab")) link.setAttribute("aria-current", String(mine));
      else link.hidden = !mine;
    }
    report.remember("part", shown === parts[0] ? "" : shown.id);
    report.redraw();
  };
  report.restore("part", report.showPart);

  let opened = [], theme;
  window.addEventListener("beforeprint", () => {
    theme = report.root.dataset.theme;
    report.root.dataset.theme = "light";
    report.paintAll();
    opened = Array.from(document.querySelectorAll("details:not([open])")).filter((one) => !one.classList.contains("listing"));
    for (const one of opened) one.open = true;
    report.drawRooflines();
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    if (theme) report.root.dataset.theme = theme;
    else delete report.root.dataset.theme;
    report.paintAll();
  });
})(window.report);
