// Waits with mailpit-api for a mail to each recipient, reads and deletes it, and prints a row for each.

import { createRequire } from "node:module";

const require = createRequire(process.env.CLIENTS + "/");
const { MailpitClient } = require("mailpit-api");

const [url, ...recipients] = process.argv.slice(2);
const mailpit = new MailpitClient(url);

async function signUp(to) {
  const began = performance.now();
  const query = `to:${to}`;
  const message = await mailpit.waitForMessage({ query }, { timeout: 60_000, interval: 100 });
  const waited = (performance.now() - began) / 1000;
  const [attachment] = message.Attachments;
  const file = await mailpit.getMessageAttachment(message.ID, attachment.PartID);
  const found = await mailpit.searchMessages({ query: `subject:"Welcome ${to}"` });
  const headers = await mailpit.getMessageHeaders(message.ID);
  const html = await mailpit.renderMessageHTML(message.ID);
  const check = await mailpit.htmlCheck(message.ID);
  if (headers.Subject[0] !== message.Subject || check.Total.Supported <= 0) throw new Error(to);
  await mailpit.setTags({ IDs: [message.ID], Tags: [`for ${to}`] });
  await mailpit.renameTag(`for ${to}`, `of ${to}`);
  const tagged = await mailpit.searchMessages({ query: `tag:"of ${to}"` });
  if (tagged.messages[0].ID !== message.ID) throw new Error(`tags of ${to}`);
  await mailpit.deleteTag(`of ${to}`);
  await mailpit.setReadStatus({ IDs: [message.ID], Read: false });
  await mailpit.deleteMessages({ IDs: [message.ID] });
  const left = await mailpit.searchMessages({ query });
  return {
    to,
    waited,
    code: message.Text.match(/\d{6}/)[0],
    link: html.match(/href="([^"]+)"/)[1],
    file: Buffer.from(await file.arrayBuffer()).toString("hex"),
    found: found.messages_count,
    left: left.messages_count,
  };
}

const info = await mailpit.getInfo();
const settings = await mailpit.getConfiguration();
if (!info.Version || settings.MessageRelay.Enabled) throw new Error("settings");
await mailpit.setChaosTriggers({ Sender: { ErrorCode: 451, Probability: 0 } });
const rows = Promise.all(recipients.map(signUp));
console.log("waiting");
const found = await rows;
const sent = await mailpit.sendMessage({
  From: { Email: "me@example.com" },
  To: [{ Email: "you@example.com" }],
  Subject: "sent",
  Tags: ["new"],
});
const tagsOf = async () => (await mailpit.getMessageSummary(sent.ID)).Tags.join();
if ((await tagsOf()) !== "new") throw new Error(await tagsOf());
await mailpit.renameTag("new", "newer");
await mailpit.setTags({ IDs: [sent.ID], Tags: ["newer", "shop"] });
await mailpit.deleteTag("shop");
if ((await tagsOf()) !== "newer") throw new Error(await tagsOf());
await mailpit.setTags({ IDs: [sent.ID] });
if ((await tagsOf()) !== "") throw new Error(await tagsOf());
const refused = await mailpit.releaseMessage(sent.ID, { To: ["a@example.com"] }).catch((e) => e.message);
if (!refused.includes("sends no captured mail")) throw new Error(refused);
await mailpit.deleteMessagesBySearch({ query: "subject:sent" });
console.log(JSON.stringify(found));
