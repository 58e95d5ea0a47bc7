// Elements of the page. Whatever comes from outside is text, and nothing of it stays unseen.

// Control and bidirectional characters, written out as Python writes them.
export function seen(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, (letter) => {
    const code = letter.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

const SVG = new Set(["svg", "rect", "line", "path", "circle"]);

// An element with attributes, listeners (functions) and children (elements or text).
export function el(name, attributes = {}, ...children) {
  const made = SVG.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else if (key === "value") made.value = value;
    else if (key === "checked" || key === "disabled") made[key] = value;
    else made.setAttribute(key, seen(value === true ? "" : value));
  }
  for (const child of children.flat())
    if (child !== null && child !== undefined && child !== false)
      made.append(child instanceof Node ? child : seen(child));
  return made;
}

export function fill(place, ...children) {
  place.replaceChildren(...children.flat().filter(Boolean));
}

const DIGITS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
export const digits = (value) => (value === null || value === undefined ? "–" : DIGITS.format(value));

// A number rounded to six digits that is not above it.
export function down(value) {
  if (value === null || value <= 0) return digits(Math.max(value ?? 0, 0));
  const unit = 10 ** (Math.floor(Math.log10(value)) - 5);
  const cut = Math.floor(value / unit) * unit;
  return digits(cut <= value ? cut : cut - unit);
}
