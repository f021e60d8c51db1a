"use strict";
// The page's state in its address: `#target&key=value&…`. A target is the id of an element, `PART-xN` for execution N,
// `SECTION:NAME` for an instruction. What sorts, filters, zooms and selects writes its key here and is told of it when a page opens.
(function (report) {
  const state = new Map(), readers = [];
  let target = "", waiting = 0;

  function read() {
    const [first, ...pairs] = location.hash.slice(1).split("&");
    const plain = !first.includes("=");
    const found = new Map((plain ? pairs : [first, ...pairs]).map((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [pair, ""] : [pair.slice(0, at), decoded(pair.slice(at + 1))];
    }));
    return { target: plain ? decoded(first) : "", found };
  }

  function decoded(text) {
    try { return decodeURIComponent(text); } catch { return text; }
  }

  function write() {
    const pairs = Array.from(state, ([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const text = [encodeURIComponent(target).replace(/%3A/g, ":"), ...pairs].join("&").replace(/^&/, "");
    if (text === location.hash.slice(1)) return; // to write it takes long on a large page
    try { history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search); } catch { /* a page without a place */ }
  }

  // Something changed on the page: its key gets a value, or goes with "".
  report.remember = function (key, value) {
    // What a page does by itself while it opens is no state of its reader's.
    if ((state.get(key) ?? "") === value || !report.root.dataset.ready) return;
    if (value === "") state.delete(key);
    else state.set(key, value);
    clearTimeout(waiting);
    waiting = setTimeout(write, 150);
  };
  // `take(value)` is called with what the address says of a key: when the page opens and when somebody follows a link.
  report.restore = function (key, take) {
    readers.push([key, take]);
  };

  // Brings an element into view, whatever is folded or hidden around it.
  report.reveal = function (element) {
    const part = element.closest(".part");
    if (part) report.showPart(part.id);
    for (let one = element.querySelector(":scope > details.body") ?? element; one; one = one.parentElement) {
      if (one.tagName === "DETAILS") one.open = true;
    }
    element.scrollIntoView({ block: element.offsetHeight > innerHeight / 2 ? "start" : "nearest" });
  };

  report.go = function (to) {
    target = to;
    write();
    const [section, name] = to.split(/:(.*)/s);
    const execution = /^(.*)-x(\d+)$/.exec(to);
    if (name !== undefined) report.select({ section, name }, true);
    else if (execution && !document.getElementById(to)) report.showExecution?.(execution[1], Number(execution[2]));
    else if (document.getElementById(to)) report.reveal(document.getElementById(to));
  };

  function arrive() {
    const { target: to, found } = read();
    if (found.size || !to) {
      state.clear();
      for (const [key, value] of found) state.set(key, value);
      for (const [key, take] of readers) take(state.get(key) ?? "");
    }
    target = to;
    if (to) report.go(to);
    write();
  }
  window.addEventListener("hashchange", arrive);
  report.arrive = arrive;

  // ---- what is selected: one instruction of one program, everywhere at once --------------------------------------
  const hearers = [];
  report.selection = null;
  report.onSelect = (hear) => hearers.push(hear);
  report.select = function (selection, bring = false) {
    report.selection = selection;
    report.remember("sel", selection ? `${selection.section}:${selection.name}` : "");
    for (const hear of hearers) hear(selection, bring);
  };
  report.restore("sel", (value) => {
    const [section, name] = value.split(/:(.*)/s);
    report.select(name ? { section, name } : null);
  });
})(window.report);
