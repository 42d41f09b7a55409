// Enhancements of all pages. The pages work without scripts too.
"use strict";

// <button hidden data-copy="id of the element to copy">
function showButtons(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const state = button.querySelector("[data-copy-state]") ?? button;
  const before = button.dataset.before ?? (button.dataset.before = state.innerHTML);
  const name = button.dataset.name ?? (button.dataset.name = button.getAttribute("aria-label") ?? "");
  state.textContent = (await copy(source)) ? "Copied" : "Press Ctrl+C";
  button.removeAttribute("aria-label"); // let screen readers announce the new text
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => {
    state.innerHTML = before;
    if (name) button.setAttribute("aria-label", name);
  }, 1600);
});

async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    return true;
  } catch {
    // Without HTTPS there is no clipboard API: select the text, so that Ctrl+C copies it.
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return document.execCommand("copy");
  }
}

// On a phone the menu is one line, which may be longer than the screen.
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Show times in the time zone of the reader. The title keeps the time in UTC. Days stay as they are.
const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const hour = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

function localize(root) {
  for (const time of root.querySelectorAll("time[datetime*=T]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = `${exact.format(moment)}, ${time.textContent}`;
    time.textContent = time.closest(".when") ? ago(moment) : written.format(moment);
  }
}

function ago(moment) {
  const seconds = Math.max(0, (Date.now() - moment) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const isToday = moment.toDateString() === new Date().toDateString();
  return (isToday ? hour : day).format(moment);
}

setInterval(() => {
  for (const time of document.querySelectorAll(".when time[title]")) {
    time.textContent = ago(new Date(time.dateTime));
  }
}, 10_000);

function enhance(root) {
  showButtons(root);
  localize(root);
}

// <section id="..." data-live-part> follows the account: after each change the page is loaded
// again, and the parts that differ are replaced. The script keeps what the server has sent.
const sent = new WeakMap();

function readParts(root) {
  return new Map([...root.querySelectorAll("[data-live-part]")].map((part) => {
    const copy = part.cloneNode(true);
    for (const token of copy.querySelectorAll("[name=form-token]")) token.remove(); // always new
    return [part, copy.outerHTML];
  }));
}

for (const [part, html] of readParts(document)) sent.set(part, html);

enhance(document);

// On a narrow screen the tabs scroll: show the current one.
for (const entry of document.querySelectorAll(".tabs [aria-current]")) {
  const menu = entry.closest("nav");
  menu.scrollLeft += entry.getBoundingClientRect().right - menu.getBoundingClientRect().right + 24;
}

async function updateParts() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const [made, html] of readParts(page)) {
    const part = document.getElementById(made.id);
    if (!part || sent.get(part) === html || isInUse(part)) continue;
    for (const box of part.querySelectorAll("details[id]")) {
      const same = made.querySelector(`#${CSS.escape(box.id)}`);
      if (same) same.open = box.open;
    }
    const focused = part.contains(document.activeElement) ? sameElement(document.activeElement) : null;
    sent.set(made, html);
    part.replaceWith(document.adoptNode(made));
    enhance(made);
    if (focused) made.querySelector(focused)?.focus();
    made.dispatchEvent(new Event("mailcheck:part", { bubbles: true }));
  }
}

// A part in which a check runs or a text is typed stays until the next change.
function isInUse(part) {
  return part.querySelector("[aria-busy=true], input:focus, textarea:focus") !== null;
}

function sameElement(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const href = element.getAttribute("href");
  return href === null ? null : `[href="${CSS.escape(href)}"]`;
}

// Keep a connection open while the page is visible. `open` returns an EventSource. All tabs of a
// browser share six connections to a host, so a hidden page closes its own after a minute.
const HIDDEN_FOR = 60_000;

function whileVisible(open) {
  let source = null;
  let timer;
  const close = () => {
    source?.close();
    source = null;
  };
  const turn = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, HIDDEN_FOR);
    else source ??= open();
  };
  const shown = (event) => { if (event.persisted) turn(); };
  turn();
  document.addEventListener("visibilitychange", turn);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", shown);
  return () => {
    clearTimeout(timer);
    close();
    document.removeEventListener("visibilitychange", turn);
    window.removeEventListener("pageshow", shown);
  };
}

if (document.querySelector("[data-live-part]") && document.body.dataset.liveParts) {
  let update = Promise.resolve();
  const updateSoon = () => { update = update.then(updateParts).catch(() => {}); };
  whileVisible(() => {
    const source = new EventSource(document.body.dataset.liveParts);
    source.addEventListener("open", updateSoon); // changes before it were not announced
    source.addEventListener("changed", updateSoon);
    return source;
  });
}

// <details data-part="address" data-part-id="id"> loads the element with this id from that page
// when it is opened. <form data-part-id="id"> replaces the element with that of the response.
async function loadPart(address, id, options = {}) {
  const answer = await fetch(address, { ...options, headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const part = page.getElementById(id);
  if (!part) throw new Error(page.querySelector(".problem-text, #problem")?.textContent ?? "The request failed. Reload the page.");
  return document.adoptNode(part);
}

function showProblem(where, problem) {
  where.querySelector(":scope > [role=alert]")?.remove();
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.textContent = problem instanceof TypeError ? "The server cannot be reached. Reload the page." : problem.message;
  where.append(box);
}

document.addEventListener("toggle", async ({ target: box }) => {
  if (!box.open || !box.dataset?.part) return;
  const address = box.dataset.part;
  delete box.dataset.part;
  box.setAttribute("aria-busy", "true");
  try {
    const part = await loadPart(address, box.dataset.partId);
    box.replaceChildren(box.querySelector("summary"), part);
    enhance(part);
  } catch (problem) {
    box.dataset.part = address;
    showProblem(box, problem);
  }
  box.removeAttribute("aria-busy");
}, true);

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.partId || event.defaultPrevented) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const old = document.getElementById(form.dataset.partId);
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  old.setAttribute("aria-busy", "true");
  try {
    const part = await loadPart(form.action, form.dataset.partId, { method: "POST", body });
    old.replaceWith(part);
    enhance(part);
    part.querySelector("[role=status]")?.focus();
  } catch (problem) {
    old.removeAttribute("aria-busy");
    for (const button of form.querySelectorAll("button")) button.disabled = false;
    showProblem(form, problem);
  }
});

// Command palette (Ctrl+K): all pages, the projects, the commands added by other scripts, and the
// domains and tests of the project, which are loaded when it opens.
const pageOf = (title, href) => ({ title, run: () => location.assign(href) });
const commands = [...document.querySelectorAll(".top nav a, .projects a, .who > a, footer a")].map(
  (link) => pageOf(link.textContent.trim(), link.href),
);

async function loadPlaces() {
  const from = document.body.dataset.places;
  const answer = from && await fetch(from, { headers: { Accept: "application/json" } });
  return answer?.ok ? (await answer.json()).map(({ title, href }) => pageOf(title, href)) : [];
}

function palette() {
  const dialog = document.createElement("dialog");
  dialog.className = "palette";
  dialog.setAttribute("aria-label", "Command palette");
  const field = document.createElement("input");
  field.setAttribute("aria-label", "Search pages and commands");
  field.placeholder = "Search pages and commands …";
  const list = document.createElement("ul");
  dialog.append(field, list);
  const known = [...commands];
  const nothing = document.createElement("p");
  nothing.setAttribute("role", "status");
  dialog.append(nothing);
  const fill = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    const found = known.filter(
      ({ title }) => words.every((word) => title.toLowerCase().includes(word)),
    );
    nothing.textContent = found.length ? "" : "Nothing found";
    list.replaceChildren(...found.map(({ title, run }) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "quiet";
      button.textContent = title;
      button.addEventListener("click", () => { dialog.close(); run(); });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  };
  field.addEventListener("input", fill);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("button")?.click();
    if (event.key === "ArrowDown") list.querySelector("button")?.focus();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  fill();
  dialog.showModal();
  loadPlaces().then((places) => {
    known.push(...places);
    if (!dialog.contains(document.activeElement) || document.activeElement === field) fill();
  }).catch(() => {});
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || !commands.length) return;
  event.preventDefault();
  if (!document.querySelector("dialog[open]")) palette();
});

// A key clicks the element that names it: <button aria-keyshortcuts="c">.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || event.target.matches("input, textarea, select")) return;
  const element = document.querySelector(`[aria-keyshortcuts="${CSS.escape(event.key)}"]`);
  if (!element) return;
  event.preventDefault();
  element.focus();
  element.click();
});

// Functions for the other scripts.
window.mailcheck = {
  ago,
  command: (title, run) => commands.push({ title, run }),
  enhance,
  formToken: document.querySelector("meta[name=form-token]")?.content,
  localize,
  whileVisible,
};
