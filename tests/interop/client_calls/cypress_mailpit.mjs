// Does each command of cypress-mailpit without Cypress: `cy` sends the same requests with fetch.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { aside, assert, call, finish, local, send } from "./calls.mjs";

const url = process.env.RECORDER;

async function request({ method, url: target, qs, body }) {
  const query = qs ? `?${new URLSearchParams(qs)}` : "";
  const headers = body ? { "Content-Type": "application/json" } : {};
  const answer = await fetch(target + query, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${target}: ${answer.status}`);
  const text = await answer.text();
  const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
  return { status: answer.status, body: isJson ? JSON.parse(text) : text };
}

globalThis.Cypress = { expose: () => url, config: () => 5_000 };
globalThis.cy = {
  env: async () => ({}),
  request,
  wrap: async (value) => value,
  wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};

// The package has modules without the field that Node.js needs to read them as such.
const copy = `${mkdtempSync(`${tmpdir()}/cypress-`)}/commands.mjs`;
writeFileSync(copy, readFileSync(`${process.env.CLIENTS}/node_modules/cypress-mailpit/dist/src/MailpitCommands.js`));
const { MailpitCommands } = await import(copy);
const mailpit = new MailpitCommands();

await aside(() => mailpit.mailpitDeleteAllEmails());
await send("ann@customer.example");

const message = await call("mailpitGetMail", async () => {
  const found = await mailpit.mailpitGetMail();
  assert.equal((await mailpit.mailpitGetMail(found.ID)).Subject, "Welcome");
  return found;
});
await call("mailpitGetAllMails", async () => assert.equal((await mailpit.mailpitGetAllMails()).messages.length, 1));
for (const [name, argument] of [
  ["mailpitSearchEmails", "subject:Welcome"],
  ["mailpitGetEmailsBySubject", "Welcome"],
  ["mailpitGetEmailsByTo", "ann@customer.example"],
  ["mailpitHasEmailsBySearch", "from:shop@example.com"],
  ["mailpitHasEmailsBySubject", "Welcome"],
  ["mailpitHasEmailsByTo", "ann@customer.example"],
]) {
  await call(name, async () => assert.equal((await mailpit[name](argument)).messages_count, 1));
}
for (const name of ["mailpitNotHasEmailsBySearch", "mailpitNotHasEmailsBySubject", "mailpitNotHasEmailsByTo"]) {
  await call(name, async () => assert.equal((await mailpit[name]("zzz")).messages_count, 0));
}
await call("mailpitGetMailHTMlBody", async () =>
  assert.match(await mailpit.mailpitGetMailHTMlBody(message), /<b>482913<\/b>/));
await call("mailpitGetMailTextBody", async () =>
  assert.match(await mailpit.mailpitGetMailTextBody(message), /482913/));
for (const name of ["mailpitGetMailSpamAssassinSummary", "mailpitGetMailSpamAssainSummary"]) {
  await call(name, async () => assert.equal(typeof (await mailpit[name](message)).IsSpam, "boolean"));
}
const unread = async () => (await mailpit.mailpitGetAllMails()).unread;
for (const [name, left] of [
  ["mailpitSetStatusAsUnRead", 1],
  ["mailpitSetStatusAsRead", 0],
  ["mailpitSetAllEmailStatusAsUnRead", 1],
  ["mailpitSetAllEmailStatusAsRead", 0],
]) {
  await call(name, async () => {
    assert.equal(await mailpit[name](message), "ok");
    assert.equal(await unread(), left);
  });
}
await call("mailpitSendMail", async () => {
  const { ID } = await mailpit.mailpitSendMail();
  const sent = await mailpit.mailpitGetMail(ID);
  assert.deepEqual(await mailpit.mailpitGetRecipientAddress(sent), ["jane@example.com"]);
  assert.equal(await mailpit.mailpitGetFromAddress(sent), "from@example.com");
  assert.equal(await mailpit.mailpitGetSubject(sent), "Hello Mailpit");
  assert.deepEqual(sent.Bcc, [{ Name: "", Address: "bcc@example.com" }]);
});
await call("mailpitDeleteEmailsBySearch", async () => {
  assert.equal((await mailpit.mailpitDeleteEmailsBySearch("subject:Hello")).body, "ok");
  assert.equal((await mailpit.mailpitGetAllMails()).total, 1);
});
await call("mailpitDeleteAllEmails", async () => {
  assert.equal((await mailpit.mailpitDeleteAllEmails()).status, 200);
  assert.equal((await mailpit.mailpitGetAllMails()).total, 0);
});
local("mailpitGetSubject", "mailpitGetFromAddress", "mailpitGetRecipientAddress", "mailpitGetAttachments");
finish([...MailpitCommands.parentCypressCommands, ...MailpitCommands.childCypressCommands]);
