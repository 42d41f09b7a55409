// Does each call of MailSlurp's client for Node.js, of about 650. See mailslurp_python.py for what is checked.

import { assert, call, finish, require, results, send } from "./calls.mjs";

const OTHER = "is not a path of MailSlurp in mailcheck";
const slurp = require("mailslurp-client");
const settings = { apiKey: process.env.API_KEY, basePath: `${process.env.RECORDER}/mailslurp` };
const client = new slurp.MailSlurp(settings);
const configuration = new slurp.Configuration({ ...settings, apiKey: settings.apiKey });

async function newInbox() {
  const inbox = await client.createInbox();
  await send(inbox.emailAddress);
  return inbox;
}

const url = "https://hooks.example/mail";
const newHook = async (inboxId) =>
  (await client.webhookController.createWebhook({ inboxId, createWebhookOptions: { url } })).id;

async function valuesFor(inbox, webhookId) {
  const email = await client.waitForLatestEmail(inbox.id, 10_000);
  const files = await client.emailController.getEmailAttachments({ emailId: email.id });
  return {
    inboxId: inbox.id, emailId: email.id, webhookId, emailAddress: inbox.emailAddress,
    attachmentId: files.find((one) => one.name === "a.csv").id,
    count: 1, timeout: 2_000, timeoutMillis: 2_000, read: true,
    createWebhookOptions: { url },
    createInboxDto: { name: "calls" },
    updateInboxOptions: { name: "renamed" },
    contentMatchOptions: { pattern: "code is <b>(\\d{6})" },
    matchOptions: { matches: [{ field: "SUBJECT", should: "CONTAIN", value: "come" }] },
    waitForConditions: { inboxId: inbox.id, count: 1, countType: "EXACTLY", timeout: 2_000, unreadOnly: false },
  };
}

// Stands for the options of a call that is refused: each of them is a list, and a date too.
const anything = new Proxy({}, { get: () => Object.assign([], { toISOString: () => "" }) });

// Has a value for each parameter that a call requires; other parameters are left out.
function parametersOf(values, method) {
  const source = String(method);
  const required = [...source.matchAll(/RequiredError\('(\w+)'/g)].map((one) => one[1]);
  const parameters = {};
  for (const name of [...required, "inboxId", "timeout", "timeoutMillis"]) {
    if (name in values) parameters[name] = values[name];
    else if (["since", "before"].includes(name)) parameters[name] = new Date(0);
    else if (required.includes(name)) parameters[name] = /options|dto|request|body|headers|conditions/i.test(name) ? anything : "x";
  }
  return parameters;
}

const checks = {
  getEmail: (one) => assert.deepEqual([one.subject, one.from], ["Welcome", "shop@example.com"]),
  waitForLatestEmail: (one) => assert.match(one.body, /482913/),
  waitForNthEmail: (one) => assert.equal(one.subject, "Welcome"),
  waitForMatchingFirstEmail: (one) => assert.equal(one.subject, "Welcome"),
  waitForMatchingEmails: (found) => assert.deepEqual(found.map((one) => one.subject), ["Welcome"]),
  waitForEmailCount: (found) => assert.equal(found.length, 1),
  waitFor: (found) => assert.equal(found.length, 1),
  getEmails: (found) => assert.deepEqual(found.map((one) => one.subject), ["Welcome"]),
  getEmailCodes: (one) => assert.equal(one.code, "482913"),
  getEmailLinks: (one) => assert.ok(one.links.includes("https://shop.example/verify?token=abc")),
  getEmailContentMatch: (one) => assert.equal(one.matches[1], "482913"),
  getInboxEmailCount: (one) => assert.equal(one.totalElements, 1),
  getInboxEmailsPaginated: (one) => assert.equal(one.totalElements, 1),
  getRawEmailJson: (one) => assert.match(one.content, /Subject: Welcome/),
  doesInboxExist: (one) => assert.equal(one._exists, true),
};

async function run(name, controller, values) {
  let reason = "";
  await call(name, async () => {
    try {
      const raw = controller.constructor.prototype[`${name}Raw`];
      const value = await controller[name](parametersOf(values, raw));
      checks[name]?.(value);
    } catch (error) {
      if (error.status === undefined) throw error;
      const body = await error.json();
      if (error.status !== 501) throw new Error(`${error.status}: ${body.message}`);
      reason = body.message;
    }
  });
  if (reason) Object.assign(results.at(-1), { outcome: "refused", why: reason });
}

const controllers = Object.entries(slurp).filter(([name]) => name.endsWith("Api")).map(([, kind]) => new kind(configuration));
const methods = new Map();
for (const one of controllers) {
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(one))) {
    if (`${name}Raw` in one) methods.set(name, one);
  }
}
const deleting = /delete|empty|flush|expire|cancel|disconnect|remove/i;
const first = await newInbox();
const given = await valuesFor(first, await newHook(first.id));
for (const [name, controller] of methods) if (!deleting.test(name)) await run(name, controller, given);
for (const [name, controller] of methods) {
  if (!deleting.test(name)) continue;
  if (/webhook/i.test(name)) await run(name, controller, { ...given, webhookId: await newHook(first.id) });
  else await run(name, controller, /email|inbox/i.test(name) ? await valuesFor(await newInbox()) : given);
}
for (const { id } of (await client.webhookController.getAllWebhooks({})).content) {
  await client.webhookController.deleteWebhookById({ webhookId: id });
}

const others = results.filter((one) => one.why?.includes(OTHER));
const kept = results.filter((one) => !others.includes(one));
results.splice(0, results.length, ...kept, { call: `${others.length} other calls`, outcome: "refused", why: OTHER });
finish([]);
