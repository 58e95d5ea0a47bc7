// The page: what the person does becomes a question, and the answer is drawn while they do it.

import { badge, changes, conflict, isDone, label, proof } from "./answer.js";
import { digits, el, fill, seen } from "./dom.js";
import { line } from "./form.js";
import { ruleBook } from "./rules.js";
import { empty, fromLink, request, toLink } from "./state.js";
import { TEXTS, say } from "./texts.js";

const config = JSON.parse(document.getElementById("config").textContent);
const places = Object.fromEntries(
  ["features", "rows", "target", "now", "answer", "others", "rules", "problem", "jump", "footer", "tools", "said"]
    .map((name) => [name, document.getElementById(name)]));
let model, state, token = /[#&]token=([^&]+)/.exec(location.hash)?.[1] ?? null;
let asking = false, again = false, turn = 0, waitForOthers;

async function ask(body) {
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  const came = await fetch(body ? "explain" : "model", body
    ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  const wait = Number(came.headers.get("retry-after")) || 1;
  return { ok: came.ok, status: came.status, told: await came.json(), wait };
}

// Ask for what is on the page now; while an answer is on its way, once more behind it.
async function refresh() {
  if (config.answers) return showOffline();
  keepLink();
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  clearTimeout(waitForOthers);
  places.answer.setAttribute("aria-busy", "true");
  try {
    const { ok, status, told, wait } = await ask(request(state));
    if (ok) show(told.answers[0]);
    else if (status === 503) comeBack(wait);
    else showProblem(told);
  } catch {
    places.answer.classList.add("stale");
    fill(places.problem, say("offlineError"));
  }
  asking = false;
  places.answer.setAttribute("aria-busy", "false");
  if (again) {
    again = false;
    refresh();
  }
}

// Browsers let a page write its address a few times a second, and some throw beyond that.
let waitToLink = null;
function keepLink() {
  waitToLink ??= setTimeout(() => {
    waitToLink = null;
    history.replaceState(null, "", token ? `${toLink(state)}&token=${token}` : toLink(state));
  }, 300);
}

// A service that has no room asks to be asked again.
function comeBack(seconds) {
  places.answer.classList.add("stale");
  fill(places.problem, say("busy"));
  waitForOthers = setTimeout(refresh, 1000 * Math.min(seconds, 5));
}

// What a service says, or undefined where none does: for what the page can do without.
const tried = (body) => ask(body).catch(() => undefined);

function show(answer) {
  turn += 1;
  fill(places.problem);
  places.answer.classList.remove("stale");
  document.querySelectorAll(".feature .error").forEach((place) => fill(place));
  fill(places.now, label(answer.original_prediction));
  const mark = () => (isDone(answer) ? badge(answer.status, say("already")) : badge(answer.status));
  const goal = isDone(answer) ? [] : [" → ", el("bdi", {}, label(answer.prediction ?? answer.target.join(" / ")))];
  const top = el("p", { class: "top" }, el("strong", {}, el("bdi", {}, label(answer.original_prediction)), goal), " ", mark());
  const isListed = answer.status === "infeasible" && answer.conflict_fields?.length;
  fill(places.answer, top, isListed ? null : el("p", { class: "sentence" }, answer.text),
    changes(answer, model), conflict(answer, model, config.answers ? null : lift), proof(answer, model, unit()));
  places.answer.setAttribute("aria-busy", "false");
  const short = isListed ? say("infeasible") : answer.text;
  fill(places.jump, el("p", {}, short), el("a", { href: "#answer-title" }, say("jump")), mark());
  announce(short);
  fill(places.others);
  if (!config.answers && answer.status === "optimal" && answer.changes.length)
    waitForOthers = setTimeout(() => showOthers(answer, turn), 500);
}

// What is read aloud: the answer that a person has come to, not each one on the way.
let waitToSay;
function announce(words) {
  clearTimeout(waitToSay);
  waitToSay = setTimeout(() => fill(places.said, seen(words)), 600);
}

const unit = () => say(model.cost === "mad" ? "deviations" : "plainUnits");

function showProblem(problem) {
  places.answer.classList.add("stale");
  const field = problem.field ?? "";
  const rule = /^constraints\[(\d+)\]/.exec(field);
  const feature = /^bounds\.(.*)/.exec(field)?.[1];
  const at = model.features.findIndex((one) => one.name === feature);
  if (rule) showRules(Number(rule[1]), problem.detail);
  else if (at >= 0) fill(document.getElementById(`f${at}-error`), seen(problem.detail));
  else fill(places.problem, seen(say("problem", { detail: problem.detail })));
}

// The closest ways that leave something as it is that each way before them changes.
async function showOthers(answer, asked) {
  fill(places.others, el("h3", {}, say("othersTitle")), el("p", { class: "note", role: "status" }, say("othersSought")));
  const came = await tried(request(state, { alternatives: 4, certificate: false }));
  if (turn !== asked) return;
  fill(places.others);
  if (!came?.ok) return;
  const { told } = came;
  const { ways, is_complete: isComplete } = told.answers[0].alternatives;
  const changed = ways.map((one) => one.changes.map((change) => change.feature));
  const drawn = ways.slice(1).map((one, k) => {
    const before = new Set(changed.slice(0, k + 1).flat());
    return way(one, [...before].filter((name) => !changed[k + 1].includes(name)), answer);
  });
  if (!drawn.length && !isComplete) return;
  const last = drawn.length ? say("othersAll") : say("otherNone", { names: spoken(changed[0] ?? []) });
  fill(places.others, el("h3", {}, say("othersTitle")), el("div", { class: "ways" }, drawn),
    isComplete ? el("p", { class: "note" }, last) : null);
}

const LISTS = new Intl.ListFormat(TEXTS.language);
const spoken = (names) =>
  LISTS.format(names.map((name) => seen(model.features.find((feature) => feature.name === name).label)));

// Nothing cheaper leaves all of `kept` as it is, so that locking them leads to this way.
function way(other, kept, answer) {
  const names = spoken(kept);
  const times = digits(Number((other.cost / answer.cost).toPrecision(3)));
  return el("div", { class: "way" },
    el("p", { class: "wayname" }, say("otherWay", { names })),
    el("ul", {}, other.shown.changes.map((change) => el("li", {}, change.text))),
    el("p", { class: "note" }, say("otherCost", { times }), " · ", say(other.status)),
    el("button", {
      type: "button", class: "plain",
      click: () => { kept.forEach((name) => setLock(name, true)); restart(); },
    }, say("useOther", { names })));
}

function setLock(name, on) {
  state.freeze = state.freeze.filter((other) => other !== name);
  if (on) state.freeze.push(name);
}

function lift(field) {
  const [kind, ...rest] = field.split(":");
  const name = rest.join(":");
  if (kind === "freeze") setLock(name, false);
  else if (kind === "bounds") delete state.bounds[name];
  else if (kind === "seen") state.anywhere = true;
  else if (kind === "rule") state.rules.splice(Number(name), 1);
  restart();
}

// The button that brought this about is gone with the answer before.
function restart() {
  draw();
  refresh();
  document.getElementById("answer-title").focus({ preventScroll: true });
}

function draw() {
  const others = (name) => config.rows.map((row) => row[name]);
  fill(places.features, model.features.map((feature, k) =>
    line(feature, k, state, others(feature.name), (part, value) => {
      if (part === "lock") {
        setLock(feature.name, value);
        draw();
        places.features.children[k].querySelector(".lock").focus();
      } else if (part === "bounds") {
        if (value.every((end) => end === null)) delete state.bounds[feature.name];
        else state.bounds[feature.name] = value;
      } else {
        state.values[feature.name] = value;
        state.row = null;
        const list = document.getElementById("rows-list");
        if (list) list.value = "-1";
      }
      refresh();
    })));
  drawChoices();
  showRules();
  if (config.answers) places.features.querySelectorAll("input, select, button").forEach((one) => (one.disabled = true));
}

function drawChoices() {
  const names = config.rows.map((_, k) => config.names?.[k] ?? `${k + 1}`);
  const rows = el("select", { id: "rows-list", input: (event) => chooseRow(Number(event.target.value)) },
    config.answers ? null : el("option", { value: "-1" }, say("ownValues")),
    names.map((name, k) => el("option", { value: String(k) }, name)));
  rows.value = String(state.row ?? -1);
  fill(places.rows, config.rows.length ? [el("label", { for: "rows-list" }, say("chooseRow")), rows] : []);
  const wishes = [null, ...model.classes];
  const target = el("select", {
    id: "target-list", disabled: Boolean(config.answers),
    input: (event) => { state.target = wishes[Number(event.target.value)]; refresh(); },
  }, wishes.map((wish, k) => el("option", { value: String(k) }, wish === null ? say("anyOther") : label(wish))));
  target.value = String(Math.max(0, wishes.indexOf(state.target)));
  fill(places.target, el("label", { for: "target-list" }, say("wish")), target);
}

function chooseRow(k) {
  state.row = k >= 0 ? k : null;
  if (k >= 0) state.values = start(config.rows[k]);
  draw();
  refresh();
}

// Values for all features: those of a row, typical ones where it has none.
function start(row = {}) {
  return Object.fromEntries(model.features.map((feature) => {
    const middle = feature.seen ?? feature.range ?? [0, 0];
    const usual = feature.levels ? feature.levels[0] : feature.typical ?? ((middle[0] ?? 0) + (middle[1] ?? 0)) / 2;
    return [feature.name, row[feature.name] === undefined ? usual : row[feature.name]];
  }));
}

function showRules(bad = -1, detail = "") {
  if (config.answers) return;
  const anywhere = el("label", { class: "anywhere" }, el("input", {
    type: "checkbox", checked: state.anywhere, input: (event) => { state.anywhere = event.target.checked; refresh(); },
  }), " ", say("anywhere"));
  const tools = {
    tried: async (rule) => {
      const came = await tried(request(state, { constraints: [rule], text: false, certificate: false }));
      return came && (came.ok || !came.told.field?.startsWith("constraints") ? null : came.told.detail);
    },
    changed: (rules) => {
      const id = document.activeElement.form?.id;
      state.rules = rules;
      showRules();
      document.querySelector(`#${id ?? "rule-builder"} :is(select, input)`)?.focus();
      refresh();
    },
  };
  fill(places.rules, ruleBook(model, state.rules, config.suggested ?? [], bad, detail, tools),
    model.features.some((feature) => feature.seen) ? anywhere : null);
}

function showOffline() {
  history.replaceState(null, "", toLink({ ...empty(), row: state.row }));
  show(config.answers[state.row]);
}

function tools() {
  const link = el("button", {
    type: "button", class: "plain",
    click: async () => {
      const clean = new URL(location.href);
      clean.hash = config.answers ? toLink({ ...empty(), row: state.row }) : toLink(state);
      try {
        await navigator.clipboard.writeText(clean.href);
        link.textContent = say("copied");
        setTimeout(() => (link.textContent = say("link")), 1500);
      } catch {
        // Not every browser lets a page write there: then the person copies it.
        const shown = el("input", { type: "text", readonly: true, value: clean.href, "aria-label": say("linkHere") });
        link.replaceWith(shown);
        shown.select();
      }
    },
  }, say("link"));
  fill(places.tools, link, el("button", { type: "button", class: "plain", click: () => print() }, say("print")));
}

function askForToken() {
  const typed = el("input", { id: "token", type: "password", autocomplete: "off" });
  fill(places.problem, el("form", { submit: (event) => { event.preventDefault(); token = typed.value; begin(); } },
    el("label", { for: "token" }, say("token")), " ", typed, " ", el("button", { type: "submit" }, "OK")));
  typed.focus();
}

async function begin() {
  if (config.model) model = config.model;
  else {
    let came;
    try {
      came = await ask();
    } catch {
      return fill(places.problem, say("offlineError"));
    }
    if (came.status === 401) return askForToken();
    model = came.told;
  }
  fill(places.problem);
  state = fromLink(location.hash, model) ?? empty();
  if (config.answers && !(state.row >= 0 && state.row < config.answers.length)) state.row = 0;
  if (state.row === null && !Object.keys(state.values).length && config.rows.length) state.row = 0;
  const row = state.row !== null ? config.rows[state.row] : undefined;
  state.values = { ...start(row), ...(config.answers ? {} : state.values) };
  if (config.answers) state.target = config.target ?? null;
  else if (state.target === null && config.target !== undefined && !location.hash.includes("s=")) state.target = config.target;
  document.documentElement.lang = TEXTS.language;
  fill(places.footer, config.answers ? el("p", {}, say("offline")) : null, el("p", {}, say("footer")));
  document.body.classList.toggle("is-offline", Boolean(config.answers));
  document.getElementById("case-help").textContent = config.answers ? "" : say("caseHelp");
  tools();
  draw();
  await refresh();
}

document.getElementById("case-title").textContent = say("caseTitle");
document.getElementById("answer").textContent = say("waiting");
document.getElementById("now-title").textContent = say("now");
document.getElementById("answer-title").textContent = say("answerTitle");
document.querySelector(".skip").textContent = say("jump");
// The short answer at the foot of a phone goes where the long one is on the screen.
new IntersectionObserver(([seenNow]) => places.jump.classList.toggle("is-there", seenNow.isIntersecting),
  { rootMargin: "0px 0px -35% 0px" }).observe(places.answer);
begin();
