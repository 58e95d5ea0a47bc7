// Check a certificate file of one answer in exact arithmetic: for one metric shared by all
// prototypes, real numbers, linear constraints, and costs that are sums over the features.
// What this script has no words for it says so; what does not hold, it refuses.

import {
  ZERO, ONE, INF, abs, add, compare, decimal, div, exact, isFinite_, max, min, mul, neg, power2,
  q, rootAbove, roundedUp, sign, sub, sum,
} from "./rational.js";
import { fingerprint } from "./digest.js";
import { Double, readJson } from "./json.js";

export class Refused extends Error {}
export class Beyond extends Error {}

const EQUALITY = power2(-40), INEQUALITY = power2(-50), COST = power2(-40), BLUR = power2(-50);
const TWO = { n: 2n, d: 1n };

// An object with these keys and no others; one with ? may be missing.
function keys(item, known, what) {
  if (item === null || typeof item !== "object" || Array.isArray(item)) throw new Refused(`${what} is no object`);
  for (const key of Object.keys(item))
    if (!known.includes(key) && !known.includes(`${key}?`)) throw new Refused(`${what} has the key ${key}, which is not known`);
  for (const key of known)
    if (!key.endsWith("?") && !Object.hasOwn(item, key)) throw new Refused(`${what} has no ${key}`);
  return item;
}
function list(items, what) {
  if (!Array.isArray(items)) throw new Refused(`${what} is no list`);
  return items;
}
function text(item, what) {
  if (typeof item !== "string") throw new Refused(`${what} is no text`);
  return item;
}
const number = (value) => {
  if (typeof value !== "number" && !(value instanceof Double)) throw new Refused("something is no number");
  return exact(Number(value));
};
const vector = (items, length) => {
  if (!Array.isArray(items) || (length !== undefined && items.length !== length))
    throw new Refused("a list has another length than it should");
  return items.map(number);
};
const amount = (value) => {
  const found = number(value);
  if (sign(found) < 0) throw new Refused("an amount is below 0");
  return found;
};
const end = (value, open) => (value === null || value === undefined ? open : number(value));
const at = (k, count) => {
  if (!Number.isInteger(k) || k < 0 || k >= count) throw new Refused("a position is out of range");
  return k;
};
const table = (pairs, count) => {
  const out = new Map();
  for (const pair of list(pairs, "a table")) {
    if (list(pair, "a pair").length !== 2) throw new Refused("a pair has another length than 2");
    const [k, value] = pair;
    if (out.has(at(k, count))) throw new Refused("a position stands twice");
    out.set(k, number(value));
  }
  return out;
};
const dot = (a, b) => a.reduce((total, v, i) => (sign(v) && sign(b[i]) ? add(total, mul(v, b[i])) : total), ZERO);

// What tells classes apart: 1, 1.0, true and "1" are four.
const classKey = (name) => {
  const kind = name instanceof Double ? "double" : typeof name;
  if (!["double", "number", "string", "boolean"].includes(kind)) throw new Refused("a class is neither text nor number");
  return `${kind} ${kind === "double" ? Number(name) : name}`;
};

class Model {
  constructor(told) {
    keys(told, ["classes", "labels", "prototypes", "metric", "offsets", "map"], "the model");
    if (told.apart) throw new Beyond("the model is kept apart");
    if (told.metric?.kind === "local") throw new Beyond("the model has a metric for each prototype");
    const names = list(told.classes, "the list of classes").map(classKey);
    if (new Set(names).size !== names.length) throw new Refused("a class stands twice");
    this.depth = list(told.prototypes, "the list of prototypes")[0]?.length;
    if (!this.depth) throw new Refused("there are no prototypes");
    this.prototypes = told.prototypes.map((row) => vector(row, this.depth));
    this.labels = list(told.labels, "the list of labels").map((k) => at(k, names.length));
    if (this.labels.length !== this.prototypes.length) throw new Refused("labels are missing");
    this.classes = names.length;
    this.offsets = this.labels.map(() => ZERO);
    if (told.offsets !== null) {
      const { kind: meaning, values } = keys(told.offsets, ["kind", "values"], "the offsets");
      if (!["added to the squared distance", "score up to a common shift"].includes(meaning))
        throw new Refused("the offsets are of a kind that is not known");
      this.offsets = vector(values, this.labels.length);
    }
    const { kind, factor } = keys(told.metric, told.metric?.kind === "plain" ? ["kind"] : ["kind", "factor"], "the metric");
    if (kind === "plain") this.factor = null;
    else if (kind === "diagonal") this.factor = vector(factor, this.depth).map((a, j) => this.unit(j, a));
    else if (kind === "shared") this.factor = list(factor, "the metric").map((row) => vector(row, this.depth));
    else throw new Refused("the metric is of a kind that is not known");
    this.map = told.map;
  }
  unit(j, a) {
    return Array.from({ length: this.depth }, (_, k) => (k === j ? a : ZERO));
  }
  lifted(v) {
    return this.factor ? this.factor.map((row) => dot(row, v)) : v;
  }
  lowered(v) {
    if (!this.factor) return v;
    return Array.from({ length: this.depth }, (_, j) => sum(this.factor.map((row, i) => mul(row[j], v[i]))));
  }
  scores(z) {
    return this.prototypes.map((p, k) => {
      const image = this.lifted(z.map((v, j) => sub(v, p[j])));
      return add(dot(image, image), this.offsets[k]);
    });
  }
  isCopy(k, of) {
    // As far from everything: the metric does not see their difference.
    const away = this.prototypes[k].map((v, j) => sub(v, this.prototypes[of][j]));
    const seen = this.factor ? this.factor.some((row) => sign(dot(row, away))) : away.some(sign);
    return !seen && compare(this.offsets[k], this.offsets[of]) === 0;
  }
}

class Question {
  constructor(model, told) {
    keys(told, ["columns", "cost", "constraints", "margin", "tolerance", "confidence?"], "the question");
    if (told.confidence !== undefined) throw new Beyond("the question asks for a confidence");
    this.model = model;
    this.tolerance = amount(told.tolerance);
    if (sign(amount(told.margin))) throw new Beyond("the question has a margin");
    this.columns = list(told.columns, "the list of columns").map((column) => {
      if (column?.kind !== "real") throw new Beyond("the table has whole numbers, steps or levels");
      text(keys(column, ["name", "kind", "lower", "upper"], "a column").name, "a name");
      return { lower: end(column.lower, -INF), upper: end(column.upper, INF) };
    });
    this.width = this.columns.length;
    this.readCost(told.cost);
    this.readMap(model.map);
    this.constraints = list(told.constraints, "the list of constraints").map((item) => this.constraint(item));
  }
  readCost(told) {
    if (told?.decrease !== undefined) throw new Beyond("going up and going down have prices of their own");
    keys(told, ["weights", "switches", "quadratic"], "the cost");
    this.w = vector(told.weights, this.width);
    if (this.w.some((a) => sign(a) < 0)) throw new Refused("a weight is negative");
    if (list(told.switches, "the list of switches").length) throw new Beyond("changes of level have prices");
    this.curve = this.w.map(() => ZERO);
    if (told.quadratic === null) return;
    const { kind, values } = keys(told.quadratic, ["kind", "values"], "the quadratic cost");
    if (!["diagonal", "matrix", "factor"].includes(kind)) throw new Refused("a cost is of a kind that is not known");
    if (kind === "matrix" && values?.length !== this.width) throw new Refused("a list has another length than it should");
    if (kind === "diagonal") this.curve = vector(values, this.width);
    else {
      const rows = list(values, "the quadratic cost").map((row) => vector(row, this.width));
      for (let i = 0; i < this.width; i += 1)
        for (let j = 0; j < this.width; j += 1) {
          const entry = kind === "matrix" ? rows[i][j] : sum(rows.map((row) => mul(row[i], row[j])));
          if (i === j) this.curve[i] = entry;
          else if (sign(entry)) throw new Beyond("the cost ties features to each other");
        }
    }
    if (this.curve.some((a) => sign(a) < 0)) throw new Refused("a cost is not convex");
  }
  readMap(told) {
    this.offset = Array.from({ length: this.model.depth }, () => ZERO);
    this.parts = this.columns.map((_, j) => ({ base: ZERO, weights: new Map([[j, ONE]]) }));
    if (told === null) {
      if (this.width !== this.model.depth) throw new Refused("the columns are not those of the model");
      return;
    }
    keys(told, ["offset", "parts"], "the map");
    this.offset = vector(told.offset, this.model.depth);
    if (list(told.parts, "the map").length !== this.width) throw new Refused("the map does not fit the columns");
    this.parts = told.parts.map((part) => {
      if (part?.kind !== "number") throw new Beyond("the table has levels");
      keys(part, ["kind", "base", "weights"], "a part of the map");
      return { base: number(part.base), weights: table(part.weights, this.model.depth) };
    });
  }
  constraint(item) {
    if (item?.kind === "seen") {
      keys(item, ["kind", "column", "lower", "upper"], "a constraint");
      return { seen: at(item.column, this.width), lower: end(item.lower, -INF), upper: end(item.upper, INF) };
    }
    if (item?.kind !== "linear") throw new Beyond("there are constraints of other kinds than comparisons");
    keys(item, ["kind", "new", "old", "sense", "value"], "a constraint");
    if (!["<=", "=="].includes(item.sense)) throw new Refused("a comparison is not known");
    return {
      fresh: table(item.new, this.width), old: table(item.old, this.width),
      equality: item.sense === "==", value: number(item.value),
    };
  }
  image(row) {
    const z = [...this.offset];
    this.parts.forEach((part, j) => {
      const by = sub(row[j], part.base);
      for (const [c, a] of part.weights) z[c] = add(z[c], mul(a, by));
    });
    return z;
  }
}

class Asked {
  constructor(question, x, target) {
    Object.assign(this, { question, model: question.model, x, width: question.width });
    const wished = new Set(list(target, "the target").map((c) => at(c, this.model.classes)));
    this.targets = this.model.labels.flatMap((label, k) => (wished.has(label) ? [k] : []));
    this.rivals = this.model.labels.flatMap((label, k) => (wished.has(label) ? [] : [k]));
    if (!this.targets.length) throw new Refused("no prototype has a wished-for label");
    this.rows = question.constraints.flatMap((item) => this.rowsOf(item));
    question.columns.forEach((column, j) => this.rows.push(...this.ends(j, column.lower, column.upper)));
    this.scores = this.model.scores(question.image(x));
    this.sides = this.sidesOf();
    this.heights = this.heightsOf();
    this.slopes = new Map();
  }
  rowsOf(item) {
    if (item.seen !== undefined) {
      const x = this.x[item.seen];
      return this.ends(item.seen, min(item.lower, x), max(item.upper, x));
    }
    const old = [...item.old].map(([j, a]) => mul(a, this.x[j]));
    const fresh = new Map([...item.fresh].filter(([, a]) => sign(a)));
    const size = add(sum(old.map(abs)), abs(item.value));
    return [{ fresh, value: sub(item.value, sum(old)), size, equality: item.equality }];
  }
  ends(j, lower, upper) {
    const out = [];
    if (isFinite_(lower)) out.push({ fresh: new Map([[j, neg(ONE)]]), value: neg(lower), size: abs(lower), equality: false });
    if (isFinite_(upper)) out.push({ fresh: new Map([[j, ONE]]), value: upper, size: abs(upper), equality: false });
    return out;
  }
  left(row, y) {
    return sum([...row.fresh].map(([c, a]) => mul(a, y[c])));
  }
  // What conditions on one feature alone leave of its change.
  sidesOf() {
    const low = this.x.map(() => -INF), high = this.x.map(() => INF);
    for (const row of this.rows) {
      if (row.fresh.size !== 1) continue;
      const [[c, a]] = row.fresh;
      const stop = sub(div(row.value, a), this.x[c]);
      if (row.equality || sign(a) > 0) high[c] = min(high[c], stop);
      if (row.equality || sign(a) < 0) low[c] = max(low[c], stop);
    }
    return { low, high };
  }
  // Conditions a delta_c + b delta_t <= 0 where t has a price and c has none: t limits c.
  heightsOf() {
    const { w, curve } = this.question;
    return this.rows.flatMap((row) => {
      if (row.fresh.size !== 2 || row.equality || compare(row.value, this.left(row, this.x))) return [];
      const [[c, a], [t, b]] = row.fresh;
      return [{ c, a, t, b }, { c: t, a: b, t: c, b: a }].filter((way) =>
        sign(w[way.t]) && !sign(w[way.c]) && !sign(curve[way.c]));
    });
  }
  checkAnswer(row, claimed) {
    const { w, curve } = this.question;
    const delta = row.map((v, j) => sub(v, this.x[j]));
    this.rows.forEach((each, n) => {
      const over = sub(this.left(each, row), each.value);
      const parts = [...each.fresh].map(([c, a]) => abs(mul(a, row[c])));
      const slack = mul(each.equality ? EQUALITY : INEQUALITY, add(sum(parts), each.size));
      if (compare(each.equality ? abs(over) : over, slack) > 0)
        throw new Refused(`the answer breaks the linear condition ${n}`);
    });
    const cost = sum(delta.map((t, j) => add(mul(w[j], abs(t)), mul(curve[j], mul(t, t)))));
    const blurs = delta.map((t, j) => (sign(t) ? mul(BLUR, add(abs(row[j]), abs(this.x[j]))) : ZERO));
    for (const { c, a, t, b } of this.heights)
      if (sign(mul(a, delta[c])) > 0) blurs[t] = max(blurs[t], mul(abs(div(a, b)), blurs[c]));
    const blur = sum(delta.map((t, j) => {
      const b = blurs[j];
      const slope = add(w[j], mul(TWO, mul(curve[j], abs(t))));
      return add(mul(slope, b), mul(curve[j], mul(b, b)));
    }));
    if (compare(abs(sub(cost, claimed)), add(mul(COST, cost), blur)) > 0)
      throw new Refused(`the answer costs ${decimal(cost, false)}, not what is claimed`);
    const scores = this.model.scores(this.question.image(row));
    const nearest = scores.reduce((best, s, k) => (compare(s, scores[best]) < 0 ? k : best), 0);
    if (!this.targets.includes(nearest)) throw new Refused("the answer does not have a wished-for label");
    return { cost, blur };
  }
  // Slope of the score of i less that of k.
  slope(i, k) {
    const key = `${i} ${k}`;
    if (!this.slopes.has(key)) {
      const [a, b] = [this.model.prototypes[i], this.model.prototypes[k]];
      const drawn = this.model.lowered(this.model.lifted(b.map((v, j) => sub(v, a[j]))));
      this.slopes.set(key, this.question.parts.map((part) =>
        mul(TWO, sum([...part.weights].map(([c, v]) => mul(v, drawn[c]))))));
    }
    return this.slopes.get(key);
  }
  // All changes that cost at most `cap`; null if there are none.
  box(cap) {
    const { w, curve } = this.question;
    const low = [...this.sides.low], high = [...this.sides.high];
    for (let c = 0; c < this.width; c += 1) {
      let far = INF;
      if (isFinite_(cap)) {
        const most = roundedUp(cap, 16);
        if (sign(w[c])) far = roundedUp(div(most, w[c]), 64);
        if (sign(curve[c])) far = min(far, roundedUp(rootAbove(div(most, curve[c])), 64));
      }
      if (isFinite_(far)) [low[c], high[c]] = [max(low[c], neg(far)), min(high[c], far)];
    }
    for (const { c, a, t, b } of this.heights) {
      const stop = sign(b) < 0 ? high[t] : low[t];
      if (!isFinite_(stop)) continue;
      const side = div(neg(mul(b, stop)), a);
      if (sign(a) > 0) high[c] = min(high[c], side);
      else low[c] = max(low[c], side);
    }
    return low.some((a, c) => compare(a, high[c]) > 0) ? null : { low, high };
  }
  // Least of cost and charges, or of the charges alone, over a box.
  bound(i, told, box, withCost) {
    const { w, curve } = this.question;
    const h = this.x.map(() => ZERO);
    let constant = ZERO;
    for (const [k, y] of told.rivals) {
      if (sign(y) <= 0) continue;
      this.slope(i, k).forEach((s, c) => (h[c] = add(h[c], mul(y, s))));
      constant = add(constant, mul(y, sub(this.scores[i], this.scores[k])));
    }
    for (const [n, y] of told.rows) {
      const row = this.rows[n];
      if (sign(y) <= 0 && !row.equality) continue;
      for (const [c, a] of row.fresh) h[c] = add(h[c], mul(y, a));
      constant = sub(constant, mul(y, sub(row.value, this.left(row, this.x))));
    }
    let total = constant;
    for (let c = 0; c < this.width; c += 1) {
      const part = leastAlong(withCost ? curve[c] : ZERO, h[c], withCost ? w[c] : ZERO, box.low[c], box.high[c]);
      if (!isFinite_(part)) throw new Beyond("a feature has no end in this proof");
      total = add(total, part);
    }
    return total;
  }
  single(i, k) {
    const { w, curve } = this.question;
    const behind = sub(this.scores[i], this.scores[k]);
    if (sign(behind) <= 0) return ZERO;
    const { low, high } = this.sides;
    const held = (c) => isFinite_(low[c]) && isFinite_(high[c]) && !sign(low[c]) && !sign(high[c]);
    const n = this.slope(i, k).map((s, c) => (held(c) ? ZERO : s));
    if (!n.some(sign)) return INF;
    // Either part of the cost alone is a bound, if it limits every change that gains.
    const limits = (prices) => n.every((s, c) => !sign(s) || sign(prices[c]));
    const over = (prices) => n.map((s, c) => (sign(s) ? div(abs(s), prices[c]) : ZERO));
    const flat = limits(w) ? div(behind, over(w).reduce(max, ZERO)) : ZERO;
    if (!limits(curve)) return flat;
    return max(flat, div(mul(behind, behind), sum(over(curve).map((gain, c) => mul(gain, abs(n[c]))))));
  }
  // A cell of a proof, once it is read: tables are maps.
  read(item) {
    if (!this.targets.includes(item?.prototype)) throw new Refused("a cell is of a label that is not wished for");
    const { kind } = item;
    if (kind === "single") {
      keys(item, ["kind", "prototype", "rival"], "a cell");
      if (!this.rivals.includes(item.rival)) throw new Refused("a rival has a wished-for label");
      return item;
    }
    if (!["bound", "empty"].includes(kind)) throw new Beyond("the proof is a tree of boxes");
    for (const key of Object.keys(item))
      if (!["kind", "prototype", "rivals", "rows", "point"].includes(key)) throw new Beyond(`the proof charges for ${key}`);
    const { prototype, rivals = [], rows = [], point } = item;
    if (point !== undefined) vector(point, this.width);
    const charged = table(rivals, this.model.labels.length);
    for (const k of charged.keys())
      if (!this.rivals.includes(k)) throw new Refused("a rival has a wished-for label");
    return { kind, prototype, rivals: charged, rows: table(rows, this.rows.length) };
  }
  cell(i, item, cap, empty) {
    if (item.kind === "single") {
      const value = this.single(i, item.rival);
      return empty && isFinite_(value) ? ZERO : value;
    }
    const box = this.box(cap);
    if (!box) return INF;
    if (item.kind === "bound") {
      if (empty) return ZERO;
      const value = max(ZERO, this.bound(i, item, box, true));
      return compare(value, cap) > 0 ? INF : value;
    }
    const value = this.bound(i, item, box, false);
    const strict = [...item.rivals].some(([k, y]) => sign(y) > 0 && k < i);
    return sign(value) > 0 || (sign(value) === 0 && strict) ? INF : ZERO;
  }
  least(proof, cap, empty) {
    const entries = new Map();
    if (proof?.counted !== undefined) throw new Beyond("the proof counts changes");
    for (const told of list(keys(proof, ["cells"], "the proof").cells, "the list of cells")) {
      const item = this.read(told);
      entries.set(item.prototype, [...(entries.get(item.prototype) || []), item]);
    }
    let found = INF;
    const cells = this.rivals.length ? this.targets : [[...entries.keys(), ...this.targets][0]];
    for (const i of cells) {
      const copies = Array.from({ length: i }, (_, k) => k).some((k) => this.model.isCopy(i, k));
      if (!entries.has(i) && copies) continue;
      const values = (entries.get(i) || []).map((item) => this.cell(i, item, cap, empty));
      found = min(found, values.reduce(max, ZERO));
    }
    return found;
  }
}

// Least of a t^2 + b t + w |t| between two ends.
export function leastAlong(a, b, w, low, high) {
  const value = (t) => add(add(mul(a, mul(t, t)), mul(b, t)), mul(w, abs(t)));
  if (!sign(a)) {
    if (!isFinite_(high) && sign(add(b, w)) < 0) return -INF;
    if (!isFinite_(low) && sign(sub(b, w)) > 0) return -INF;
  }
  const places = [low, high].filter(isFinite_);
  const within = (t) => min(max(t, low), high);
  places.push(within(ZERO));
  if (sign(a)) for (const s of [add(b, w), sub(b, w)]) places.push(within(div(neg(s), mul(TWO, a))));
  return places.map(value).reduce(min);
}

function checkedLine(header, line) {
  keys(header, ["format", "version", "model", "question", "note?"], "the first line");
  if (header.note !== undefined) text(header.note, "the note");
  if (header.format !== "counterlvq certificate" || compare(number(header.version), ONE) !== 0)
    throw new Refused("this is no certificate of a known version");
  keys(line, ["input", "target", "answer", "proof", "hashes", "made_by", "told?", "missing?"], "the line");
  text(line.made_by, "the maker");
  if (![undefined, true, false].includes(line.told)) throw new Refused("told is neither true nor false");
  if (line.told) throw new Beyond("the model's own rounding decided a close call");
  if (header.model && header.model.apart) throw new Beyond("the model is kept apart");
  const hashes = { model: fingerprint(header.model), question: fingerprint(header.question) };
  keys(line.hashes, ["model", "question"], "the hashes");
  if (hashes.model !== line.hashes.model || hashes.question !== line.hashes.question)
    throw new Refused("it belongs to another model or question: a hash is another");
  const question = new Question(new Model(header.model), header.question);
  list(line.missing === undefined ? [] : line.missing, "the list of gaps").forEach((k) => at(k, question.width));
  const asked = new Asked(question, vector(line.input, question.width), line.target);
  const { row, cost, lower_bound: claimed, status } = keys(
    line.answer, ["row", "cost", "lower_bound", "status"], "the answer");
  const hasRow = ["optimal", "feasible"].includes(status);
  if (!hasRow && !["infeasible", "unknown"].includes(status)) throw new Refused("the status is not known");
  if ((row !== null) !== hasRow || (cost !== null) !== hasRow || (claimed !== null) !== (status !== "infeasible"))
    throw new Refused("the answer does not go with its status");
  if ([cost, claimed].some((value) => value !== null && sign(number(value)) < 0))
    throw new Refused("a cost or a bound is below 0");
  if (!hasRow) {
    const bound = asked.least(line.proof, INF, status === "infeasible");
    if (status === "infeasible" && isFinite_(bound)) throw new Refused("the proof does not show that there is no answer");
    if (claimed !== null && compare(number(claimed), bound) > 0) throw new Refused("the lower bound does not follow from the proof");
    return { cost: INF, bound };
  }
  const told = number(cost);
  const paid = asked.checkAnswer(vector(row, question.width), told);
  const bound = min(asked.least(line.proof, told, false), told);
  if (compare(number(claimed), bound) > 0)
    throw new Refused(`the lower bound does not follow from the proof, which shows ${decimal(bound, false)}`);
  const open = sub(paid.cost, bound);
  if (status === "optimal" && compare(open, max(mul(question.tolerance, paid.cost), paid.blur)) > 0)
    throw new Refused("it is not shown to be optimal");
  return { cost: paid.cost, bound };
}

// Check the text of a file with one answer; {verdict: "verified" | "refuted" | "beyond", ...}.
export function checkCertificate(text) {
  try {
    const lines = text.split("\n").filter((line) => /[^ \t\r\v\f]/.test(line));
    if (lines.length !== 2) throw new Refused("expected a header and one answer");
    const { cost, bound } = checkedLine(...lines.map(readJson));
    return { verdict: "verified", cost: decimal(cost, true), bound: decimal(bound, false) };
  } catch (error) {
    const beyond = error instanceof Beyond;
    return { verdict: beyond ? "beyond" : "refuted", reason: error.message };
  }
}
