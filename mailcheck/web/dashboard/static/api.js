// Show the response of a call for the signed-in account below its command.
"use strict";

document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-answer]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const place = document.getElementById(link.dataset.answer);
  const text = document.createElement("pre");
  text.id = `${place.id}-text`;
  text.tabIndex = 0;
  try {
    const answer = await fetch(link.href, { headers: { Accept: "application/json" } });
    const found = await answer.json();
    text.textContent = answer.ok
      ? `${found.called}\n${found.status}\n\n${JSON.stringify(found.answer, null, 2)}`
      : found.error;
  } catch {
    text.textContent = "The server cannot be reached, or you are not signed in.";
  }
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
