// What the pages do better with a script; all of them work without.
"use strict";

// <button hidden data-copy="id of what is copied">
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const label = button.dataset.label ?? (button.dataset.label = button.textContent);
  const name = button.dataset.name ?? (button.dataset.name = button.getAttribute("aria-label") ?? "");
  button.textContent = (await copy(source)) ? "Copied" : "Press Ctrl+C";
  button.removeAttribute("aria-label"); // what is read out is what is seen
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => {
    button.textContent = label;
    if (name) button.setAttribute("aria-label", name);
  }, 1600);
});

async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    return true;
  } catch {
    // Without HTTPS there is no clipboard: select the text, so that a key copies it.
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return document.execCommand("copy");
  }
}

// Moments in the reader's own time; what the server wrote stays as the title.
const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function localize(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent;
    time.textContent = written.format(moment);
  }
}

localize(document);

// Other scripts call this for what they add to the page.
window.mailcheck = { localize, formToken: document.querySelector("meta[name=form-token]")?.content };
