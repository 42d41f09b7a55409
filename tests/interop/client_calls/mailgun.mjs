// Does each call of Mailgun's SDK for Node.js that sends mail, and the questions that senders ask.
import { assert, call, finish, received, refused, require } from "./calls.mjs";

const Mailgun = require("mailgun.js").default ?? require("mailgun.js");
const url = `${process.env.RECORDER}/providers/mailgun`;
const client = new Mailgun(require("form-data")).client({ username: "api", key: process.env.API_KEY, url });
const to = (name) => `${name}.mailgun-node@customer.example`;

await call("messages.create", async () => {
  const mail = { from: "shop@example.com", to: to("one"), subject: "one", text: "t", "amp-html": "<html amp4email>" };
  const attachment = [{ filename: "a.ics", data: "BEGIN", contentType: "text/calendar; method=REQUEST" }];
  const answer = await client.messages.create("example.com", { ...mail, attachment });
  assert.deepEqual([answer.status, answer.message], [200, "Queued. Thank you."]);
  assert.equal((await received(to("one"))).headers["message-id"], answer.id);
});
await call("messages.create (message)", async () => {
  const message = `From: shop@example.com\r\nTo: ${to("two")}\r\nSubject: two\r\n\r\ntwo\r\n`;
  const answer = await client.messages.create("example.com", { to: to("two"), message });
  assert.equal(answer.status, 200);
  assert.equal((await received(to("two"))).subject, "two");
});
await call("domains.list", async () => assert.equal((await client.domains.list())[0].state, "active"));
await call("domains.get", async () => assert.equal((await client.domains.get("example.com")).name, "example.com"));
await refused("messages.retrieveStoredEmail", "Not Found", () => client.messages.retrieveStoredEmail("example.com", "x"));
await refused("messages.getMessagesQueueStatus", "Not Found", () => client.messages.getMessagesQueueStatus("example.com"));
await refused("messages.resendEmail", "Not Found", () => client.messages.resendEmail("example.com", "x", to("three")));
finish(["create", "retrieveStoredEmail", "resendEmail", "getMessagesQueueStatus"].map((one) => `messages.${one}`));
