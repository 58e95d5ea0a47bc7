// The form: a line for each feature, with its value, its lock and its limits.

import { digits, el, fill, seen } from "./dom.js";
import { say } from "./texts.js";

const isNumber = (feature) => feature.kind === "real" || feature.kind === "whole";

// From where to where a slider goes, and in which steps.
export function span(feature, values) {
  const [low, high] = feature.range ?? [null, null];
  const [least, most] = feature.seen ?? [null, null];
  const known = values.filter((value) => typeof value === "number");
  const from = low ?? least ?? Math.min(0, ...known.map((value) => value - Math.abs(value)));
  const to = high ?? most ?? Math.max(1, ...known.map((value) => value + Math.abs(value)));
  const first = Math.min(from, ...known), last = Math.max(to, ...known, first + 1e-9);
  let step = feature.step ?? (feature.decimals !== undefined ? 10 ** -feature.decimals : null);
  if (step === null) {
    const rough = (last - first) / 200;
    const unit = 10 ** Math.floor(Math.log10(rough));
    step = [1, 2, 5, 10].map((k) => k * unit).find((size) => size >= rough);
  }
  return { from: Math.floor(first / step) * step, to: Math.ceil(last / step) * step, step };
}

// One line of the form; `change(part, value)` is told what the person does.
export function line(feature, k, state, others, change) {
  const name = seen(feature.label), id = `f${k}`;
  const locked = state.freeze.includes(feature.name);
  const value = state.values[feature.name];
  const lock = el("button", {
    type: "button", class: "lock", "aria-pressed": String(locked), disabled: feature.change === "freeze",
    title: say("lock", { name }), "aria-label": say("lock", { name }),
    click: () => change("lock", !state.freeze.includes(feature.name)),
  }, padlock(locked), " ", locked ? say("locked") : say("unlocked"));
  const reach = isNumber(feature) ? span(feature, [value, ...others]) : null;
  return el("div", { class: `feature${locked ? " is-locked" : ""}`, "data-feature": feature.name },
    el("label", { for: id }, name, feature.unit ? el("span", { class: "unit" }, ` ${feature.unit}`) : null),
    lock,
    el("div", { class: "control" }, control(feature, id, value, reach, change)),
    reach ? limits(feature, id, state, reach, change) : null,
    el("p", { class: "error", id: `${id}-error`, role: "alert" }));
}

function padlock(closed) {
  return el("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true", focusable: "false" },
    el("rect", { x: 2.5, y: 7, width: 11, height: 7.5, rx: 1.5 }),
    el("path", { d: closed ? "M5 7V4.5a3 3 0 0 1 6 0V7" : "M5 7V4a3 3 0 0 1 5.8-1" }));
}

function control(feature, id, value, reach, change) {
  if (feature.levels) {
    if (feature.kind === "boolean") {
      const words = el("span", { "aria-hidden": "true" }, feature.level_labels[value === true ? 1 : 0]);
      return [el("input", {
        id, type: "checkbox", role: "switch", checked: value === true,
        input: (event) => {
          fill(words, seen(feature.level_labels[event.target.checked ? 1 : 0]));
          change("value", event.target.checked);
        },
      }), words];
    }
    const options = feature.levels.map((level, n) => el("option", { value: String(n) }, feature.level_labels[n]));
    const at = feature.levels.indexOf(value);
    return [el("select", {
      id, value: String(at), input: (event) => change("value", feature.levels[Number(event.target.value)] ?? null),
    }, at < 0 ? [el("option", { value: "-1" }, say("missing")), ...options] : options)].map((list) => {
      list.value = String(at);
      return list;
    });
  }
  if (feature.kind === "date")
    return [el("input", { id, type: "date", value: value ?? "", input: (event) => change("value", event.target.value || null) })];
  const box = el("input", {
    id, type: "number", class: "box", step: "any", value: value ?? "", placeholder: say("missing"),
    input: (event) => {
      const typed = event.target.value === "" ? null : event.target.valueAsNumber;
      if (typed !== null && typeof typed === "number" && !Number.isNaN(typed)) slider.value = typed;
      change("value", Number.isNaN(typed) ? null : typed);
    },
  });
  const slider = el("input", {
    type: "range", "aria-label": `${seen(feature.label)}${feature.unit ? `, ${seen(feature.unit)}` : ""}`,
    min: reach.from, max: reach.to, step: reach.step,
    input: (event) => {
      const value = Number(event.target.valueAsNumber.toPrecision(12));
      box.value = value;
      change("value", value);
    },
  });
  slider.value = value ?? reach.from;
  return [slider, box];
}

function limits(feature, id, state, reach, change) {
  const ends = state.bounds[feature.name] ?? [null, null];
  const words = el("summary", {}, summary(ends));
  const one = (side, text) => {
    const shown = el("output", {}, ends[side] === null ? "–" : digits(ends[side]));
    const slider = el("input", {
      type: "range", min: reach.from, max: reach.to, step: reach.step,
      "aria-label": `${seen(feature.label)}: ${text}`, "data-side": String(side),
      input: (event) => {
        const value = Number(event.target.valueAsNumber.toPrecision(12));
        const open = side ? value >= reach.to : value <= reach.from;
        const now = [...(state.bounds[feature.name] ?? [null, null])];
        now[side] = open ? null : value;
        shown.textContent = open ? "–" : digits(value);
        words.textContent = summary(now);
        change("bounds", now);
      },
    });
    slider.value = ends[side] ?? (side ? reach.to : reach.from);
    return el("div", { class: "limit" }, el("span", {}, text), slider, shown);
  };
  return el("details", { class: "limits", open: ends.some((end) => end !== null) },
    words, one(0, say("from")), one(1, say("to")));
}

function summary(ends) {
  if (ends.every((end) => end === null)) return say("limits");
  const [from, to] = ends.map((end) => (end === null ? "…" : digits(end)));
  return say("limitsSet", { from, to });
}
