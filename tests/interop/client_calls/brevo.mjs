// Does the calls of Brevo's SDK for Node.js that send mail, and the questions that senders ask.
import { assert, call, finish, received, require } from "./calls.mjs";

const { BrevoClient } = require("@getbrevo/brevo");
const baseUrl = `${process.env.RECORDER}/providers/brevo/v3`;
const client = new BrevoClient({ apiKey: process.env.API_KEY, baseUrl, maxRetries: 0 });
const to = (name) => `${name}.brevo-node@customer.example`;
const mail = (name) => ({ sender: { email: "shop@example.com" }, to: [{ email: to(name) }], subject: name, textContent: name });

await call("transactionalEmails.sendTransacEmail", async () => {
  const { messageId } = await client.transactionalEmails.sendTransacEmail(mail("one"));
  assert.equal((await received(to("one"))).headers["message-id"], messageId);
});
await call("transactionalEmails.sendTransacEmail (messageVersions)", async () => {
  const messageVersions = ["two", "three"].map((name) => ({ to: [{ email: to(name) }], subject: name }));
  const sender = { id: 3 };
  const answer = await client.transactionalEmails.sendTransacEmail({ ...mail("x"), to: undefined, sender, messageVersions });
  assert.equal(answer.messageIds.length, 2);
  assert.equal((await received(to("three"))).headers["message-id"], answer.messageIds[1]);
});
await call("account.getAccount", async () => assert.equal((await client.account.getAccount()).plan[0].creditsType, "sendLimit"));
await call("senders.getSenders", async () => assert.ok((await client.senders.getSenders()).senders[0].active));
finish(["transactionalEmails.sendTransacEmail"]);
