// Sorts a table by a column: the button in the column's head does it, a second time the other way round.
"use strict";
(() => {
  const collator = new Intl.Collator("en", { numeric: true });

  function sort(head) {
    const table = head.closest("table");
    const column = [...head.parentElement.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    const text = (row) => row.children[column].dataset.key || row.children[column].textContent.trim();
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => collator.compare(text(a), text(b)) * (down ? -1 : 1));
    for (const other of head.parentElement.children) {
      other.removeAttribute("aria-sort");
    }
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  }

  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }
})();
