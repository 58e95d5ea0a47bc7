// What a report can do beyond being read: check its proofs, and find a row among many.

import { checker } from "./checker.js";
import { el } from "./dom.js";
import { say } from "./texts.js";

function addCheckers({ header, answers }) {
  for (const { row, status, line } of answers)
    document.getElementById(`row-${row}`).closest("section")
      .append(checker(line && `${header}\n${line}\n`, status));
}

// Show the rows of the list that have what is typed in.
function addFilter() {
  const list = document.querySelector("table.contents");
  if (!list) return;
  const rows = [...list.tBodies[0].rows];
  const told = el("span", { class: "note", role: "status" });
  const box = el("input", {
    type: "search", id: "filter", autocomplete: "off",
    input: () => {
      const wanted = box.value.trim().toLowerCase();
      for (const row of rows)
        row.hidden = ![...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase().includes(wanted);
      const count = rows.filter((row) => !row.hidden).length;
      told.textContent = box.value.trim() ? say("filtered", { count, all: rows.length }) : "";
    },
  });
  list.parentElement.before(
    el("p", { class: "filter" }, el("label", { for: "filter" }, say("filter")), box, told));
}

addCheckers(JSON.parse(document.getElementById("config").textContent));
addFilter();
