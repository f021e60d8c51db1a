"use strict";
// Findings as the text of an issue, on the clipboard.
(function (report) {
  const { data, element } = report;

  // Where a page may not write to the clipboard by itself, what is selected in it is copied.
  function copied(text) {
    const area = element("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done ? Promise.resolve() : Promise.reject(new Error("refused"));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const said = button.parentNode.querySelector("[role=status]"), text = data.issues[button.dataset.issue];
    const write = navigator.clipboard ? navigator.clipboard.writeText(text).catch(() => copied(text)) : copied(text);
    write.then(() => { said.textContent = "copied as Markdown"; }, () => { said.textContent = "the browser does not let this page copy"; });
  });
})(window.report);
