// Keys, zoom, the time of an item, and fields that depend on others. Each page works without this file.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const typing = (target) => target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
const shown = (element) => element.getClientRects().length > 0;

// The control of a key. Fields can share keys: the field with the focus comes first, then the first without a value.
function control(key) {
  const found = all(`[data-key="${CSS.escape(key)}"]`).filter((one) => shown(one) && !one.disabled);
  const field = (one) => one.closest("fieldset");
  const rank = (one) => {
    if (field(one)?.contains(document.activeElement)) return 0;
    return field(one)?.querySelector(":checked") ? 2 : 1;
  };
  return found.sort((one, other) => rank(one) - rank(other))[0];
}

// A key stands at the option that it selects now: fields can share keys, and in a text field keys are text.
function showKeys() {
  for (const one of all("fieldset input[data-key]")) {
    const label = one.closest("label").querySelector("kbd");
    label.hidden = typing(document.activeElement) || control(one.dataset.key) !== one;
  }
}
for (const event of ["focusin", "focusout", "change"]) document.addEventListener(event, () => setTimeout(showKeys));

document.addEventListener("keydown", (event) => {
  const main = document.querySelector("[data-main]");
  const popover = document.querySelector(":popover-open");
  const goes = event.ctrlKey || event.metaKey || (main?.matches("a") && event.target === document.body);
  if (event.key === "Enter" && goes && main && !popover) {
    main.click();
    event.preventDefault();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (typing(event.target)) {
    if (event.key === "Escape" && !popover) event.target.blur();
    return;
  }
  const key = event.key.toLowerCase();
  if (key === "?") document.getElementById("keys")?.togglePopover();
  else if (key === "z" && popover?.id === "zoom") popover.hidePopover();
  else if (popover || event.repeat) return;
  else if (control(key)) press(control(key));
  else return;
  event.preventDefault();
});

function press(element) {
  element.click();
  if (element.matches("input")) element.focus();
}

// Zoom: the image in its own size, which scrolls; a click on it fits it to the screen and back.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-zoom]");
  const zoom = document.getElementById("zoom");
  if (event.target.matches("#zoom img")) zoom.classList.toggle("fit");
  if (!link || !zoom || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  zoom.classList.remove("fit");
  zoom.querySelector("div").replaceChildren(link.querySelector("img").cloneNode());
  zoom.showPopover();
});

// An item stays in hand while somebody writes: a view of its page begins the time anew.
const judged = document.getElementById("judge");
let wrote = false;
document.addEventListener("input", () => (wrote = true));
setInterval(() => {
  if (judged && wrote) fetch(judged.action).catch(() => {});
  wrote = false;
}, 5 * 60 * 1000);

// What is typed stays in this browser until a page confirms that it is saved: a link can end, a server can stop.
const DRAFT_DAYS = 30;
const DRAFT = "sightline draft ";
const draftKey = judged && `${DRAFT}${judged.getAttribute("action")} ${judged.dataset.annotator}`;
const typed = () => [...judged.elements].filter((one) => one.matches("[name^='f-']:not([type=hidden], button)"));

function keepDraft() {
  const present = new Set(typed().map((one) => one.name));
  // An item can have steps: what was typed in the others stays.
  const others = (JSON.parse(localStorage.getItem(draftKey))?.values ?? []).filter(([name]) => !present.has(name));
  const values = [...others, ...typed().map((one) => [one.name, one.value, one.checked ?? false])];
  localStorage.setItem(draftKey, JSON.stringify({ time: Date.now(), values }));
}

function restoreDraft() {
  let changed = false;
  for (const [name, value, checked] of JSON.parse(localStorage.getItem(draftKey))?.values ?? []) {
    for (const one of typed().filter((other) => other.name === name)) {
      const box = one.matches("[type=radio], [type=checkbox]");
      if (box ? one.value !== value || one.checked === checked : one.value === value) continue;
      if (box) one.checked = checked;
      else one.value = value;
      changed = true;
    }
  }
  const toast = document.querySelector(".toast");
  if (changed && toast) toast.textContent = `${toast.textContent} What you typed here before was not saved; it is back.`;
}

function dropDrafts() {
  const place = location.pathname.replace(/\/(item|items\/.*)$/, "");
  const saved = new URLSearchParams(location.search).get("saved") ?? /items\/(\d+)\/feedback$/.exec(location.pathname)?.[1];
  for (const key of Object.keys(localStorage).filter((one) => one.startsWith(DRAFT))) {
    const old = Date.now() - JSON.parse(localStorage.getItem(key)).time > DRAFT_DAYS * 24 * 3600 * 1000;
    if (old || (saved && key.startsWith(`${DRAFT}${place}/items/${saved} `))) localStorage.removeItem(key);
  }
}

try {
  dropDrafts();
  if (judged) {
    restoreDraft();
    document.addEventListener("input", (event) => event.target.form === judged && keepDraft());
  }
} catch {
  // A browser may forbid storage; the page works without drafts.
}

// Seconds for which the page was seen; two minutes without a key or a movement begin a break.
const seconds = document.querySelector("input[name=seconds]");
const BREAK = 120_000;
let seen = 0;
let since = document.hidden ? null : performance.now();
function countTime() {
  if (since !== null) seen += Math.min(performance.now() - since, BREAK);
  since = document.hidden ? null : performance.now();
}
for (const name of ["visibilitychange", "pointermove", "pointerdown", "keydown", "scroll"])
  document.addEventListener(name, countTime, { capture: true, passive: true });
document.addEventListener("submit", () => {
  countTime();
  if (seconds) seconds.value = (seen / 1000).toFixed(2);
});

// The browser's Back button leads to the item that was judged on a page, not to the one that is next now.
document.addEventListener("submit", (event) => {
  const own = judged && event.target.id !== "undo" && location.pathname.endsWith("/item");
  // Another URL than that of the form, which the browser would put in the place of this page.
  if (own) history.replaceState(null, "", `${judged.getAttribute("action")}?from=item`);
});

// Fields that are asked only with some values of others.
function ask() {
  for (const field of all("[data-when]")) {
    const wanted = Object.entries(JSON.parse(field.dataset.when));
    const named = (name) => all(`[name="${CSS.escape(name)}"]`);
    // A field that depends on buttons comes before them: the server drops it with another choice.
    if (wanted.some(([name]) => named(name).some((one) => one.matches("button")))) continue;
    const chosen = (name) => named(name).filter((one) => one.checked || one.type === "hidden");
    field.hidden = !wanted.every(([name, values]) => chosen(name).some((one) => values.includes(one.value)));
  }
}
document.addEventListener("change", ask);
ask();
showKeys();
