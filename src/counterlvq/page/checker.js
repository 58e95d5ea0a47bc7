// A button that adds a proof up in the browser, and one that saves its certificate.

import { el, seen } from "./dom.js";
import { checkCertificate } from "./proof.js";
import { say } from "./texts.js";

export function checker(certificate, status, isRounded = false) {
  if (!certificate) return el("p", { class: "note" }, say("noCertificate"));
  const verdict = el("p", { class: "verdict", role: "status" });
  const check = el("button", {
    type: "button", class: "check",
    click: () => {
      verdict.className = "verdict";
      verdict.textContent = say("checking");
      setTimeout(() => {
        const found = checkCertificate(certificate);
        const isVerified = found.verdict === "verified";
        const text = !isVerified ? found.verdict
          : status === "infeasible" ? "verifiedNone" : isRounded ? "verifiedRounded" : "verified";
        verdict.className = `verdict ${found.verdict}`;
        verdict.textContent = seen(say(text, found));
      }, 20);
    },
  }, say("check"));
  const save = el("button", {
    type: "button", class: "plain",
    click: () => {
      const link = el("a", { download: "certificate.jsonl" });
      link.href = URL.createObjectURL(new Blob([certificate], { type: "application/jsonl" }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    },
  }, say("save"));
  return el("div", { class: "checker" }, el("div", { class: "buttons" }, check, save), verdict,
    el("p", { class: "note warning" }, say("saveWarning")));
}
