// Calls the commands of cypress-mailpit without Cypress: `cy` sends the same requests with fetch.

import { readFile, writeFile } from "node:fs/promises";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";

const [url, ...recipients] = process.argv.slice(2);

async function request({ method, url: target, qs, body }) {
  const query = qs ? `?${new URLSearchParams(qs)}` : "";
  const headers = body ? { "Content-Type": "application/json" } : {};
  const answer = await fetch(target + query, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${target}: ${answer.status}`);
  const text = await answer.text();
  const isJson = answer.headers.get("Content-Type").startsWith("application/json");
  return { body: isJson ? JSON.parse(text) : text };
}

globalThis.Cypress = { expose: () => url, config: () => 60_000 };
globalThis.cy = {
  env: async () => ({}),
  request,
  wrap: async (value) => value,
  wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};

// The package has modules without the field that Node.js needs to read them as such.
const source = `${process.env.CLIENTS}/node_modules/cypress-mailpit/dist/src/MailpitCommands.js`;
const copy = `${mkdtempSync(`${tmpdir()}/cypress-`)}/commands.mjs`;
await writeFile(copy, await readFile(source));
const { MailpitCommands } = await import(copy);
const commands = new MailpitCommands();

async function signUp(to) {
  const began = performance.now();
  const found = await commands.mailpitHasEmailsByTo(to);
  const waited = (performance.now() - began) / 1000;
  const message = await commands.mailpitGetMail(found.messages[0].ID);
  const html = await commands.mailpitGetMailHTMlBody(message);
  const text = await commands.mailpitGetMailTextBody(message);
  const searched = await commands.mailpitGetEmailsBySubject(`"Welcome ${to}"`);
  const spam = await commands.mailpitGetMailSpamAssassinSummary(message);
  if (typeof spam.IsSpam !== "boolean") throw new Error(JSON.stringify(spam));
  await commands.mailpitSetStatusAsUnRead(message);
  const [attachment] = message.Attachments;
  const part = await fetch(`${url}/api/v1/message/${message.ID}/part/${attachment.PartID}`);
  await commands.mailpitDeleteEmailsBySearch(`to:${to}`);
  const left = await commands.mailpitNotHasEmailsByTo(to);
  return {
    to,
    waited,
    code: text.match(/\d{6}/)[0],
    link: html.match(/href="([^"]+)"/)[1],
    file: Buffer.from(await part.arrayBuffer()).toString("hex"),
    found: searched.messages_count,
    left: left.messages_count,
  };
}

const rows = Promise.all(recipients.map(signUp));
console.log("waiting");
const found = await rows;
await commands.mailpitSendMail({ to: [{ Email: "sent@example.com" }] });
const latest = await commands.mailpitGetMail();
if ((await commands.mailpitGetRecipientAddress(latest))[0] !== "sent@example.com") throw new Error("latest");
await commands.mailpitDeleteAllEmails();
console.log(JSON.stringify(found));
