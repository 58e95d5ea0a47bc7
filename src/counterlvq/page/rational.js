// Exact rational numbers: a BigInt over a BigInt. Every double is one of them.

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

export function q(n, d = 1n) {
  if (d < 0n) [n, d] = [-n, -d];
  const g = gcd(n < 0n ? -n : n, d);
  return g > 1n ? { n: n / g, d: d / g } : { n, d };
}

export const ZERO = { n: 0n, d: 1n };
export const ONE = { n: 1n, d: 1n };
export const INF = Infinity;
export const isFinite_ = (a) => typeof a === "object";

// The rational number that a double is.
export function exact(value) {
  if (!Number.isFinite(value)) throw new Error("a number is not finite");
  if (value === 0) return ZERO;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const power = Number((bits >> 52n) & 0x7ffn);
  const digits = bits & 0xfffffffffffffn;
  const whole = power ? digits | 0x10000000000000n : digits;
  const signed = bits >> 63n ? -whole : whole;
  const shift = BigInt((power || 1) - 1075);
  return shift >= 0n ? { n: signed << shift, d: 1n } : q(signed, 1n << -shift);
}

export const add = (a, b) => q(a.n * b.d + b.n * a.d, a.d * b.d);
export const sub = (a, b) => q(a.n * b.d - b.n * a.d, a.d * b.d);
export const mul = (a, b) => q(a.n * b.n, a.d * b.d);
export const div = (a, b) => q(a.n * b.d, a.d * b.n);
export const neg = (a) => ({ n: -a.n, d: a.d });
export const abs = (a) => (a.n < 0n ? neg(a) : a);
export const sign = (a) => (a.n > 0n ? 1 : a.n < 0n ? -1 : 0);
export const sum = (items) => items.reduce(add, ZERO);
export const power2 = (k) => (k >= 0 ? { n: 1n << BigInt(k), d: 1n } : { n: 1n, d: 1n << BigInt(-k) });

// Compare rational numbers and infinities: negative, 0 or positive.
export function compare(a, b) {
  if (!isFinite_(a) || !isFinite_(b)) {
    const [x, y] = [a, b].map((v) => (isFinite_(v) ? 0 : v));
    return x === y ? 0 : x < y ? -1 : 1;
  }
  const left = a.n * b.d, right = b.n * a.d;
  return left < right ? -1 : left > right ? 1 : 0;
}
export const max = (a, b) => (compare(a, b) >= 0 ? a : b);
export const min = (a, b) => (compare(a, b) <= 0 ? a : b);

// Round a number that is not negative up to so many binary digits.
export function roundedUp(value, bits) {
  if (sign(value) <= 0) return value;
  let size = value.n.toString(2).length - value.d.toString(2).length;
  if (compare(value, power2(size)) < 0) size -= 1;
  const unit = power2(size + 1 - bits);
  const units = div(value, unit);
  const whole = units.n / units.d + (units.n % units.d ? 1n : 0n);
  return mul({ n: whole, d: 1n }, unit);
}

// A number whose square is not below `value`, about its root.
export function rootAbove(value) {
  if (sign(value) <= 0) return ZERO;
  const shift = 2n * BigInt(Math.max(0, 64 + value.d.toString(2).length - value.n.toString(2).length));
  const scaled = (value.n << shift) / value.d + 1n;
  let r = 1n << BigInt(Math.ceil(scaled.toString(2).length / 2));
  for (;;) {
    const next = (r + scaled / r) >> 1n;
    if (next >= r) break;
    r = next;
  }
  return q(r + 1n, 1n << (shift / 2n));
}

// Some digits of a number, rounded up or down.
export function decimal(value, up, digits = 9) {
  if (!isFinite_(value)) return value > 0 ? "∞" : "-∞";
  if (sign(value) < 0) return "-" + decimal(neg(value), !up, digits);
  if (sign(value) === 0) return "0";
  let places = 0;
  const ten = (k) => 10n ** BigInt(k);
  while (compare(value, { n: ten(digits - 1), d: ten(places) }) < 0 && places < 400) places += 1;
  const scaled = { n: value.n * ten(places), d: value.d };
  let whole = scaled.n / scaled.d;
  if (up && scaled.n % scaled.d) whole += 1n;
  const text = whole.toString().padStart(places + 1, "0");
  const head = text.slice(0, text.length - places), tail = text.slice(text.length - places);
  const shown = places ? `${head}.${tail}`.replace(/\.?0+$/, "") : head;
  return places > 15 ? Number(shown).toExponential(2) : shown;
}
