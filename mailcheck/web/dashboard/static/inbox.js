// The inbox: live updates of the list, a message beside it, and keyboard shortcuts.
"use strict";

const inbox = document.getElementById("inbox");
const pane = document.getElementById("mail-pane");
const mails = document.getElementById("mails");
const live = document.getElementById("live");
const newer = document.getElementById("newer");
const address = document.getElementById("address");
const selection = document.getElementById("selection");
const tools = document.getElementById("tools");
const toast = document.getElementById("toast");

const REFRESH_AFTER = 250; // milliseconds
const UNDO_FOR = 1000 * Number(mails.dataset.undo); // milliseconds in which a deletion can be undone
const heading = document.querySelector("#mail h1")?.textContent ?? "Inbox";
const titleEnd = document.title.startsWith(heading) ? document.title.slice(heading.length) : " - mailcheck";
const listTitle = `Inbox${titleEnd}`;

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
    headers: { Accept: "application/json" },
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
  showUnread();
  updateTools();
}

// The number of selected messages, or all in the list with those on other pages.
function updateTools() {
  const count = mails.querySelectorAll("li:not([hidden]) input:checked").length;
  const isAll = selection.elements.all.value === "true";
  const total = Number(selectAll.dataset.total);
  const shown = (isAll ? total : count).toLocaleString("en");
  document.getElementById("selected").textContent = count
    ? `${shown} selected: clear` : `Select all ${total.toLocaleString("en")}`;
  selectAll.setAttribute("aria-pressed", String(count > 0));
  document.getElementById("delete-selected").disabled = !count;
  document.querySelector("#mark-read .word").textContent = count ? "Mark read" : "Mark all read";
}

function selectRows(isOn) {
  for (const box of mails.querySelectorAll("input")) box.checked = isOn;
  selection.elements.all.value = String(isOn);
  updateTools();
}

const selectAll = document.getElementById("select-all");
selectAll.setAttribute("role", "button");
selectAll.addEventListener("click", (event) => {
  event.preventDefault();
  selectRows(!mails.querySelector("input:checked"));
});
selectAll.addEventListener("keydown", (event) => {
  if (event.key !== " ") return;
  event.preventDefault();
  selectAll.click();
});
document.getElementById("refresh").addEventListener("click", (event) => {
  event.preventDefault();
  refresh();
});

async function refresh() {
  const before = new Set([...mails.children].map((row) => row.id));
  const answer = await fetch(`${mails.dataset.inbox}${mails.dataset.place}`);
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  reconcile([...page.getElementById("mails").children], before);
  for (const place of [".filters", ".list-foot"]) {
    const there = document.querySelector(place);
    const now = page.querySelector(place);
    if (!there.querySelector("details[open]") && !there.contains(document.activeElement)) there.replaceWith(now);
  }
  selectAll.dataset.total = page.getElementById("select-all").dataset.total;
  if (!mails.querySelector("input:checked")) selection.elements.until.value = page.getElementById("selection").elements.until.value;
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
  if (at >= 0 && !activeElement.isConnected) rows()[Math.min(at, rows().length - 1)]?.querySelector("a").focus();
}

function showEmptiness() {
  const isEmpty = !mails.childElementCount;
  mails.hidden = isEmpty;
  tools.hidden = isEmpty && !deletedAt;
  if (!isEmpty) document.querySelector(".list-head").hidden = false;
  if (!isEmpty) document.getElementById("empty")?.remove();
  else if (!document.getElementById("empty") && !isReading() && !deletedAt) location.reload(); // the page of an empty inbox has instructions
}

// Update tags, counts and deleted rows once for a burst of messages.
let refreshing;
function refreshSoon() {
  refreshing ??= setTimeout(() => { refreshing = undefined; refresh(); }, REFRESH_AFTER);
}

// The title has the number of all unread messages of the list, like the filter "Unread".
function showUnread() {
  const place = document.getElementById("unread");
  const count = place && !place.hidden ? place.textContent.trim() : "";
  if (!isReading()) document.title = count ? `(${count}) ${listTitle}` : listTitle;
}

// Update the counter at once. The server counts again at the next refresh.
function countUnread(by) {
  const place = document.getElementById("unread");
  if (!place?.dataset.count) return;
  const count = Math.max(0, Number(place.dataset.count) + by);
  place.dataset.count = count;
  place.textContent = count.toLocaleString("en");
  place.hidden = !count;
  showUnread();
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
    if (!other) continue; // the server has named the message of another page
    link.hidden = false;
    link.href = other.querySelector("a").href;
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
  const id = page.getElementById("mail")?.dataset.id;
  if (!rowOf(id)) { // it is on another page of the list
    location.assign(href);
    return;
  }
  pane.replaceChildren(...page.body.children);
  showReading(true);
  if (push) history.pushState(null, "", href);
  document.title = `${pane.querySelector("h1").textContent}${titleEnd}`;
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
let deletedAt = document.getElementById("undo").elements.deleted.value; // the last deletion
let forgetting;

mails.addEventListener("click", (event) => {
  const box = event.target.closest("input");
  if (!box) return;
  if (event.shiftKey && lastBox) {
    const boxes = rows().map((row) => row.querySelector("input"));
    const ends = [boxes.indexOf(lastBox), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const one of boxes.slice(ends[0], ends[1] + 1)) one.checked = box.checked;
  }
  lastBox = box;
  selection.elements.all.value = "false"; // the shown selection counts
  updateTools();
});

// Delete messages: the server hides them at once, and removes them when undo is over.
async function remove(ids, isAll = false) {
  const all = rows();
  const gone = isAll ? all : ids.map(rowOf).filter(Boolean);
  const at = all.indexOf(gone.at(-1));
  const next = isAll ? undefined : all[at + 1] ?? all[at - gone.length];
  for (const row of gone) {
    row.hidden = true;
    row.querySelector("input").checked = false;
  }
  const form = new FormData(selection);
  form.delete("id");
  for (const id of isAll ? [] : ids) form.append("id", id);
  form.set("all", String(isAll));
  selection.elements.all.value = "false";
  if (isReading() && (isAll || ids.includes(openedId()))) {
    if (next && !next.hidden) open(next.querySelector("a").href);
    else close();
  } else next?.querySelector("a").focus();
  updateList();
  try {
    const answer = await post(selection.action, form);
    if (!answer.ok) throw new Error();
    const deletion = await answer.json();
    for (const row of gone) row.remove();
    offerUndo(deletion);
    refreshSoon();
  } catch {
    for (const row of gone) row.hidden = false;
    updateList();
  }
}

function offerUndo({ deletedAt: moment, count }) {
  deletedAt = String(moment);
  const text = count === 1 ? "Message deleted." : `${count.toLocaleString("en")} messages deleted.`;
  toast.querySelector("span").textContent = text;
  document.getElementById("undo").elements.deleted.value = deletedAt;
  toast.hidden = document.getElementById("undo-delete").hidden = false;
  clearTimeout(forgetting);
  forgetting = setTimeout(endUndo, UNDO_FOR);
}

function endUndo() {
  clearTimeout(forgetting);
  deletedAt = "";
  toast.hidden = document.getElementById("undo-delete").hidden = true;
  document.getElementById("deleted").textContent = "";
  showEmptiness();
}

async function undoDeletion() {
  if (!deletedAt) return;
  const form = document.getElementById("undo");
  const answer = await post(form.action, new FormData(form));
  endUndo();
  if (answer.ok) refresh();
  else location.reload();
}

toast.querySelector("button").addEventListener("click", undoDeletion);
if (deletedAt) forgetting = setTimeout(endUndo, UNDO_FOR);
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id === "undo") undoDeletion();
  else if (form.id === "delete-mail") remove([openedId()]);
  else if (form === selection && event.submitter?.id === "delete-selected") {
    const ids = [...mails.querySelectorAll("input:checked")].map((box) => box.value);
    if (ids.length) remove(ids, selection.elements.all.value === "true");
  } else return;
  event.preventDefault();
});

// Live updates ----------------------------------------------------------------

let last = mails.dataset.after;
const showState = (state, text) => {
  live.hidden = false;
  live.dataset.state = state;
  live.textContent = text;
};

window.mailcheck.whileVisible(() => {
  const query = new URLSearchParams({ after: last });
  for (const name of ["tag", "to"]) {
    if (mails.dataset[name] !== undefined) query.set(name, mails.dataset[name]);
  }
  const source = new EventSource(`${mails.dataset.live}?${query}`);
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
  return source;
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh(); // remove rows that were deleted elsewhere
});
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

async function checkDeletion() {
  const mail = document.getElementById("mail");
  if (!mail) return;
  const answer = await fetch(`${mails.dataset.inbox}/messages/${mail.dataset.id}`, { method: "HEAD" });
  if (answer.status !== 404 || document.getElementById("gone")) return;
  const note = document.createElement("p");
  note.id = "gone";
  note.className = "warning";
  note.setAttribute("role", "status");
  note.textContent = "This message has been deleted.";
  mail.prepend(note);
}

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
  if (selected.length) remove(selected, selection.elements.all.value === "true");
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
  a: () => selectRows(true),
  "#": deleteChosen,
  Delete: deleteChosen,
  z: undoDeletion,
  "/": () => document.getElementById("q").focus(),
  c: () => {
    const copy = document.querySelector("[data-copy=code-1]");
    const code = focused()?.querySelector(".marks [data-copy]");
    (copy ?? code)?.click();
  },
  o: () => press("best-link"),
  s: () => press("score-mail"),
  "?": () => document.getElementById("keys").showModal(),
};
const GO = { i: "/inbox", d: "/domains", t: "/tests" };
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
