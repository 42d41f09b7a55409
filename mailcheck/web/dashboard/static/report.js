// Results that come when they are ready: domain checks, blocklists, deliverability tests.
"use strict";

// What a script puts into the page gets what the page's own parts have.
function enliven(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  window.mailcheck.localize(root);
  window.mailcheck.prepareMail?.(root);
}

// On paper nothing is folded.
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("main details:not([open], .menu)")];
  for (const one of folded) one.open = true;
});
window.addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});

// The page once more, as the server has it now: the part with this id, ready to be put in.
async function fetchPart(address, id) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const part = page.getElementById(id);
  if (!answer.ok || !part) {
    throw new Error(page.querySelector(".problem-text, #problem")?.textContent ?? "This did not work: load the page again.");
  }
  return { part: document.adoptNode(part), title: page.title };
}

function complain(where, problem) {
  const box = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.textContent = problem instanceof TypeError ? "The service can't be reached: load the page again." : problem.message ?? problem;
  where.replaceChildren(box);
}

// Domain checks: the page is there at once, its result when it is known.
const pending = document.querySelector("[data-fill]");
if (pending) {
  fetchPart(pending.dataset.fill, pending.id).then(({ part }) => {
    pending.replaceWith(part);
    enliven(part);
  }, (problem) => complain(pending, problem));
}

// Blocklists: a row for each list, as it answers.
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
    const told = JSON.parse(event.data);
    const made = document.createElement("template");
    made.innerHTML = told.html;
    row(told.zone).replaceWith(made.content);
    progress.firstElementChild.value += 1;
  });
  source.addEventListener("done", (event) => {
    const told = JSON.parse(event.data);
    rows.append(...told.order.map(row));
    totals.innerHTML = told.html;
    end();
  });
  source.addEventListener("problem", (event) => {
    complain(totals, JSON.parse(event.data).problem);
    end();
  });
  // To come again would be to ask all lists again.
  source.addEventListener("error", () => {
    complain(totals, "The connection broke: load the page again.");
    end();
  });
  window.addEventListener("pagehide", () => source.close());
  window.addEventListener("pageshow", (event) => event.persisted && progress.isConnected && location.reload());
}

// Deliverability tests: from the address to the report.
const HIDDEN_FOR = 60_000; // milliseconds; a browser has six connections for all of its tabs

const NEWS = {
  processing: "Mail received, checking.",
  completed: "The report is ready.",
  expired: "No mail came in time.",
  error: "The mail could not be analysed.",
};

const shown = document.querySelector("#test[data-live]");
if (shown) {
  let source;
  let timer;
  let seen = shown.dataset.state;
  const say = (text) => {
    const line = document.getElementById("live");
    if (!line) return;
    line.hidden = false;
    line.textContent = text;
  };
  let update = Promise.resolve();
  const stop = () => {
    source?.close();
    source = null;
  };
  const listen = () => {
    source = new EventSource(`${shown.dataset.live}?seen=${seen}`);
    source.addEventListener("open", () => say("This page goes on by itself the moment something happens."));
    source.addEventListener("error", () => say(
      source?.readyState === EventSource.CLOSED ? "Not live: load the page again." : "Connecting again.",
    ));
    source.addEventListener("checks", (event) => {
      ended = JSON.parse(event.data).ended;
      markEnded();
    });
    source.addEventListener("problem", (event) => say(JSON.parse(event.data).problem));
    source.addEventListener("moved", (event) => {
      const { state, final } = JSON.parse(event.data);
      seen = state;
      if (final) {
        stop();
        document.removeEventListener("visibilitychange", turn);
      }
      update = update.then(() => showNews(state)).catch((problem) => say(problem.message));
    });
  };
  const turn = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(stop, HIDDEN_FOR);
    else if (!source) listen();
  };
  listen();
  document.addEventListener("visibilitychange", turn);
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", (event) => event.persisted && turn());
}

// Which checks have ended, on the page that shows them run.
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
  enliven(part);
  markEnded();
}

// Pre-flight: as many records as somebody wants to try.
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
