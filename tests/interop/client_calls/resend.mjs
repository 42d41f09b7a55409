// Does each call of Resend's SDK for Node.js that sends and shows mail.
import { aside, assert, call, finish, received, refused, require } from "./calls.mjs";

process.env.RESEND_BASE_URL = `${process.env.RECORDER}/providers/resend`;
const { Resend } = require("resend");
const resend = new Resend(process.env.API_KEY);
const from = "Shop <shop@example.com>";
const mail = (name) => ({ from, to: `${name}.resend-node@customer.example`, subject: name, html: `<p>${name}</p>` });

const good = async (answer) => {
  const { data, error } = await answer;
  if (error) throw new Error(`${error.name}: ${error.message}`);
  return data;
};

const sent = await call("emails.send", async () => {
  const attachments = [{ filename: "a.ics", content: Buffer.from("BEGIN"), contentType: "text/calendar; method=REQUEST" }];
  const { id } = await good(resend.emails.send({ ...mail("send"), attachments }));
  const stored = await received(mail("send").to);
  assert.deepEqual([stored.subject, stored.deliveryId, stored.attachments.length], ["send", id, 1]);
  return id;
});
await call("emails.create", async () => {
  await good(resend.emails.create(mail("create"), { idempotencyKey: "order-1" }));
  await good(resend.emails.create(mail("create"), { idempotencyKey: "order-1" }));
  assert.equal((await received(mail("create").to)).subject, "create");
});
await call("emails.get", async () => {
  const shown = await good(resend.emails.get(sent));
  assert.deepEqual([shown.id, shown.from, shown.html, shown.last_event], [sent, from, "<p>send</p>", "delivered"]);
});
await call("emails.list", async () => {
  const listed = await good(resend.emails.list({ limit: 1 }));
  assert.deepEqual([listed.object, listed.data.length, listed.has_more], ["list", 1, true]);
  const rest = await good(resend.emails.list({ after: listed.data[0].id }));
  assert.ok(rest.data.some((one) => one.id === sent));
});
await call("emails.update", async () => {
  const scheduledAt = new Date(Date.now() + 60_000).toISOString();
  assert.deepEqual(await good(resend.emails.update({ id: sent, scheduledAt })), { object: "email", id: sent });
});
await call("emails.cancel", async () =>
  assert.deepEqual(await good(resend.emails.cancel(sent)), { object: "email", id: sent }),
);
await call("batch.send", async () => {
  const { data } = await good(resend.batch.send([mail("first"), mail("second")]));
  assert.equal(data.length, 2);
  assert.equal((await received(mail("second").to)).deliveryId, data[1].id);
});
await call("batch.create", async () => {
  const found = await good(
    resend.batch.create([{ ...mail("x"), to: "nobody" }, mail("third")], { batchValidation: "permissive" }),
  );
  assert.deepEqual([found.data.length, found.errors[0].index], [1, 0]);
});

// A mail that a route has brought to an application, with a file.
const api = async (method, path, value) => {
  const headers = { "X-API-Key": process.env.API_KEY, "Content-Type": "application/json" };
  const body = value && JSON.stringify(value);
  const answer = await fetch(`${process.env.RECORDER}/api/v1${path}`, { method, headers, body });
  assert.equal(answer.status, 200);
  return answer.json();
};
const [route, incoming] = await aside(async () => {
  const made = await api("POST", "/inbound/routes", { to: "in@app.example", format: "resend", url: "https://app.example.com/in" });
  const file = { name: "a.txt", content: Buffer.from("one").toString("base64") };
  const letter = { from: "ana@customer.example", to: ["in@app.example"], subject: "in", text: "Hi", files: [file] };
  return [made.id, (await api("POST", `/inbound/routes/${made.id}/messages`, letter)).id];
});
const download = async (url) => Buffer.from(await (await fetch(url)).arrayBuffer()).toString();

await call("emails.receiving.get", async () => {
  const shown = await good(resend.emails.receiving.get(incoming));
  assert.deepEqual([shown.id, shown.subject, shown.received_for], [incoming, "in", ["in@app.example"]]);
  assert.ok((await download(shown.raw.download_url)).includes("Subject: in\r\n"));
});
await call("emails.receiving.list", async () => {
  const listed = await good(resend.emails.receiving.list({ limit: 1 }));
  assert.deepEqual([listed.object, listed.data.length, listed.data[0].id], ["list", 1, incoming]);
});
const { attachments } = await aside(() => good(resend.emails.receiving.get(incoming)));
await call("emails.receiving.attachments.list", async () => {
  const { data } = await good(resend.emails.receiving.attachments.list({ emailId: incoming }));
  assert.deepEqual(data.map((one) => one.id), attachments.map((one) => one.id));
});
await call("emails.receiving.attachments.get", async () => {
  const shown = await good(resend.emails.receiving.attachments.get({ emailId: incoming, id: attachments[0].id }));
  assert.deepEqual([shown.filename, await download(shown.download_url)], ["a.txt", "one"]);
});
await aside(() => api("DELETE", `/inbound/routes/${route}`));
await call("domains.list", async () => assert.equal((await good(resend.domains.list())).data[0].status, "verified"));
await refused("emails.share", "not_found", () => good(resend.emails.share(sent)));
await refused("emails.metrics", "not_found", () => good(resend.emails.metrics({ metrics: ["sent"] })));

const names = (path) => Object.getOwnPropertyNames(Object.getPrototypeOf(resend[path])).map((one) => `${path}.${one}`);
finish([...names("emails"), ...names("batch")].filter((one) => !one.endsWith(".constructor")));
