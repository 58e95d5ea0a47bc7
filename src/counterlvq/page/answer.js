// The answer: a sentence, what changes as bars, other ways, what stands in the way, the proof.

import { digits, down, el, seen } from "./dom.js";
import { checker } from "./checker.js";
import { span } from "./form.js";
import { plane } from "./plane.js";
import { signWords } from "./rules.js";
import { say } from "./texts.js";

export const label = (value) => seen(value === null ? "–" : value);

export function badge(status, text = say(status)) {
  return el("span", { class: `badge ${status}` }, text);
}

// Whether the model says what was wished for, so that there is nothing to prove.
export const isDone = (answer) => answer.has_target && answer.status === "optimal" && !answer.changes.length;

// Before and after of each feature that changes, on the scale of its slider.
export function changes(answer, model, values) {
  const listed = answer.shown?.changes ?? [];
  if (!listed.length) return null;
  const rows = listed.map((change) => {
    const feature = model.features.find((one) => one.name === change.feature);
    return el("tr", {},
      el("th", { scope: "row" }, change.label, feature?.unit ? el("span", { class: "unit" }, ` ${feature.unit}`) : null),
      el("td", { class: "num" }, change.before),
      el("td", { class: "num strong" }, change.after),
      el("td", { class: "num" }, change.by ? change.by.replace("-", "−") : say("newLevel")),
      el("td", { class: "bars" }, bars(feature, answer, change)));
  });
  const heads = ["feature", "before", "after", "changes"].map((key) => el("th", { scope: "col" }, say(key)));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": say("changesTable") },
    el("table", { class: "values" }, el("thead", {}, el("tr", {}, heads, el("td"))), el("tbody", {}, rows)));
}

function bars(feature, answer, change) {
  const [before, after] = [answer.original[change.feature], answer.x[change.feature]];
  if (typeof before !== "number" || typeof after !== "number") return null;
  const reach = span(feature, [before, after]);
  const place = (value) => (200 * (value - reach.from)) / (reach.to - reach.from || 1);
  const bar = (value, y, kind) =>
    el("rect", { x: 0, y, width: Math.max(place(value), 1), height: 7, class: kind });
  return el("svg", { viewBox: "0 0 200 18", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    bar(before, 1, "before"), bar(after, 10, after > before ? "up" : "down"));
}

// The cost on a line, and how much of it is ruled out.
export function proof(answer, model, unit) {
  if (answer.status === "invalid" || isDone(answer)) return null;
  const cost = answer.shown?.proof?.cost ?? digits(answer.cost);
  const bound = answer.shown?.proof?.bound ?? down(answer.lower_bound);
  const words = {
    optimal: "proofOptimal", feasible: "proofFeasible", infeasible: "proofInfeasible", unknown: "proofUnknown",
  }[answer.status];
  const share = answer.cost ? Math.max(0, Math.min(1, answer.lower_bound / answer.cost)) : 1;
  const bar = answer.cost === null || !answer.changes.length ? null : el("div", { class: "proofbar" },
    el("svg", { viewBox: "0 0 220 20", preserveAspectRatio: "none", role: "img", "aria-label": say("proofBar", { cost, bound }) },
      el("rect", { x: 0, y: 4, width: 210, height: 12, class: "open" }),
      el("rect", { x: 0, y: 4, width: 210 * share, height: 12, class: "closed" }),
      el("line", { x1: 210, x2: 210, y1: 0, y2: 20 })),
    el("div", { class: "ends note" }, el("span", {}, `0 – ${bound}: ${say("ruledOut")}`), el("span", {}, `${say("thisAnswer")}: ${cost}`)));
  return el("section", { "aria-labelledby": "proof-title" },
    el("h3", { id: "proof-title" }, say("proofTitle")),
    plane(answer, model), bar, el("p", {}, say(words, { cost, bound })),
    answer.changes.length ? el("p", { class: "note" }, say("costOf", { unit })) : null,
    answer.changes.length || answer.status === "infeasible" ? checker(answer.certificate, answer.status, cost.includes("(")) : null);
}

// What stands in the way, each with a button that lifts it; `lift(field)` is told which.
export function conflict(answer, model, lift) {
  if (answer.status !== "infeasible") return null;
  const items = [...(answer.conflict_fields ?? answer.conflict.map((rule) => ({ field: "", rule })))];
  if (!items.length) return el("p", {}, say("stuckNever"));
  const order = model.features.map((feature) => feature.name);
  const place = ({ field }) => (order.indexOf(field.split(":").slice(1).join(":")) + 1) || order.length + 1;
  items.sort((one, other) => place(one) - place(other));
  return el("section", { class: "stuck" },
    el("h3", {}, say(items.length > 1 ? "stuckTitle" : "stuckAlone")),
    el("ul", {}, items.flatMap((item) => named(item, model)).map(({ field, words }) =>
      el("li", {}, el("span", {}, words), " ", field && lift
        ? el("button", { type: "button", class: "lift", "aria-label": say("liftOf", { rule: seen(words) }), click: () => lift(field) }, say(field.startsWith("freeze:") ? "unlock" : "lift"))
        : null))));
}

function named({ field, rule }, model) {
  const [kind, ...rest] = field.split(":");
  const name = rest.join(":");
  const known = model.features.find((feature) => feature.name === name);
  const spoken = known ? seen(known.label) : name;
  if (kind === "freeze") return [{ field, words: say("ruleLock", { name: spoken }) }];
  if (kind === "bounds") return [{ field, words: say("ruleBounds", { name: spoken }) }];
  if (kind === "seen") return [{ field, words: say("ruleSeen", { name: spoken }) }];
  if (kind === "rule") return [{ field, words: signWords(rule) }];
  return [{ field: "", words: say("ruleOwn", { rule }) }];
}
