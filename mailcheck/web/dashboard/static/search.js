// Suggestions below the search field: search operators, tags, senders and recipients.
"use strict";

{
  const field = document.getElementById("q");
  const known = [...document.querySelectorAll("#q-terms option")].map(
    (one) => ({ text: one.value, meaning: one.label }),
  );
  const MAX_OFFERS = 8;
  let active = -1;

  const list = document.createElement("ul");
  list.id = "q-offers";
  list.className = "offers";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  field.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox", autocomplete: "off", "aria-autocomplete": "list",
    "aria-expanded": "false", "aria-controls": list.id,
  })) field.setAttribute(name, value);

  const wordBefore = () => field.value.slice(0, field.selectionStart).match(/\S*$/)[0];
  const quoted = (text) => (/\s/.test(text) ? `"${text}"` : text);
  const values = {
    tag: () => [...document.querySelectorAll(".tags a[data-tag]")].map((one) => one.dataset.tag || '""'),
    from: () => [...document.querySelectorAll("#mails .from")].map((one) => quoted(one.textContent)),
    to: () => [...document.querySelectorAll("#mails .to")].map((one) => quoted(one.lastChild.textContent)),
  };

  function offersFor(word) {
    const written = word.toLowerCase();
    const prefix = written.match(/^(tag|from|to):/)?.[1];
    if (prefix) {
      return [...new Set(values[prefix]())].map((value) => ({ text: `${prefix}:${value}`, meaning: "" }))
        .filter(({ text }) => text.toLowerCase().startsWith(written) && text !== word);
    }
    const found = known.filter(({ text }) => text.startsWith(written) && text !== written);
    if (found.length || written.includes(":") || written.startsWith('"')) return found;
    return ["from", "subject", "to"].map((name) => ({
      text: `${name}:${word}`, meaning: known.find(({ text }) => text === `${name}:`)?.meaning ?? "",
    }));
  }

  function show() {
    const offers = offersFor(wordBefore()).slice(0, MAX_OFFERS);
    active = -1;
    list.replaceChildren(...offers.map(({ text, meaning }, number) => {
      const item = document.createElement("li");
      item.id = `q-offer-${number}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.dataset.text = text;
      const code = document.createElement("code");
      code.textContent = text;
      item.append(code, ` ${meaning}`);
      return item;
    }));
    toggle(offers.length > 0);
  }

  function toggle(isOpen) {
    list.hidden = !isOpen;
    field.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) field.removeAttribute("aria-activedescendant");
  }

  function move(by) {
    const items = [...list.children];
    active = (active + by + items.length + (active < 0 && by < 0 ? 1 : 0)) % items.length;
    items.forEach((item, number) => item.setAttribute("aria-selected", String(number === active)));
    field.setAttribute("aria-activedescendant", items[active].id);
    items[active].scrollIntoView({ block: "nearest" });
  }

  function take(text) {
    const at = field.selectionStart;
    const start = at - wordBefore().length;
    field.setRangeText(text, start, at, "end");
    field.focus();
    if (text.endsWith(":")) show();
    else field.form.requestSubmit();
  }

  field.addEventListener("input", show);
  field.addEventListener("click", show);
  field.addEventListener("focus", show);
  field.addEventListener("blur", () => toggle(false));
  field.addEventListener("keydown", (event) => {
    if (list.hidden) {
      if (event.key === "ArrowDown") show();
      return;
    }
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape") toggle(false);
    else if (event.key === "Enter" && active >= 0) take(list.children[active].dataset.text);
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // keep the focus in the field
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) take(item.dataset.text);
  });
}
