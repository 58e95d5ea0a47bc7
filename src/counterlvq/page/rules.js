// Rules: put together from lists, or written out; each one is tried while it is typed.

import { el, fill, seen } from "./dom.js";
import { say } from "./texts.js";

const isPlainName = /^[A-Za-z_]\w*$/;
const quotedName = (name) => (isPlainName.test(name) ? name : `\`${name}\``);
const selection = (items, attributes) =>
  el("select", attributes, items.map((text, k) => el("option", { value: String(k) }, text)));

// How a rule names a level; null for one that it has no words for.
function levelText(level) {
  if (typeof level === "boolean") return level ? "True" : "False";
  if (typeof level === "number") return String(level);
  if (typeof level !== "string") return null;
  return level.includes("'") ? (level.includes('"') ? null : `"${level}"`) : `'${level}'`;
}

// A comparison with words for its sign.
export const signWords = (text) => text.replace(/ (<=|>=|==) /, (_, sign) =>
  ` ${say({ "<=": "ruleMost", ">=": "ruleLeast", "==": "ruleEqual" }[sign])} `);

// A rule as one reads it aloud, or null where it says more than one comparison of known names.
export function ruleWords(rule, features) {
  const [left, sign, right, ...more] = rule.split(/\s*(<=|>=|==|!=)\s*/);
  if (!left || !right || more.length) return null;
  const named = (side) => features.find((one) => side === one.name || side === `\`${one.name}\``);
  const about = named(left);
  const level = about?.levels?.findIndex((one) => levelText(one) === right) ?? -1;
  if (level >= 0) return `${seen(about.label)} ${say(sign === "==" ? "ruleIs" : "ruleIsNot")} ${seen(about.level_labels[level])}`;
  let known = sign !== "!=";
  const spoken = (side) => side.replace(/`[^`]*`|[\p{L}_][\p{L}\p{N}_]*|[^\s`\p{L}_+*-]+/gu, (part) => {
    if (/^(\d+\.?\d*|\.\d+)$/.test(part)) return Number(part).toLocaleString("en-US", { maximumSignificantDigits: 15 });
    const feature = named(part);
    known &&= Boolean(feature);
    return feature ? seen(feature.label) : part;
  }).replaceAll("*", say("ruleTimes"));
  const words = signWords(`${spoken(left)} ${sign} ${spoken(right)}`);
  const unit = about?.unit && /^[\d.]+$/.test(right) ? ` ${seen(about.unit)}` : "";
  return known ? words + unit : null;
}

// The rules of a person, with what makes a new one. `tools` has `tried(rule)`, which says what is
// wrong with a rule, and `changed(rules)`, which is told the new ones.
export function ruleBook(model, rules, suggested, bad, detail, tools) {
  const worded = (rule) => {
    const words = ruleWords(rule, model.features);
    return words === null ? el("code", {}, rule) : el("span", { class: "rule", title: rule }, words);
  };
  const items = rules.map((rule, k) => el("li", {}, worded(rule), " ",
    el("button", {
      type: "button", class: "plain", "aria-label": say("removeRule", { rule: seen(ruleWords(rule, model.features) ?? rule) }),
      click: () => tools.changed(rules.filter((_, at) => at !== k)),
    }, "×"),
    k === bad ? el("p", { class: "error", role: "alert" }, detail) : null));
  const features = model.features.filter((feature) => !feature.name.includes("`"));
  return [el("h2", {}, say("rulesTitle")), el("p", { class: "note" }, say("rulesHelp")),
    el("ul", { class: "rulelist" }, items),
    suggestions(suggested.filter((rule) => !rules.includes(rule)), worded, (rule) => tools.changed([...rules, rule])),
    features.length ? ruleBuilder(features, (rule) => tools.changed([...rules, rule])) : null,
    ruleWriter(features, rules, tools, (rule) => ruleWords(rule, model.features))];
}

function suggestions(rules, worded, add) {
  return rules.length ? el("p", { class: "suggested" }, el("span", { class: "note" }, say("ruleSuggested")),
    rules.map((rule) => {
      const words = worded(rule);
      return el("button", {
        type: "button", class: "plain", "aria-label": say("ruleTake", { rule: words.textContent }), click: () => add(rule),
      }, "+ ", words);
    })) : null;
}

function ruleBuilder(features, add) {
  const isNumber = (feature) => feature.kind === "real" || feature.kind === "whole";
  const fit = features.filter((feature) => isNumber(feature) || feature.levels?.some((one) => levelText(one) !== null));
  if (!fit.length) return null;
  const what = selection(fit.map((feature) => feature.label), { id: "rule-what", "aria-label": say("ruleWhat"), input: () => rest() });
  const place = el("span", { class: "rest" });
  let made = () => null;
  function rest() {
    const feature = fit[Number(what.value)];
    if (isNumber(feature)) {
      const how = selection(["ruleMost", "ruleLeast", "ruleEqual"].map((key) => say(key)), { "aria-label": say("ruleHow") });
      const others = fit.filter((other) => isNumber(other) && other !== feature);
      const than = selection([say("ruleNumber"), ...others.map((other) => other.label)],
        { "aria-label": say("ruleThan"), input: () => (amount.hidden = than.value !== "0") });
      const amount = el("input", { type: "number", step: "any", class: "amount", "aria-label": say("ruleAmount") });
      made = () => {
        const sign = ["<=", ">=", "=="][Number(how.value)];
        if (than.value !== "0") return `${quotedName(feature.name)} ${sign} ${quotedName(others[Number(than.value) - 1].name)}`;
        return Number.isFinite(amount.valueAsNumber) ? `${quotedName(feature.name)} ${sign} ${amount.valueAsNumber}` : null;
      };
      fill(place, how, than, amount);
    } else {
      const how = selection([say("ruleIs"), say("ruleIsNot")], { "aria-label": say("ruleHow") });
      const levels = feature.levels.map((level, k) => [levelText(level), feature.level_labels[k]]).filter(([text]) => text !== null);
      const level = selection(levels.map(([, text]) => text), { "aria-label": say("ruleLevel") });
      made = () => `${quotedName(feature.name)} ${how.value === "0" ? "==" : "!="} ${levels[Number(level.value)][0]}`;
      fill(place, how, level);
    }
  }
  rest();
  return el("form", {
    id: "rule-builder",
    submit: (event) => {
      event.preventDefault();
      const rule = made();
      if (rule !== null) add(rule);
      else place.querySelector(".amount").focus();
    },
  }, what, place, el("button", { type: "submit" }, say("addRule")));
}

function ruleWriter(features, rules, tools, spoken) {
  const told = el("p", { class: "hint", role: "status" });
  const typed = el("input", {
    id: "rule", type: "text", autocomplete: "off", spellcheck: "false", input: () => tryRule(typed, told, tools.tried, spoken),
  });
  const names = features.slice(0, 2).map((feature) => quotedName(feature.name));
  const example = names.length > 1 ? `2 * ${names[0]} <= ${names[1]} + 10` : `${names[0] ?? "…"} <= 3`;
  return el("details", { class: "written", open: rules.isWritten },
    el("summary", {}, say("ruleWritten")),
    el("p", { class: "note" }, say("ruleExample"), " ", el("code", {}, example)),
    el("form", {
      id: "rule-form",
      submit: async (event) => {
        event.preventDefault();
        const mine = (ruleDraft += 1), rule = typed.value.trim();
        if (!rule) return;
        // What nobody can read stays in the field: among the rules it would be in every question.
        const wrong = await tools.tried(rule);
        if (mine !== ruleDraft) return;
        if (wrong) showTried(told, wrong, rule, spoken);
        else tools.changed(Object.assign([...rules, rule], { isWritten: true }));
      },
    }, el("label", { for: "rule" }, say("newRule")), typed, el("button", { type: "submit" }, say("addRule"))),
    told);
}

let ruleDraft = 0;
function tryRule(typed, told, tried, spoken) {
  const mine = (ruleDraft += 1), rule = typed.value.trim();
  told.className = "hint";
  fill(told);
  if (!rule) return;
  setTimeout(async () => {
    if (mine !== ruleDraft) return;
    const wrong = await tried(rule);
    if (mine !== ruleDraft || wrong === undefined) return;
    showTried(told, wrong, rule, spoken);
  }, 250);
}

function showTried(told, wrong, rule, spoken) {
  const words = spoken(rule);
  told.className = wrong === null ? "hint good" : "hint error";
  fill(told, wrong !== null ? seen(wrong) : words === null ? say("ruleFits") : say("ruleFitsAs", { rule: words }));
}
