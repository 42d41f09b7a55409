// Does each call of Postmark's SDK for Node.js that sends mail.
import { assert, call, finish, received, refused, require } from "./calls.mjs";

const { ServerClient } = require("postmark");
const requestHost = `${process.env.RECORDER.replace("http://", "")}/providers/postmark`;
const client = new ServerClient(process.env.API_KEY, { requestHost, useHttps: false });
const to = (name) => `${name}.postmark-node@customer.example`;
const mail = (name) => ({ From: "shop@example.com", To: to(name), Subject: name, TextBody: name, Tag: "order" });
const templated = (name) => ({ From: "shop@example.com", To: to(name), TemplateAlias: name, TemplateModel: { a: 1 } });

await call("sendEmail", async () => {
  const answer = await client.sendEmail(mail("one"));
  assert.deepEqual([answer.ErrorCode, answer.Message, answer.To], [0, "OK", to("one")]);
  assert.equal((await received(to("one"))).deliveryId, answer.MessageID);
});
await call("sendEmailBatch", async () => {
  const answers = await client.sendEmailBatch([mail("two"), { ...mail("x"), To: "nobody" }]);
  assert.deepEqual(answers.map((one) => one.ErrorCode), [0, 300]);
  assert.equal((await received(to("two"))).subject, "two");
});
await call("sendEmailWithTemplate", async () => {
  assert.equal((await client.sendEmailWithTemplate(templated("three"))).ErrorCode, 0);
  assert.match((await received(to("three"))).text, /Template: three/);
});
await call("sendEmailBatchWithTemplates", async () => {
  const answers = await client.sendEmailBatchWithTemplates([templated("four"), templated("five")]);
  assert.deepEqual(answers.map((one) => one.ErrorCode), [0, 0]);
  assert.match((await received(to("five"))).text, /Template: five/);
});
await call("getServer", async () => assert.equal((await client.getServer()).DeliveryType, "Sandbox"));
await refused("sendBulkEmail", "is not a path of Postmark", () =>
  client.sendBulkEmail({ From: "shop@example.com", Subject: "s", TextBody: "t", Messages: [{ To: to("six") }] }),
);

const own = Object.getOwnPropertyNames(Object.getPrototypeOf(client));
finish(own.filter((one) => one.startsWith("send")));
