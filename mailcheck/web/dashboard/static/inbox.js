// The inbox: addresses of tags, sample mails, and mail as it comes in.
"use strict";

const address = document.getElementById("address");
const tagField = document.getElementById("for");
if (tagField) {
  for (const button of document.querySelectorAll("[data-scriptless]")) button.hidden = true;
  tagField.addEventListener("input", () => {
    const tag = tagField.value.trim();
    const isTag = tag === "" || /^[^\s()<>[\]:;@\\,."]+(\.[^\s()<>[\]:;@\\,."]+)*$/.test(tag);
    tagField.setCustomValidity(isTag ? "" : "Letters, digits and - _ . are fine in a tag");
    tagField.setAttribute("aria-invalid", String(!isTag));
    if (!isTag) return;
    const { mailbox, domain } = address.dataset;
    address.textContent = `${mailbox}${tag && "+"}${tag}@${domain}`;
    document.querySelector("#sample [name=tag]").value = tag;
  });
}

const sample = document.getElementById("sample");
if (sample) {
  sample.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = sample.querySelector("button");
    button.disabled = true;
    try {
      const answer = await fetch(sample.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(sample)),
        redirect: "manual",
      });
      if (answer.type !== "opaqueredirect") throw new Error();
      if (document.getElementById("live").dataset.state !== "open") location.assign(location.href);
    } catch {
      sample.submit();
    }
    button.disabled = false;
  });
}

const mails = document.getElementById("mails");
const live = document.getElementById("live");
const newer = document.getElementById("newer");
const HIDDEN_FOR = 60_000; // milliseconds; a browser has six connections for all of its tabs
if (mails && window.EventSource) {
  let source;
  let last = mails.dataset.after;
  let timer;
  const say = (state, text) => {
    live.hidden = false;
    live.dataset.state = state;
    live.textContent = text;
  };
  const listen = () => {
    const asked = new URLSearchParams({ after: last });
    if (mails.dataset.tag !== undefined) asked.set("tag", mails.dataset.tag);
    source = new EventSource(`${mails.dataset.live}?${asked}`);
    source.addEventListener("open", () => say("open", "Live"));
    source.addEventListener("error", () => say(
      "closed", source.readyState === EventSource.CLOSED ? "Not live: reload the page" : "Connecting again",
    ));
    source.addEventListener("problem", (event) => say("closed", JSON.parse(event.data).problem));
    source.addEventListener("mail", (event) => {
      last = event.lastEventId;
      if (mails.dataset.isLive === "true") addMail(JSON.parse(event.data));
      else newer.hidden = false;
    });
  };
  const stop = () => {
    source.close();
    source = null;
  };
  listen();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(stop, HIDDEN_FOR);
    else if (!source) listen();
  });
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

function addMail(mail) {
  const id = `m-${mail.id}`;
  if (document.getElementById(id)) return;
  const row = document.getElementById("row").content.cloneNode(true).firstElementChild;
  row.id = id;
  row.querySelector("a").href = mail.path;
  row.querySelector(".from").textContent = mail.from.name || mail.from.address || "(no sender)";
  row.querySelector(".subject").textContent = mail.subject || "(no subject)";
  const time = row.querySelector("time");
  time.dateTime = mail.receivedAt;
  time.textContent = `${mail.receivedAt.slice(0, 10)} ${mail.receivedAt.slice(11, 16)} UTC`;
  window.mailcheck.localize(row);
  if (mail.codes.length) mark(row, "badge good", mail.codes[0]);
  if (mail.tag) mark(row, "badge", `+${mail.tag}`);
  mails.prepend(row);
  mails.hidden = false;
  document.getElementById("empty")?.remove();
  while (mails.children.length > Number(mails.dataset.limit)) mails.lastElementChild.remove();
  const total = document.getElementById("total");
  if (total) total.textContent = (Number(total.textContent.replaceAll(",", "")) + 1).toLocaleString("en");
}

function mark(row, kind, text) {
  const made = document.createElement("span");
  made.className = kind;
  made.textContent = text;
  row.querySelector(".marks").append(made);
}
