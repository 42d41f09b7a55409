// Does each call of the client of MailHog for Node.js.

import { aside, assert, call, finish, local, require, send } from "./calls.mjs";

const { hostname, port } = new URL(process.env.RECORDER);
const mailhog = require("mailhog")({ host: hostname, port });

await aside(() => fetch(`${process.env.RECORDER}/api/v1/messages`, { method: "DELETE" }));
for (const name of ["ann", "bob"]) await send(`${name}@customer.example`);

const newest = (await aside(() => mailhog.messages())).items[0];
await call("messages", async () => {
  const found = await mailhog.messages(0, 10);
  assert.deepEqual([found.total, found.count, found.start, found.items.length], [2, 2, 0, 2]);
  const [one] = found.items;
  assert.deepEqual(Object.keys(one).sort(), ["Content", "Created", "From", "ID", "MIME", "Raw", "To"]);
  assert.deepEqual(one.From, { Relays: null, Mailbox: "shop", Domain: "example.com", Params: "" });
  assert.deepEqual([one.subject, one.from, one.cc], ["Welcome", "Shop <shop@example.com>", "Bob <bob@example.com>"]);
  for (const name of ["Message-ID", "Received", "Return-Path"]) assert.equal(one.Content.Headers[name].length, 1, name);
  assert.deepEqual(one.Content.Headers["Return-Path"], ["<shop@example.com>"]);
  assert.deepEqual(one.attachments.map((file) => file.name), ["cat.png", "a.csv"]);
  assert.equal((await mailhog.messages(1, 1)).items[0].to, "Ann <ann@customer.example>");
});
await call("search", async () => {
  assert.equal((await mailhog.search("482913", "containing")).total, 2);
  assert.equal((await mailhog.search("shop@example.com", "from", 1, 5)).count, 1);
});
await call("latestFrom", async () => assert.equal((await mailhog.latestFrom("shop@example.com")).ID, newest.ID));
await call("latestTo", async () => assert.equal((await mailhog.latestTo("bob@customer.example")).ID, newest.ID));
await call("latestContaining", async () => assert.equal((await mailhog.latestContaining("Welcome")).ID, newest.ID));
await call("releaseMessage", async () => {
  const answer = await mailhog.releaseMessage(newest.ID, { email: "a@example.com", host: "localhost", port: "25" });
  assert.match(answer.error, /sends no captured mail/);
});
await call("deleteMessage", async () => {
  assert.equal((await mailhog.deleteMessage(newest.ID)).statusCode, 200);
  assert.equal((await mailhog.messages()).total, 1);
});
await call("deleteAll", async () => {
  assert.equal((await mailhog.deleteAll()).statusCode, 200);
  assert.equal((await mailhog.messages()).total, 0);
});
local("encode", "decode");
finish(Object.keys(mailhog).filter((name) => name !== "options"));
