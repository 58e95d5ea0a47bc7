// The picture of a model with two numbers: what it says everywhere, and what the proof rules out.
// Drawn from the certificate, in floats: it is for the eye, and proves nothing by itself.

import { digits, el, seen } from "./dom.js";
import { span } from "./form.js";
import { say } from "./texts.js";

const CELLS = 72, SIZE = 360, RAYS = 180;

// Squared distance to each prototype, as the model has it, of values in the columns of the table.
function scoring({ prototypes, metric, offsets, map }) {
  const factor = (k) => (metric.kind === "local" ? metric.factors[k] : metric.kind === "shared" ? metric.factor : null);
  const image = (row) => {
    if (map === null) return row;
    const out = [...map.offset];
    map.parts.forEach((part, j) => part.weights.forEach(([c, a]) => (out[c] += a * (row[j] - part.base))));
    return out;
  };
  return (row) => {
    const z = image(row);
    return prototypes.map((prototype, k) => {
      let by = z.map((value, c) => value - prototype[c]);
      if (metric.kind === "diagonal") by = by.map((value, c) => metric.factor[c] * value);
      else if (factor(k)) by = factor(k).map((line) => line.reduce((total, a, c) => total + a * by[c], 0));
      return by.reduce((total, value) => total + value * value, offsets?.values[k] ?? 0);
    });
  };
}

function pricing({ weights, decrease, quadratic }) {
  const values = quadratic?.values, kind = quadratic?.kind;
  const squared = (by) => {
    if (!values) return 0;
    if (kind === "diagonal") return values.reduce((total, a, j) => total + a * by[j] ** 2, 0);
    const image = values.map((line) => line.reduce((total, a, j) => total + a * by[j], 0));
    return image.reduce((total, value, j) => total + value * (kind === "matrix" ? by[j] : value), 0);
  };
  return (by) => by.reduce((total, value, j) =>
    total + (value < 0 && decrease ? decrease[j] : weights[j]) * Math.abs(value), squared(by));
}

// Whether a point keeps the comparisons of a question; other kinds of rules are not drawn.
function keeping({ constraints, columns }, input) {
  const dot = (pairs, row) => pairs.reduce((total, [j, a]) => total + a * row[j], 0);
  const near = 0.75 / CELLS;
  return (row, reach) => columns.every(({ lower, upper }, j) => row[j] >= (lower ?? -Infinity) && row[j] <= (upper ?? Infinity)) &&
    constraints.every((item) => {
      if (item.kind === "seen")
        return row[item.column] >= Math.min(item.lower ?? -Infinity, input[item.column]) && row[item.column] <= Math.max(item.upper ?? Infinity, input[item.column]);
      if (item.kind !== "linear") return true;
      const over = dot(item.new, row) + dot(item.old, input) - item.value;
      const slack = near * item.new.reduce((total, [j, a]) => total + Math.abs(a) * (reach[j].to - reach[j].from), 0);
      return item.sense === "==" ? Math.abs(over) <= slack : over <= 0;
    });
}

// The plane, or null where there is none to draw: other models, and answers without a change.
export function plane(answer, model) {
  const isNumber = (feature) => feature.kind === "real" || feature.kind === "whole";
  if (model.features.length !== 2 || !model.features.every(isNumber) || !answer.certificate || !answer.x || !answer.changes.length)
    return null;
  try {
    return drawn(answer, model);
  } catch {
    return null; // what is not drawn is still told, and checked
  }
}

function drawn(answer, model) {
  const [header, line] = answer.certificate.split("\n").filter(Boolean).map((text) => JSON.parse(text));
  const before = line.input, after = line.answer.row;
  const reach = model.features.map((feature, j) => span(feature, [before[j], after[j]]));
  const value = (j, share) => reach[j].from + share * (reach[j].to - reach[j].from);
  const place = (row) => [0, 1].map((j) => {
    const share = (row[j] - reach[j].from) / (reach[j].to - reach[j].from);
    return SIZE * (j ? 1 - share : share);
  });
  const [across, up] = model.features.map((feature) => seen(feature.label));
  const ends = reach.map(({ from, to }) => `${digits(from)} – ${digits(to)}`);
  const words = say("planeWords", { across, up });
  return el("figure", { class: "plane" },
    el("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": words },
      regions(header, line, value, reach),
      el("path", { class: "ball", d: ball(pricing(header.question.cost), before, line.answer.lower_bound, place) }),
      el("path", { class: "way-there", d: `M${place(before).join(" ")}L${place(after).join(" ")}` }),
      spot(place(before), "before"), spot(place(after), "after")),
    el("figcaption", { class: "note" }, `→ ${across}: ${ends[0]} · ↑ ${up}: ${ends[1]} · `,
      el("span", { class: "key before" }), ` ${say("planeNow")} · `, el("span", { class: "key after" }), ` ${say("planeThen")}`,
      el("br"), words));
}

const spot = ([cx, cy], kind) => el("circle", { cx, cy, r: 6, class: kind });

// Runs of cells of a line that are drawn alike: wished for, and not allowed.
function regions(header, line, value, reach) {
  const scores = scoring(header.model), keeps = keeping(header.question, line.input);
  const wished = new Set(line.target), size = SIZE / CELLS, out = [];
  for (let up = 0; up < CELLS; up += 1) {
    let from = 0, kind = null;
    for (let across = 0; across <= CELLS; across += 1) {
      let now = null;
      if (across < CELLS) {
        const row = [value(0, (across + 0.5) / CELLS), value(1, (up + 0.5) / CELLS)];
        const all = scores(row);
        const is = wished.has(header.model.labels[all.indexOf(Math.min(...all))]) ? "wished" : "other";
        now = `${is}${keeps(row, reach) ? "" : " barred"}`;
      }
      if (now === kind) continue;
      if (kind !== null && kind !== "other")
        out.push(el("rect", { x: from * size, y: SIZE - (up + 1) * size, width: (across - from) * size, height: size + 0.4, class: kind }));
      [from, kind] = [across, now];
    }
  }
  return out;
}

// All changes that cost `bound`, ray by ray: a cost grows along each of them.
function ball(cost, center, bound, place) {
  const points = Array.from({ length: RAYS }, (_, k) => {
    const angle = (2 * Math.PI * k) / RAYS;
    const at = (length) => [Math.cos(angle), Math.sin(angle)].map((part, j) => part * length * scale[j]);
    const scale = [0, 1].map((j) => bound / (cost(j ? [0, 1] : [1, 0]) || 1));
    let low = 0, high = 1;
    for (let n = 0; n < 60 && cost(at(high)) < bound; n += 1) high *= 2;
    for (let n = 0; n < 40; n += 1) {
      const middle = (low + high) / 2;
      if (cost(at(middle)) < bound) low = middle;
      else high = middle;
    }
    return place(at(low).map((by, j) => center[j] + by)).map((part) => part.toFixed(1)).join(" ");
  });
  return `M${points.join("L")}Z`;
}
