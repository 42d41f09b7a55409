// Results that are loaded when they are ready: domain checks, blocklists, deliverability tests.
"use strict";

// Enhance an element that a script has added to the page.
function enhancePart(root) {
  window.mailcheck.enhance(root);
  window.mailcheck.prepareMail?.(root);
}

// Unfold everything for printing. Of a report, only what to fix is unfolded.
let folded = [];
window.addEventListener("beforeprint", () => {
  const isShort = document.getElementById("verdict-title") && !document.querySelector(".all-details");
  folded = [...document.querySelectorAll(`main details${isShort ? ".issue" : ""}:not([open], .menu)`)];
  for (const one of folded) one.open = true;
});
window.addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});

// Fetch a page and return the element with this id.
async function fetchPart(address, id) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const part = page.getElementById(id);
  if (!answer.ok || !part) {
    throw new Error(page.querySelector(".problem-text, #problem")?.textContent ?? "The request failed. Reload the page.");
  }
  return { part: document.adoptNode(part), title: page.title };
}

function showProblemIn(where, problem) {
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.textContent = problem instanceof TypeError ? "The server cannot be reached. Reload the page." : problem.message ?? problem;
  where.replaceChildren(box);
}

// Domain checks: replace the mark of each factor when it is determined, and everything at the end.
for (const pending of document.querySelectorAll("[data-check-live]")) {
  const source = new EventSource(pending.dataset.checkLive);
  const end = (text) => {
    source.close();
    pending.removeAttribute("aria-busy");
    pending.querySelector(".busy")?.remove();
    if (text) showProblemIn(pending.querySelector("[data-check-problem]"), text);
  };
  source.addEventListener("factor", (event) => {
    const { name, html } = JSON.parse(event.data);
    const made = document.createElement("template");
    made.innerHTML = html;
    pending.querySelector(`[data-factor="${CSS.escape(name)}"]`)?.replaceWith(made.content);
  });
  const replace = (html) => {
    end();
    const made = document.createElement("template");
    made.innerHTML = html;
    const part = made.content.firstElementChild;
    pending.replaceWith(part);
    enhancePart(part);
  };
  source.addEventListener("done", (event) => replace(JSON.parse(event.data).html));
  source.addEventListener("problem", (event) => {
    const { problem, html } = JSON.parse(event.data);
    if (html) replace(html);
    else end(problem);
  });
  // Do not reconnect: that would repeat the check.
  source.addEventListener("error", () => end("The connection was lost. Reload the page."));
  window.addEventListener("pagehide", () => source.close());
  window.addEventListener("pageshow", (event) => event.persisted && pending.isConnected && location.reload());
}

// Blocklists: update the row of each list when it answers.
const lists = document.getElementById("lists");
if (lists) {
  const rows = document.getElementById("rows");
  const totals = document.getElementById("totals");
  const progress = document.getElementById("progress");
  const row = (zone) => document.getElementById(`list-${zone}`);
  const source = new EventSource(lists.dataset.live);
  const end = () => {
    source.close();
    progress.remove();
  };
  source.addEventListener("row", (event) => {
    const result = JSON.parse(event.data);
    const made = document.createElement("template");
    made.innerHTML = result.html;
    row(result.zone).replaceWith(made.content);
    progress.firstElementChild.value += 1;
  });
  source.addEventListener("done", (event) => {
    const result = JSON.parse(event.data);
    rows.append(...result.order.map(row));
    totals.innerHTML = result.html;
    end();
  });
  source.addEventListener("problem", (event) => {
    showProblemIn(totals, JSON.parse(event.data).problem);
    end();
  });
  // Do not reconnect: that would repeat the check.
  source.addEventListener("error", () => {
    showProblemIn(totals, "The connection was lost. Reload the page.");
    end();
  });
  window.addEventListener("pagehide", () => source.close());
  window.addEventListener("pageshow", (event) => event.persisted && progress.isConnected && location.reload());
}

// Deliverability tests: from the address to the report.
const NEWS = {
  processing: "Mail received. Checking.",
  completed: "The report is ready.",
  expired: "No mail arrived in time.",
  error: "The mail could not be analysed.",
};

const shown = document.querySelector("#test[data-live]");
if (shown) {
  let seen = shown.dataset.state;
  let update = Promise.resolve();
  const showStatus = (text) => {
    const line = document.getElementById("live");
    if (!line) return;
    line.hidden = false;
    line.textContent = text;
  };
  const stop = window.mailcheck.whileVisible(() => {
    const source = new EventSource(`${shown.dataset.live}?seen=${seen}`);
    source.addEventListener("open", () => showStatus("This page updates automatically."));
    source.addEventListener("error", () => showStatus(
      source.readyState === EventSource.CLOSED ? "Disconnected. Reload the page." : "Reconnecting.",
    ));
    source.addEventListener("checks", (event) => {
      ended = JSON.parse(event.data).ended;
      markEnded();
    });
    source.addEventListener("problem", (event) => showStatus(JSON.parse(event.data).problem));
    source.addEventListener("moved", (event) => {
      const { state, final } = JSON.parse(event.data);
      seen = state;
      if (final) stop();
      update = update.then(() => showNews(state)).catch((problem) => showStatus(problem.message));
    });
    return source;
  });
}

// Mark the finished checks on the page of a running test.
let ended = [];
function markEnded() {
  for (const row of document.querySelectorAll("[data-check]")) {
    const hasEnded = ended.includes(row.dataset.check);
    row.classList.toggle("ended", hasEnded);
    row.firstElementChild.textContent = hasEnded ? "done" : "running";
    row.firstElementChild.classList.toggle("good", hasEnded);
  }
}

async function showNews(state) {
  const { part, title } = await fetchPart(location.pathname, "test");
  document.getElementById("test").replaceWith(part);
  document.title = title;
  document.getElementById("news").textContent = NEWS[state] ?? "";
  enhancePart(part);
  markEnded();
}

// Preflight: add rows for more records.
const more = document.getElementById("more-records");
if (more) {
  more.hidden = false;
  more.addEventListener("click", () => {
    const all = document.getElementById("records");
    const made = all.lastElementChild.cloneNode(true);
    const number = all.children.length + 1;
    made.querySelector("legend").textContent = `Record ${number}`;
    for (const field of made.querySelectorAll("input, select")) {
      field.id = `${field.name}-${number}`;
      field.previousElementSibling.htmlFor = field.id;
      if (field.tagName === "INPUT") field.value = "";
      else field.selectedIndex = 0;
    }
    all.append(made);
    made.querySelector("input").focus();
  });
}
