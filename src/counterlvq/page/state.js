// What the person has said so far, and the link that brings it back.

export const empty = () => ({
  row: null, values: {}, target: null, freeze: [], bounds: {}, rules: [], anywhere: false,
});

export function toLink(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const text = btoa(String.fromCharCode(...bytes));
  return "#s=" + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// Read a link; null for one that is none of ours. Only what fits the model is taken over.
export function fromLink(hash, model) {
  const found = /[#&]s=([\w-]+)/.exec(hash);
  if (!found) return null;
  let told;
  try {
    const text = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    told = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  } catch {
    return null;
  }
  if (told === null || typeof told !== "object") return null;
  const known = new Set(model.features.map((feature) => feature.name));
  const plain = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);
  const out = empty();
  const pairs = (item) => Object.entries(item ?? {}).filter(([name]) => known.has(name));
  out.row = Number.isInteger(told.row) ? told.row : null;
  out.values = Object.fromEntries(pairs(told.values).filter(([, value]) => plain(value)));
  out.target = model.classes.includes(told.target) ? told.target : null;
  out.freeze = (Array.isArray(told.freeze) ? told.freeze : []).filter((name) => known.has(name));
  const isEnd = (end) => end === null || typeof end === "number";
  out.bounds = Object.fromEntries(
    pairs(told.bounds).filter(([, ends]) => Array.isArray(ends) && ends.length === 2 && ends.every(isEnd)));
  out.rules = (Array.isArray(told.rules) ? told.rules : []).filter((rule) => typeof rule === "string");
  out.anywhere = told.anywhere === true;
  return out;
}

// The request that the state stands for.
export function request(state, more = {}) {
  return {
    rows: [state.values], target: state.target, freeze: state.freeze, bounds: state.bounds,
    constraints: state.rules, anywhere: state.anywhere, text: true, certificate: true, ...more,
  };
}
