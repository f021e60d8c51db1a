"use strict";
// Last of all: draws, and goes to where the address leads.
(function (report) {
  report.startTimelines();
  report.startRooflines();
  report.startRollups();
  report.arrive();
  report.root.dataset.ready = "yes";
})(window.report);
