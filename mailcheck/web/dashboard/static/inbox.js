// The inbox: live updates of the list, a message beside it, and keyboard shortcuts.
"use strict";

const inbox = document.getElementById("inbox");
const pane = document.getElementById("mail-pane");
const mails = document.getElementById("mails");
const live = document.getElementById("live");
const newer = document.getElementById("newer");
const address = document.getElementById("address");
const selection = document.getElementById("selection");
const bar = document.getElementById("selection-bar");
const toast = document.getElementById("toast");

const HIDDEN_FOR = 60_000; // milliseconds; all tabs of a browser share six connections to a host
const REFRESH_AFTER = 250; // milliseconds
const UNDO_FOR = 10_000; // milliseconds in which a deletion can be undone
const listTitle = document.title.includes("Inbox - ") ? document.title : "Inbox - mailcheck";

const rows = () => [...mails.querySelectorAll("li:not([hidden])")];
const rowOf = (id) => document.getElementById(`m-${id}`);
const isReading = () => inbox.classList.contains("reading");
const openedId = () => document.getElementById("mail")?.dataset.id;

// Tagged addresses and test mails ---------------------------------------------

const tagField = document.getElementById("for");
for (const button of document.querySelectorAll("[data-scriptless]")) button.hidden = true;
tagField.addEventListener("input", () => {
  const tag = tagField.value.trim();
  const isTag = tag === "" || /^[^\s()<>[\]:;@\\,."]+(\.[^\s()<>[\]:;@\\,."]+)*$/.test(tag);
  tagField.setCustomValidity(isTag ? "" : "Use letters, digits and - _ . in a tag");
  tagField.setAttribute("aria-invalid", String(!isTag));
  if (!isTag) return;
  const { mailbox, domain } = address.dataset;
  address.textContent = `${mailbox}${tag && "+"}${tag}@${domain}`;
  document.querySelector("#sample [name=tag]").value = tag;
});

const sample = document.getElementById("sample");
sample.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = sample.querySelector("button");
  button.disabled = true;
  try {
    const answer = await post(sample.action, new FormData(sample));
    if (answer.type !== "opaqueredirect") throw new Error();
    if (live.dataset.state !== "open") location.assign(location.href);
  } catch {
    sample.submit();
  }
  button.disabled = false;
});

function post(url, form) {
  // With keepalive the request completes even if the user leaves the page.
  return fetch(url, {
    method: "POST", body: new URLSearchParams(form), redirect: "manual", keepalive: true,
  });
}

// The list --------------------------------------------------------------------

function updateList() {
  window.mailcheck.enhance(mails);
  let before = new Date().toDateString();
  for (const row of mails.children) {
    const moment = new Date(row.querySelector("time").dateTime);
    const day = moment.toDateString();
    if (day === before) delete row.dataset.day;
    else row.dataset.day = moment.toLocaleDateString(undefined, { dateStyle: "full" });
    before = day;
  }
  const unread = mails.querySelectorAll("li.unread:not([hidden])").length;
  if (!isReading()) document.title = unread ? `(${unread}) ${listTitle}` : listTitle;
  bar.classList.toggle("shown", Boolean(mails.querySelector("input:checked")));
}

async function refresh() {
  const before = new Set([...mails.children].map((row) => row.id));
  const answer = await fetch(`${mails.dataset.inbox}${mails.dataset.place}`);
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  reconcile([...page.getElementById("mails").children], before);
  for (const place of [".tags", ".list-foot", "#unread-bar"]) {
    const there = document.querySelector(place);
    const now = page.querySelector(place);
    if (!there.querySelector("details[open]")) there.replaceWith(now);
  }
  showEmptiness();
  markCurrent(openedId());
  updateList();
}

// Keep existing rows, so that they keep focus and selection.
function reconcile(fresh, before) {
  const ids = new Set(fresh.map((row) => row.id));
  const { activeElement } = document;
  const at = rows().indexOf(activeElement.closest("#mails li"));
  for (const row of [...mails.children]) {
    // Keep rows that were added while the list was being fetched.
    if (!ids.has(row.id) && before.has(row.id)) row.remove();
  }
  let last = null;
  for (const row of fresh.reverse()) {
    let now = document.getElementById(row.id);
    if (!now) {
      if (before.has(row.id)) continue; // deleted on this page in the meantime
      now = row;
    } else {
      now.classList.toggle("unread", row.classList.contains("unread"));
    }
    if (now.nextElementSibling !== last || now.parentElement !== mails) mails.insertBefore(now, last);
    last = now;
  }
  for (const id of held?.ids ?? []) rowOf(id)?.setAttribute("hidden", "");
  if (at >= 0 && !activeElement.isConnected) rows()[Math.min(at, rows().length - 1)]?.querySelector("a").focus();
}

function showEmptiness() {
  const isEmpty = !mails.childElementCount;
  mails.hidden = bar.hidden = isEmpty;
  if (!isEmpty) document.querySelector(".list-head").hidden = false;
  if (!isEmpty) document.getElementById("empty")?.remove();
  else if (!document.getElementById("empty") && !isReading()) location.reload(); // the page of an empty inbox has instructions
}

// Update tags, counts and deleted rows once for a burst of messages.
let refreshing;
function refreshSoon() {
  refreshing ??= setTimeout(() => { refreshing = undefined; refresh(); }, REFRESH_AFTER);
}

// Update the counter at once. The server counts again at the next refresh.
function countUnread(by) {
  const place = document.getElementById("unread");
  if (!place.dataset.count) return;
  const count = Math.max(0, Number(place.dataset.count) + by);
  place.dataset.count = count;
  place.textContent = `${count.toLocaleString("en")} unread`;
  document.getElementById("unread-bar").hidden = !count;
}

function markCurrent(id, isOpened = false) {
  for (const row of mails.querySelectorAll(".current")) {
    row.classList.remove("current");
    row.querySelector("a").removeAttribute("aria-current");
  }
  const row = id && rowOf(id);
  if (!row) return;
  row.classList.add("current");
  row.querySelector("a").setAttribute("aria-current", "true");
  if (row.classList.contains("unread")) {
    row.classList.remove("unread");
    row.querySelector("a .unseen").remove();
    countUnread(-1);
  }
  if (isOpened) row.scrollIntoView({ block: "nearest" });
  const all = rows();
  const index = all.indexOf(row);
  for (const [link, other] of [
    [document.getElementById("newer-mail"), all[index - 1]],
    [document.getElementById("older-mail"), all[index + 1]],
  ]) {
    link.hidden = !other;
    if (other) link.href = other.querySelector("a").href;
  }
}

// A message beside the list ---------------------------------------------------

let asked;

function showReading(isOn) {
  inbox.classList.toggle("reading", isOn);
  document.getElementById("inbox-title").hidden = isOn; // the subject is the heading instead
}

async function open(href, push = true) {
  asked?.abort();
  asked = new AbortController();
  const url = new URL(href, location.href);
  url.searchParams.set("pane", "mail");
  let text;
  try {
    const answer = await fetch(url, { signal: asked.signal });
    if (!answer.ok || answer.redirected) throw new Error();
    text = await answer.text();
  } catch (problem) {
    if (problem.name !== "AbortError") location.assign(href);
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  pane.replaceChildren(...page.body.children);
  showReading(true);
  if (push) history.pushState(null, "", href);
  document.title = `${pane.querySelector("h1").textContent} - mailcheck`;
  window.mailcheck.enhance(pane);
  window.mailcheck.prepareMail(pane);
  markCurrent(openedId(), true);
  loadAuthentication(asked.signal);
  window.scrollTo({ top: 0, behavior: "instant" });
}

async function loadAuthentication(signal) {
  const place = document.getElementById("authentication");
  try {
    const answer = await fetch(place.dataset.from, { signal });
    if (!answer.ok) throw new Error();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const details = page.querySelector("details");
    details.open = place.open;
    place.replaceWith(details);
  } catch {
    place.querySelector(".hint").textContent = "could not be loaded";
  }
}

function close(push = true) {
  asked?.abort();
  const row = rowOf(openedId());
  pane.replaceChildren();
  showReading(false);
  if (push) history.pushState(null, "", `${mails.dataset.inbox}${mails.dataset.place}`);
  markCurrent();
  updateList();
  row?.querySelector("a").focus();
}

const isMail = (url) => /\/inbox\/messages\/[^/]+$/.test(url.pathname);

inbox.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.target) return;
  const url = new URL(link.href, location.href);
  if (isMail(url)) open(link.href);
  else if (link.classList.contains("back")) close();
  else return;
  event.preventDefault();
});

window.addEventListener("popstate", () => {
  if (isMail(location)) open(location.href, false);
  else close(false);
});

// Selecting and deleting ------------------------------------------------------

let lastBox;
let held; // {ids, timer}: hidden on the page, not deleted on the server yet

mails.addEventListener("click", (event) => {
  const box = event.target.closest("input");
  if (!box) return;
  if (event.shiftKey && lastBox) {
    const boxes = rows().map((row) => row.querySelector("input"));
    const ends = [boxes.indexOf(lastBox), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const one of boxes.slice(ends[0], ends[1] + 1)) one.checked = box.checked;
  }
  lastBox = box;
  updateList();
});

function remove(ids) {
  commitDeletion();
  const all = rows();
  const at = all.findIndex((row) => row.id === `m-${ids.at(-1)}`);
  const next = all[at + 1] ?? all[at - ids.length];
  for (const id of ids) {
    const row = rowOf(id);
    if (!row) continue;
    row.hidden = true;
    row.querySelector("input").checked = false;
  }
  held = { ids, timer: setTimeout(commitDeletion, UNDO_FOR) };
  toast.querySelector("span").textContent = ids.length === 1 ? "Message deleted." : `${ids.length} messages deleted.`;
  toast.hidden = false;
  if (isReading() && ids.includes(openedId())) {
    if (next && !next.hidden) open(next.querySelector("a").href);
    else close();
  } else next?.querySelector("a").focus();
  updateList();
}

async function commitDeletion() {
  if (!held) return;
  const { ids, timer } = held;
  held = undefined;
  clearTimeout(timer);
  toast.hidden = true;
  const form = new URLSearchParams(ids.map((id) => ["id", id]));
  form.set("form-token", window.mailcheck.formToken);
  try {
    const answer = await post(selection.action, form);
    if (answer.type !== "opaqueredirect") throw new Error();
    for (const id of ids) rowOf(id)?.remove();
    refreshSoon();
  } catch {
    for (const id of ids) rowOf(id)?.removeAttribute("hidden");
    updateList();
  }
}

function undoDeletion() {
  if (!held) return;
  clearTimeout(held.timer);
  for (const id of held.ids) rowOf(id)?.removeAttribute("hidden");
  held = undefined;
  toast.hidden = true;
  updateList();
}

toast.querySelector("button").addEventListener("click", undoDeletion);
window.addEventListener("pagehide", commitDeletion);
selection.addEventListener("submit", (event) => {
  event.preventDefault();
  const ids = [...mails.querySelectorAll("input:checked")].map((box) => box.value);
  if (ids.length) remove(ids);
});
pane.addEventListener("submit", (event) => {
  if (event.target.id !== "delete-mail") return;
  event.preventDefault();
  remove([openedId()]);
});

// Live updates ----------------------------------------------------------------

let source;
let last = mails.dataset.after;
let timer;
const showState = (state, text) => {
  live.hidden = false;
  live.dataset.state = state;
  live.textContent = text;
};

function listen() {
  const query = new URLSearchParams({ after: last });
  for (const name of ["tag", "to"]) {
    if (mails.dataset[name] !== undefined) query.set(name, mails.dataset[name]);
  }
  source = new EventSource(`${mails.dataset.live}?${query}`);
  source.addEventListener("open", () => showState("open", "Live"));
  source.addEventListener("error", () => showState(
    "closed", source.readyState === EventSource.CLOSED ? "Disconnected. Reload the page." : "Reconnecting",
  ));
  source.addEventListener("problem", (event) => showState("closed", JSON.parse(event.data).problem));
  source.addEventListener("mail", (event) => {
    last = event.lastEventId;
    const mail = JSON.parse(event.data);
    if (mails.dataset.isLive === "true") addMail(mail);
    else if (!new URLSearchParams(mails.dataset.place).has("page")) refreshSoon(); // the server must repeat the search
    else newer.hidden = false;
    notify(mail);
  });
  source.addEventListener("removed", () => {
    refreshSoon();
    checkDeletion();
  });
}

async function checkDeletion() {
  const mail = document.getElementById("mail");
  if (!mail || held?.ids.includes(mail.dataset.id)) return;
  const answer = await fetch(`${mails.dataset.inbox}/messages/${mail.dataset.id}`, { method: "HEAD" });
  if (answer.status !== 404 || document.getElementById("gone")) return;
  const note = document.createElement("p");
  note.id = "gone";
  note.className = "warning";
  note.setAttribute("role", "status");
  note.textContent = "This message has been deleted.";
  mail.prepend(note);
}

listen();
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (document.hidden) {
    timer = setTimeout(() => { source.close(); source = null; }, HIDDEN_FOR);
    return;
  }
  if (!source) listen();
  refresh(); // remove rows that were deleted elsewhere
});
window.addEventListener("pagehide", () => source?.close());
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

function addMail(mail) {
  refreshSoon();
  if (rowOf(mail.id)) return;
  const made = document.createElement("template");
  made.innerHTML = mail.row;
  const row = made.content.firstElementChild;
  row.classList.add("fresh");
  row.querySelector("a").search = mails.dataset.place;
  mails.prepend(row);
  while (mails.children.length > Number(mails.dataset.limit)) mails.lastElementChild.remove();
  showEmptiness();
  markCurrent(openedId());
  updateList();
}

const bell = document.getElementById("notify");
if (window.Notification && Notification.permission === "default") {
  bell.hidden = false;
  bell.addEventListener("click", async () => {
    bell.hidden = (await Notification.requestPermission()) !== "default";
  });
}

function notify(mail) {
  if (!document.hidden || window.Notification?.permission !== "granted") return;
  const note = new Notification(mail.subject, { body: mail.about, tag: mail.id });
  note.addEventListener("click", () => {
    window.focus();
    note.close();
    open(`${mails.dataset.inbox}/messages/${mail.id}${mails.dataset.place}`);
  });
}

// Keyboard shortcuts ----------------------------------------------------------

function step(by) {
  const all = rows();
  const at = isReading() ? all.indexOf(rowOf(openedId())) : all.indexOf(document.activeElement.closest("li"));
  const row = at < 0 ? all[0] : all[at + by];
  if (!row) return;
  if (isReading()) open(row.querySelector("a").href);
  else row.querySelector("a").focus();
}

const focused = () => document.activeElement.closest("#mails li");
const press = (id) => document.getElementById(id)?.click();
const go = (path) => location.assign(`${mails.dataset.inbox.replace(/\/inbox$/, "")}${path}`);

function deleteChosen() {
  const selected = [...mails.querySelectorAll("input:checked")].map((box) => box.value);
  const id = openedId() ?? focused()?.id.slice(2);
  if (selected.length) remove(selected);
  else if (id) remove([id]);
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  u: () => isReading() && close(),
  Escape: () => isReading() && close(),
  " ": (event) => KEYS.x(event),
  x: (event) => focused()?.querySelector("input").dispatchEvent(
    new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: event.shiftKey }),
  ),
  "#": deleteChosen,
  Delete: deleteChosen,
  z: undoDeletion,
  "/": () => document.getElementById("q").focus(),
  c: () => {
    const copy = document.querySelector("[data-copy=code-1]");
    const code = focused()?.querySelector(".marks .good");
    if (copy) copy.click();
    else if (code) navigator.clipboard?.writeText(code.lastChild.textContent);
  },
  o: () => press("best-link"),
  s: () => press("score-mail"),
  "?": () => document.getElementById("keys").showModal(),
};
const GO = { i: "/inbox", d: "/domain", t: "/tests" };
let isGoing = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const { target } = event;
  if (target.matches("input:not([type=checkbox]), textarea, select")) return;
  const wasGoing = isGoing;
  isGoing = event.key === "g";
  const act = wasGoing ? GO[event.key] && (() => go(GO[event.key])) : KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
  if (!act || (event.key.startsWith("Arrow") && isReading())) return; // arrow keys scroll the message
  event.preventDefault();
  act(event);
});

for (const [title, act] of [
  ["Search messages", KEYS["/"]], ["Show keyboard shortcuts", KEYS["?"]], ["Copy the code", KEYS.c],
  ["Open the link", KEYS.o], ["Score this message", KEYS.s], ["Delete", deleteChosen],
  ["Send a test mail", () => sample.requestSubmit()],
]) window.mailcheck.command(title, act);

updateList();
markCurrent(openedId(), true);
