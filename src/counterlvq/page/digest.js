// SHA-256 of values, in the form that certificate files state: the same in every language.

import { Double } from "./json.js";

const ROUND = [];
const START = [];

function fractions() {
  // The first 32 binary digits behind the point of roots of primes.
  const root = (n, k) => Number(BigInt.asUintN(32, whole(BigInt(n) << BigInt(32 * k), k)));
  const whole = (n, k) => {
    let low = 0n, high = 1n << 40n;
    while (low < high) {
      const middle = (low + high + 1n) >> 1n;
      if (middle ** BigInt(k) <= n) low = middle;
      else high = middle - 1n;
    }
    return low;
  };
  for (let n = 2; ROUND.length < 64; n += 1) {
    let prime = true;
    for (let d = 2; d * d <= n; d += 1) prime &&= n % d > 0;
    if (!prime) continue;
    if (START.length < 8) START.push(root(n, 2));
    ROUND.push(root(n, 3));
  }
}

export function sha256(bytes) {
  if (!ROUND.length) fractions();
  const length = bytes.length;
  const padded = new Uint8Array(((length + 8) >> 6) * 64 + 64);
  padded.set(bytes);
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(length) * 8n);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const state = [...START];
  const w = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const a = w[i - 15], b = w[i - 2];
      const s0 = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
      const s1 = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i += 1) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[i] + w[i]) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((v, i) => (state[i] = (state[i] + v) | 0));
  }
  return state.map((v) => (v >>> 0).toString(16).padStart(8, "0")).join("");
}

// Bytes of a text. A half of a pair that stands alone has three of its own: TextEncoder would
// write the same sign for all of them.
function utf8(text) {
  const encoder = new TextEncoder();
  if (!/\p{Surrogate}/u.test(text)) return encoder.encode(text);
  const bytes = [];
  for (const letter of text) {
    const code = letter.codePointAt(0);
    if (code < 0xd800 || code > 0xdfff) bytes.push(...encoder.encode(letter));
    else bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f));
  }
  return Uint8Array.from(bytes);
}

// Keys stand in the order of their code points, which is not that of JavaScript's letters.
function byCodePoints(a, b) {
  const [x, y] = [[...a], [...b]];
  for (let i = 0; i < Math.min(x.length, y.length); i += 1)
    if (x[i] !== y[i]) return x[i].codePointAt(0) - y[i].codePointAt(0);
  return x.length - y.length;
}

function spelled(item) {
  if (item === null) return "n";
  if (item === true) return "t";
  if (item === false) return "f";
  if (typeof item === "number" || item instanceof Double) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, Number(item) === 0 ? 0 : Number(item));
    return "d" + view.getBigUint64(0).toString(16).padStart(16, "0");
  }
  if (typeof item === "string") return `s${utf8(item).length}:${item}`;
  if (Array.isArray(item)) return `[${item.length}` + item.map(spelled).join("");
  const keys = Object.keys(item).sort(byCodePoints);
  return `{${keys.length}` + keys.map((key) => spelled(key) + spelled(item[key])).join("");
}

export const fingerprint = (item) => sha256(utf8(spelled(item)));
