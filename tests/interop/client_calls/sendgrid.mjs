// Does each call of SendGrid's SDK for Node.js that sends mail, and the questions that senders ask.
import { assert, call, finish, received, require } from "./calls.mjs";

const { Client } = require("@sendgrid/client");
const { MailService } = require("@sendgrid/mail");
const client = new Client(), mail = new MailService();
client.setApiKey(process.env.API_KEY);
client.setDefaultRequest("baseUrl", `${process.env.RECORDER}/providers/sendgrid/`);
mail.setClient(client);
const to = (name) => `${name}.sendgrid-node@customer.example`;
const one = (name) => ({ from: "shop@example.com", to: to(name), subject: name, text: name });

await call("mail.send", async () => {
  const content = [{ type: "text/plain", value: "t" }, { type: "text/calendar; method=REQUEST", value: "BEGIN" }];
  const [answer] = await mail.send({ from: "shop@example.com", to: to("one"), subject: "one", content });
  assert.equal(answer.statusCode, 202);
  assert.equal((await received(to("one"))).deliveryId, answer.headers["x-message-id"]);
});
await call("mail.sendMultiple", async () => {
  await mail.sendMultiple({ ...one("two"), to: [to("two"), to("three")] });
  assert.equal((await received(to("three"))).subject, "two");
});
await call("client.request /v3/scopes", async () => {
  const [, body] = await client.request({ method: "GET", url: "/v3/scopes" });
  assert.deepEqual(body.scopes, ["mail.send"]);
});
await call("client.request /v3/user/account", async () => {
  const [answer] = await client.request({ method: "GET", url: "/v3/user/account" });
  assert.equal(answer.statusCode, 200);
});
finish(["mail.send", "mail.sendMultiple"]);
