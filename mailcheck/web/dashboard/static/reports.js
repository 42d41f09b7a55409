// Import of reports: drop files and folders, and send them in parts with progress.
"use strict";

const MAX_PART = 8 * 1024 * 1024, MAX_FILES = 200, MAX_SHOWN = 50;

for (const form of document.querySelectorAll("[data-drop]")) {
  const state = form.querySelector("[data-drop-state]");
  const rejected = form.querySelector("[data-drop-rejected]");
  const input = form.querySelector("[type=file]");
  const button = form.querySelector("button");
  form.querySelector("[data-drop-hint]").hidden = false;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    importFiles([...input.files].map((file) => ({ file, name: file.name })));
  });
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    form.classList.remove("over");
    // The items are gone after the first await.
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    const dropped = items.map((item) => [item.webkitGetAsEntry(), item.getAsFile()]);
    const found = [];
    for (const [entry, file] of dropped) {
      if (entry) await collect(entry, found);
      else if (file) found.push({ file, name: file.name });
    }
    importFiles(found);
  });

  async function importFiles(files) {
    if (!files.length || button.disabled) return;
    const sums = { new: 0, known: 0, rejected: 0 };
    let done = 0;
    button.disabled = true;
    rejected.hidden = true;
    rejected.replaceChildren();
    const say = (text) => {
      state.textContent = `${text}: ${sums.new} new, ${sums.known} known, ${sums.rejected} rejected.`;
    };
    try {
      for (const part of partsOf(files)) {
        say(`Importing, ${done} of ${files.length} files`);
        const result = await send(part);
        for (const name of Object.keys(sums)) sums[name] += Number(result.dataset[name]);
        for (const item of result.querySelectorAll("li")) {
          if (rejected.children.length < MAX_SHOWN) rejected.append(document.adoptNode(item));
        }
        rejected.hidden = !rejected.children.length;
        done += part.length;
      }
      say("Imported");
      form.querySelector("[data-drop-done]").hidden = false;
      input.value = "";
    } catch (problem) {
      say(`${problem.message} Import the files again: known reports change nothing. Until now`);
    } finally {
      button.disabled = false;
    }
  }

  async function send(part) {
    const body = new FormData();
    body.append("form-token", form.querySelector("[name=form-token]").value);
    for (const { file, name } of part) body.append("file", file, name);
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const result = page.getElementById("imported");
    if (!result) throw new Error(page.querySelector("main p")?.textContent ?? `Status ${answer.status}.`);
    return result;
  }
}

async function collect(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    if (!entry.name.startsWith(".")) found.push({ file, name: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const inner of some) await collect(inner, found);
  }
}

function* partsOf(files) {
  let part = [], size = 0;
  for (const one of files) {
    if (part.length && (size + one.file.size > MAX_PART || part.length === MAX_FILES)) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(one);
    size += one.file.size;
  }
  if (part.length) yield part;
}
