"use strict";
(() => {
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    const bothNumbers = a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y);
    return bothNumbers ? x - y : a.localeCompare(b);
  };

  const sortBy = (table, column, header) => {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const key = (row) => row.cells[column].dataset.sort;
    const rows = [...body.rows].sort((a, b) => compare(key(a), key(b)) * (descending ? -1 : 1));
    body.append(...rows);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sortBy(table, column, header));
      header.append(button);
    });
  }

  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };

  for (const box of document.querySelectorAll(".command")) {
    const code = box.querySelector("code");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        select(code);
        button.textContent = "Selected";
      }
      window.setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    box.append(button);
  }
})();
