// Read JSON as the standalone checker does: no key twice, no whole number beyond 2^53, and numbers
// with a point or an exponent told apart from positions.

// A number that was written with a point or an exponent: never a position.
export class Double {
  constructor(value) {
    this.value = value;
  }
  valueOf() {
    return this.value;
  }
}

const JSON_SPACE = /[ \t\n\r]*/y;
const JSON_NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const JSON_TEXT_STOP = /["\\]/g;
const JSON_WORDS = { true: true, false: false, null: null };

class JsonReader {
  constructor(source) {
    Object.assign(this, { source, place: 0 });
  }
  fail() {
    throw new SyntaxError(`it is no JSON: something else stands at character ${this.place}`);
  }
  // What a pattern finds here; null if it finds nothing.
  next(pattern) {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.source);
    if (found) this.place = pattern.lastIndex;
    return found;
  }
  // Pass over a sign and the space around it; false if another one stands here.
  passes(sign) {
    this.next(JSON_SPACE);
    if (this.source[this.place] !== sign) return false;
    this.place += 1;
    this.next(JSON_SPACE);
    return true;
  }
  whole() {
    this.next(JSON_SPACE);
    const value = this.value();
    this.next(JSON_SPACE);
    return this.place === this.source.length ? value : this.fail();
  }
  value() {
    if (this.passes("{")) return this.object();
    if (this.passes("[")) return this.items();
    if (this.source[this.place] === '"') return this.text();
    const number = this.next(JSON_NUMBER);
    if (number) return this.number(...number);
    for (const [word, value] of Object.entries(JSON_WORDS))
      if (this.source.startsWith(word, this.place)) {
        this.place += word.length;
        return value;
      }
    return this.fail();
  }
  text() {
    if (this.source[this.place] !== '"') this.fail();
    const start = this.place;
    // A pattern for all of it would be too deep for long texts: only its end is looked for here.
    for (this.place += 1; ; this.place += 1) {
      const stop = this.next(JSON_TEXT_STOP);
      if (!stop) this.fail();
      if (stop[0] === '"') return JSON.parse(this.source.slice(start, this.place));
    }
  }
  number(digits, point, exponent) {
    const value = Number(digits);
    if (!Number.isFinite(value)) throw new RangeError(`${digits.slice(0, 20)} is no finite double`);
    if (point || exponent) return new Double(value);
    // A whole number just beyond 2^53 may be read as 2^53: its digits decide.
    if (digits.length > 20 || BigInt(digits) > 1n << 53n || BigInt(digits) < -(1n << 53n))
      throw new RangeError(`the whole number ${digits.slice(0, 20)} is beyond 2^53`);
    return value;
  }
  items() {
    const out = [];
    if (this.passes("]")) return out;
    do out.push(this.value());
    while (this.passes(","));
    return this.passes("]") ? out : this.fail();
  }
  object() {
    const out = Object.create(null);
    if (this.passes("}")) return out;
    do {
      const key = this.text();
      if (Object.hasOwn(out, key)) throw new SyntaxError("a key stands twice in one object");
      if (!this.passes(":")) this.fail();
      out[key] = this.value();
    } while (this.passes(","));
    return this.passes("}") ? out : this.fail();
  }
}

export const readJson = (source) => new JsonReader(source).whole();
