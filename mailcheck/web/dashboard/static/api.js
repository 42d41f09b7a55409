// Show the response of a call for the signed-in account below its form.
"use strict";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.answer) return;
  event.preventDefault();
  const place = document.getElementById(form.dataset.answer);
  const button = form.querySelector("button");
  const text = document.createElement("pre");
  text.id = `${place.id}-text`;
  text.tabIndex = 0;
  button.disabled = true;
  try {
    const answer = await fetch(form.action, {
      method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/json" },
    });
    const found = await answer.json();
    text.textContent = answer.ok ? `${found.called}\n${found.status}\n\n${found.answer}` : found.error;
  } catch {
    text.textContent = "The server cannot be reached. Reload the page.";
  }
  button.disabled = false;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "copy small";
  copy.dataset.copy = text.id;
  copy.textContent = "Copy";
  const box = document.createElement("div");
  box.className = "code";
  box.append(text, copy);
  place.replaceChildren(box);
});
