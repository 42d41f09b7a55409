// Does each call of Mailosaur's client for Node.js.

import { aside, assert, call, finish, local, refused, require, send } from "./calls.mjs";

process.env.HTTPS_PROXY = process.env.TLS_PROXY;
const MailosaurClient = require("mailosaur");
const client = new MailosaurClient(process.env.API_KEY, `${process.env.HTTPS_URL}/mailosaur/`);
const SERVER = "node1234";
const address = client.servers.generateEmailAddress(SERVER);
const SENDS_NOTHING = "mailcheck sends no captured mail to the outside";
const NO_DEVICES = "mailcheck has no devices for one-time passwords";
const NO_PREVIEWS = "mailcheck takes no pictures of mail";

const summary = ["id", "type", "server", "from", "to", "cc", "bcc", "received", "subject", "summary", "attachments"];
const has = (value, ...names) => names.forEach((name) => assert.ok(value[name] !== undefined, name));

await aside(() => client.messages.deleteAll(SERVER));
await send(address);

const [{ id }] = (await aside(() => client.messages.list(SERVER))).items;
await call("messages.list", async () => {
  const { items } = await client.messages.list(SERVER, { page: 0, itemsPerPage: 10, receivedAfter: new Date(0) });
  assert.equal(items.length, 1);
  has(items[0], ...summary);
  assert.ok(items[0].received instanceof Date);
  assert.deepEqual([items[0].subject, items[0].server], ["Welcome", SERVER]);
  assert.ok(items[0].attachments >= 1);
  assert.deepEqual((await client.messages.list(SERVER, { dir: "Sent" })).items, []);
});
const message = await aside(() => client.messages.getById(id));
await call("messages.getById", async () => {
  const found = await client.messages.getById(id);
  has(found, "id", "type", "server", "from", "to", "cc", "bcc", "received", "subject", "html", "text", "attachments", "metadata");
  assert.equal(found.html.codes[0].value, "482913");
  assert.equal(found.html.links[0].href, "https://shop.example/verify?token=abc");
  assert.equal(found.html.images[0].alt, "A cat");
  assert.equal(found.text.links[0].href, "https://shop.example/verify?token=abc");
  assert.deepEqual([found.to[0].name, found.to[0].email], ["Ann", address]);
  assert.equal(found.metadata.mailFrom, "shop@example.com");
  assert.equal(found.metadata.rcptTo[0].email, address);
  assert.ok(found.metadata.headers.some((one) => one.field === "Subject" && one.value === "Welcome"));
});
await call("messages.search", async () => {
  for (const criteria of [{ sentTo: address }, { sentFrom: "shop@example.com" }, { subject: "welcome" }, { body: "482913" }]) {
    assert.equal((await client.messages.search(SERVER, criteria)).items[0].id, id);
  }
  const any = { match: "ANY", subject: "welcome", sentTo: "nobody@example.com" };
  assert.equal((await client.messages.search(SERVER, any, { page: 0, itemsPerPage: 5 })).items.length, 1);
  await assert.rejects(client.messages.search(SERVER, { subject: "none" }, { timeout: 300 }), /No matching messages found in time/);
  const none = await client.messages.search(SERVER, { subject: "none" }, { timeout: 300, errorOnTimeout: false });
  assert.deepEqual(none.items, []);
});
await call("messages.get", async () => {
  assert.equal((await client.messages.get(SERVER, { sentTo: address }, { timeout: 1000 })).id, id);
});
await call("files.getAttachment", async () => {
  const file = message.attachments.find((one) => one.fileName === "a.csv");
  assert.deepEqual([file.contentType, file.length], ["text/csv", 7]);
  assert.equal((await client.files.getAttachment(file.id)).toString(), "one,two");
});
await call("files.getEmail", async () => assert.match((await client.files.getEmail(id)).toString(), /^Subject: Welcome\r$/m));
await call("analysis.spam", async () => {
  const found = await client.analysis.spam(id);
  assert.equal(typeof found.score, "number");
  has(found.spamFilterResults.spamAssassin[0], "rule", "score", "description");
});
await call("analysis.deliverability", async () => {
  const found = await client.analysis.deliverability(id);
  has(found, "spf", "dkim", "dmarc", "blockLists", "content", "dnsRecords", "spamAssassin");
  has(found.spf, "result", "description", "rawValue", "tags");
});
const server = await call("servers.create", async () => {
  const made = await client.servers.create({ name: "My tests" });
  assert.match(made.id, /^\w{8}$/);
  assert.deepEqual([made.name, made.messages, made.users], ["My tests", 0, []]);
  return made;
});
await call("servers.list", async () => {
  const { items } = await client.servers.list();
  assert.ok(items.some((one) => one.id === SERVER && one.messages === 1));
});
await call("servers.get", async () => assert.equal((await client.servers.get(server.id)).name, "My tests"));
await call("servers.update", async () => {
  assert.equal((await client.servers.update(server.id, { ...server, name: "Yours" })).name, "Yours");
  assert.equal((await client.servers.get(server.id)).name, "Yours");
});
await call("servers.getPassword", async () => assert.equal(await client.servers.getPassword(server.id), process.env.API_KEY));
local("servers.generateEmailAddress");
await call("servers.del", async () => {
  await client.servers.del(server.id);
  await assert.rejects(client.servers.get(server.id), (error) => error.httpStatusCode === 404);
});
await call("usage.limits", async () => {
  const found = await client.usage.limits();
  for (const name of ["servers", "users", "email", "sms"]) assert.equal(typeof found[name].limit, "number");
});
await call("usage.transactions", async () => {
  const { items } = await client.usage.transactions();
  assert.ok(items[0].timestamp instanceof Date);
  assert.ok(items[0].email >= 1);
});
const options = { to: "a@example.com", subject: "s", text: "t" };
await refused("messages.create", SENDS_NOTHING, () => client.messages.create(SERVER, options));
await refused("messages.forward", SENDS_NOTHING, () => client.messages.forward(id, options));
await refused("messages.reply", SENDS_NOTHING, () => client.messages.reply(id, options));
await refused("messages.generatePreviews", NO_PREVIEWS, () => client.messages.generatePreviews(id, {}));
// The client shows no reasons of files.
await refused("files.getPreview", "Request had one or more invalid parameters", () => client.files.getPreview(id));
await refused("previews.listEmailClients", NO_PREVIEWS, () => client.previews.listEmailClients());
await refused("devices.list", NO_DEVICES, () => client.devices.list());
await refused("devices.create", NO_DEVICES, () => client.devices.create({ name: "d", sharedSecret: "ABC" }));
await refused("devices.otp", NO_DEVICES, () => client.devices.otp("1"));
await refused("devices.del", NO_DEVICES, () => client.devices.del("1"));
await call("messages.del", async () => {
  await client.messages.del(id);
  assert.deepEqual((await client.messages.list(SERVER)).items, []);
});
await send(address);
await call("messages.deleteAll", async () => {
  await client.messages.deleteAll(SERVER);
  assert.deepEqual((await client.messages.list(SERVER)).items, []);
});

const groups = ["analysis", "devices", "files", "messages", "previews", "servers", "usage"];
finish(groups.flatMap((group) => Object.getOwnPropertyNames(Object.getPrototypeOf(client[group]))
  .filter((name) => name !== "constructor").map((name) => `${group}.${name}`)));
