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

  // Contents beside the page are open, above it folded: they would take a whole small screen.
  const beside = matchMedia("(min-width: 66rem)");
  const fold = () => { document.querySelector("nav details").open = beside.matches; };
  beside.addEventListener("change", fold);
  fold();

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

  // Costs and threshold: rows of each class by probability, in steps of a thousandth.
  const steps = 1000;
  const percents = (share) => `${(100 * share).toFixed(1)} %`;
  const short = (value) => String(Number(value.toPrecision(3)));

  for (const form of document.querySelectorAll("form.threshold")) {
    const find = (name) => form.querySelector(`.${name}`);
    const [first, second] = ["first", "second"].map((name) => form.dataset[name].split(" ").map(Number));
    const below = (counts) => {
      const sums = [0];
      for (const count of counts) sums.push(sums[sums.length - 1] + count);
      return sums; // below[k]: rows whose probability is less than k thousandths
    };
    const below1 = below(first), below2 = below(second);
    const n1 = below1[steps + 1], n2 = below2[steps + 1], n = n1 + n2;
    const svg = form.querySelector("svg");
    const draw = (name, attributes, words) => {
      const element = document.createElementNS(svg.namespaceURI, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (words !== undefined) element.textContent = words;
      svg.append(element);
    };

    const show = () => {
      const ratio = 2 ** Number(find("costs").value);
      const k = Math.round(steps * Number(find("cut").value));
      const cost = (k) => (n1 - below1[k] + ratio * below2[k]) / n;
      let best = 1;
      for (let i = 1; i <= steps; i += 1) if (cost(i) < cost(best)) best = i;
      find("ratio").textContent = short(ratio);
      find("at").textContent = percents(k / steps);
      const cells = { n00: below1[k], n01: n1 - below1[k], n10: below2[k], n11: n2 - below2[k] };
      for (const [name, count] of Object.entries(cells)) find(name).textContent = count;
      const wrong = cells.n01 + cells.n10;
      find("said").textContent =
        `${wrong} of ${n} rows are called wrong (${percents(wrong / n)}), at a cost of ${short(cost(k))} a row, ` +
        `in units of one false call. If the probabilities are right, the threshold to take is ` +
        `${percents(1 / (1 + ratio))}; on these rows the lowest cost, ${short(cost(best))}, is at ` +
        `${percents(best / steps)}, which is partly chance.`;
      svg.replaceChildren();
      const costs = Array.from({ length: steps }, (_, i) => cost(i + 1));
      const top = Math.min(Math.max(...costs), Math.max(6 * cost(best), 1.2 * cost(k))) || 1;
      const x = (i) => 8 + (344 * i) / steps, y = (value) => 104 - 92 * Math.min(value / top, 1);
      draw("line", { class: "axis", x1: 8, x2: 352, y1: 104, y2: 104 });
      draw("polyline", { class: "curve", points: costs.map((c, i) => `${x(i + 1).toFixed(1)},${y(c).toFixed(1)}`).join(" ") });
      draw("line", { class: "calibrated", x1: x(steps / (1 + ratio)), x2: x(steps / (1 + ratio)), y1: 8, y2: 104 });
      draw("circle", { class: "chosen", cx: x(k), cy: y(cost(k)), r: 5 });
      draw("text", { x: 8, y: 122 }, "0 %");
      draw("text", { x: 352, y: 122, "text-anchor": "end" }, "threshold 100 %");
    };
    find("costs").addEventListener("input", () => {
      const ratio = 2 ** Number(find("costs").value);
      find("cut").value = Math.max(1 / (1 + ratio), 0.001).toFixed(3);
      show();
    });
    find("cut").addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    show();
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
