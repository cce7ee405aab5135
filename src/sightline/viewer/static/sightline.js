// Keyboard and small conveniences. Each page works without this file.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const typing = (target) => target.matches("input:not([type=checkbox], [type=radio]), textarea, select");

// j / k: move through the items of a page (cards, probes, rows).
function move(step) {
  const items = all("[data-item]");
  if (!items.length) return;
  const at = items.findIndex((item) => item.classList.contains("at"));
  show(items[Math.min(items.length - 1, Math.max(0, at + step))]);
}

function show(item) {
  all(".at").forEach((other) => other.classList.remove("at"));
  item.classList.add("at");
  item.scrollIntoView({ block: "nearest" });
  const target = item.matches("a, button, [tabindex]") ? item : item.querySelector("a, button, summary");
  target?.focus({ preventScroll: true });
}

function say(text) {
  const status = document.querySelector("[role=status]");
  if (status) status.textContent = text;
}

// The text of an element, or the address of this page.
async function copy(selector) {
  const text = document.querySelector(selector)?.textContent.trim() ?? location.href;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
  } catch {
    say("The browser does not allow copying here.");
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const items = all("[data-item]");
  const byKey = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
  else if (event.key === "?") document.getElementById("keys")?.togglePopover();
  else if (event.key === "/" && document.querySelector("[type=search]")) document.querySelector("[type=search]").focus();
  else if (/^[1-9]$/.test(event.key) && items[event.key - 1]) show(items[event.key - 1]);
  else if (byKey) byKey.click();
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button.dataset.copy);
});

// Forms with data-auto are sent when a choice changes; their button is for browsers without scripts.
document.addEventListener("change", (event) => {
  if (event.target.matches("select")) event.target.form?.closest("[data-auto]")?.requestSubmit();
});

// The back button shows a page as it was left; its forms show the address again.
addEventListener("pageshow", (event) => {
  const visit = performance.getEntriesByType("navigation")[0];
  if (event.persisted || visit?.type === "back_forward") all("form[data-auto]").forEach((form) => form.reset());
});
