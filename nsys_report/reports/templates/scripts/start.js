"use strict";
// Last of all: draws, and goes to where the address leads.
(async function (report) {
  report.startTimelines();
  await report.drawCharts();
  report.arrive();
  report.root.dataset.ready = "yes";
})(window.report);
