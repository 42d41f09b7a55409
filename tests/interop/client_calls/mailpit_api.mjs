// Does each call of mailpit-api, and compares what it returns with the documentation of Mailpit.

import { aside, assert, call, finish, refused, require, send } from "./calls.mjs";

const { MailpitClient } = require("mailpit-api");
const mailpit = new MailpitClient(process.env.RECORDER);
const PNG = Buffer.from("89504e470d0a1a0a0000000d4948445200000001000000010802000000", "hex").toString("base64");

const fields = (value, ...names) => assert.deepEqual(Object.keys(value).sort(), names.sort());
const kinds = (value, kind, ...names) => names.forEach((name) => assert.equal(typeof value[name], kind, name));

await aside(() => mailpit.deleteMessages());
await send("ann+shop@customer.example");

const [{ ID }] = (await aside(() => mailpit.listMessages())).messages;
await call("listMessages", async () => {
  const found = await mailpit.listMessages(0, 10);
  fields(found, "total", "unread", "count", "messages_count", "messages_unread", "start", "tags", "messages");
  const [one] = found.messages;
  fields(one, "ID", "MessageID", "Read", "From", "To", "Cc", "Bcc", "ReplyTo", "Subject", "Created", "Username",
    "Tags", "Size", "Attachments", "Snippet");
  assert.deepEqual([found.total, found.unread, found.messages_count, one.Read], [1, 1, 1, false]);
  assert.deepEqual(one.From, { Name: "Shop", Address: "shop@example.com" });
  assert.deepEqual(one.To, [{ Name: "Ann", Address: "ann+shop@customer.example" }]);
  assert.deepEqual(one.Tags, ["shop"]);
});
const message = await aside(() => mailpit.getMessageSummary(ID));
await aside(() => mailpit.setReadStatus());
await call("getMessageSummary", async () => {
  const found = await mailpit.getMessageSummary(ID);
  fields(found, "ID", "MessageID", "From", "To", "Cc", "Bcc", "ReplyTo", "ReturnPath", "Subject", "ListUnsubscribe",
    "Date", "Tags", "Username", "Text", "HTML", "Size", "Inline", "Attachments",
    // An earlier field, which mailpit-api-client needs.
    "Read");
  assert.ok(found.HTML.includes("<b>482913</b>"));
  assert.ok(found.Text.endsWith("token=abc\r\n"));
  const files = [...found.Inline, ...found.Attachments].map((one) => one.FileName);
  assert.deepEqual(files.sort(), ["a.csv", "cat.png"]);
  fields(found.Attachments[0], "PartID", "FileName", "ContentType", "ContentID", "Size", "Checksums");
  fields(found.Attachments[0].Checksums, "MD5", "SHA1", "SHA256");
  assert.deepEqual((await mailpit.getMessageSummary()).ID, ID);
});
await call("getMessageHeaders", async () => {
  const found = await mailpit.getMessageHeaders(ID);
  assert.deepEqual(found.Subject, ["Welcome"]);
  assert.deepEqual(found["Mime-Version"], ["1.0"]);
});
await call("getMessageAttachment", async () => {
  const file = message.Attachments.find((one) => one.FileName === "a.csv");
  const blob = await mailpit.getMessageAttachment(ID, file.PartID);
  assert.equal(await blob.text(), "one,two");
  assert.ok(blob.type.startsWith("text/csv"));
});
await call("getAttachmentThumbnail", async () => {
  const picture = [...message.Inline, ...message.Attachments].find((one) => one.FileName === "cat.png");
  assert.ok((await mailpit.getAttachmentThumbnail(ID, picture.PartID)).type.startsWith("image/"));
});
await call("getMessageSource", async () => {
  const source = await mailpit.getMessageSource(ID);
  assert.match(source, /^Subject: Welcome\r$/m);
});
await call("renderMessageHTML", async () => {
  assert.match(await mailpit.renderMessageHTML(ID), /<b>482913<\/b>/);
});
await call("renderMessageText", async () => {
  assert.equal(await mailpit.renderMessageText(ID), message.Text);
});
await call("searchMessages", async () => {
  const found = await mailpit.searchMessages({ query: "subject:welcome", start: 0, limit: 5, tz: "Europe/Vienna" });
  assert.deepEqual([found.messages_count, found.messages[0].ID, found.messages_unread], [1, ID, 0]);
});
await call("waitForMessage", async () => {
  assert.equal((await mailpit.waitForMessage({ query: 'to:"ann+shop@customer.example"' })).ID, ID);
});
await call("waitForMessages", async () => {
  assert.equal((await mailpit.waitForMessages({ count: 1 }, { timeout: 5000 })).messages[0].ID, ID);
  await assert.rejects(mailpit.waitForMessages({ query: "subject:none" }, { timeout: 300, interval: 100 }));
});
await call("setReadStatus", async () => {
  assert.equal(await mailpit.setReadStatus({ IDs: [ID], Read: false }), "ok");
  assert.equal((await mailpit.listMessages()).unread, 1);
  assert.equal(await mailpit.setReadStatus({ Search: "subject:welcome", Read: true }, { tz: "UTC" }), "ok");
  assert.equal((await mailpit.listMessages()).unread, 0);
  assert.equal(await mailpit.setReadStatus(), "ok");
  assert.equal((await mailpit.listMessages()).unread, 1);
});
await call("setTags", async () => {
  assert.equal(await mailpit.setTags({ IDs: [ID], Tags: ["one", "two words"] }), "ok");
  assert.deepEqual((await mailpit.getMessageSummary(ID)).Tags, ["one", "shop", "two words"]);
});
await call("getTags", async () => {
  assert.deepEqual(await mailpit.getTags(), ["one", "shop", "two words"]);
});
await call("renameTag", async () => {
  assert.equal(await mailpit.renameTag("two words", "three"), "ok");
  assert.deepEqual(await mailpit.getTags(), ["one", "shop", "three"]);
});
await call("deleteTag", async () => {
  assert.equal(await mailpit.deleteTag("three"), "ok");
  assert.deepEqual(await mailpit.getTags(), ["one", "shop"]);
});
await call("getInfo", async () => {
  const info = await mailpit.getInfo();
  fields(info, "Version", "LatestVersion", "Database", "DatabaseSize", "Messages", "Unread", "Tags", "RuntimeStats");
  const numbers = ["Uptime", "Memory", "MessagesDeleted", "SMTPAccepted", "SMTPAcceptedSize", "SMTPRejected", "SMTPIgnored"];
  fields(info.RuntimeStats, ...numbers);
  kinds(info.RuntimeStats, "number", ...numbers);
  assert.deepEqual([info.Messages, info.Tags.shop], [1, 1]);
});
await call("getConfiguration", async () => {
  const found = await mailpit.getConfiguration();
  fields(found, "Label", "MessageRelay", "SpamAssassin", "ChaosEnabled", "DuplicatesIgnored", "HideDeleteAllButton");
  fields(found.MessageRelay, "Enabled", "SMTPServer", "ReturnPath", "AllowedRecipients", "BlockedRecipients",
    "OverrideFrom", "PreserveMessageIDs", "RecipientAllowlist");
});
await call("htmlCheck", async () => {
  const found = await mailpit.htmlCheck(ID);
  fields(found, "Total", "Warnings", "Platforms");
  kinds(found.Total, "number", "Tests", "Nodes", "Supported", "Partial", "Unsupported");
});
await call("linkCheck", async () => {
  const found = await mailpit.linkCheck(ID, false);
  assert.ok(found.Links.some((one) => one.URL === "https://shop.example/verify?token=abc"));
  fields(found.Links[0], "URL", "StatusCode", "Status");
  assert.equal(found.Errors, found.Links.filter((one) => one.StatusCode >= 400 || !one.StatusCode).length);
});
await call("spamAssassinCheck", async () => {
  fields(await mailpit.spamAssassinCheck(ID), "Error", "IsSpam", "Rules", "Score");
});
await call("sendMessage", async () => {
  const { ID: sent } = await mailpit.sendMessage({
    From: { Email: "sender@example.test", Name: "Sender Name" },
    To: [{ Email: "recipient@example.test", Name: "Recipient Name" }],
    Cc: [{ Email: "cc@example.test", Name: "Carbon Name" }],
    Bcc: ["bcc@example.test"],
    ReplyTo: [{ Email: "answer@example.test", Name: "Answer" }],
    Subject: "Test Email with Attachment",
    Text: "This is a test email with an attachment.",
    HTML: '<p>Mailpit is <b>awesome</b>!</p><img src="cid:pixel">',
    Headers: { "List-Unsubscribe": "<mailto:unsubscribe@example.test>, <https://example.test/unsubscribe>" },
    Tags: ["sent"],
    Attachments: [{ Content: PNG, Filename: "test.png" }, { Content: PNG, Filename: "in.png", ContentID: "pixel" }],
  });
  const found = await mailpit.getMessageSummary(sent);
  assert.deepEqual(found.To, [{ Name: "Recipient Name", Address: "recipient@example.test" }]);
  assert.deepEqual(found.Bcc, [{ Name: "", Address: "bcc@example.test" }]);
  assert.deepEqual(found.ListUnsubscribe.Links, ["mailto:unsubscribe@example.test", "https://example.test/unsubscribe"]);
  assert.deepEqual(found.Tags, ["sent"]);
  assert.deepEqual(found.Attachments.map((one) => [one.FileName, one.ContentType]), [["test.png", "image/png"]]);
  assert.deepEqual(found.Inline.map((one) => [one.FileName, one.ContentID]), [["in.png", "pixel"]]);
  assert.equal(found.ReturnPath, "sender@example.test");
});
await call("getChaosTriggers", async () => {
  const found = await mailpit.getChaosTriggers();
  fields(found, "Authentication", "Recipient", "Sender");
  fields(found.Sender, "ErrorCode", "Probability");
});
await call("setChaosTriggers", async () => {
  const found = await mailpit.setChaosTriggers({ Sender: { ErrorCode: 452, Probability: 3 } });
  assert.deepEqual([found.Sender, found.Recipient.Probability], [{ ErrorCode: 452, Probability: 3 }, 0]);
  assert.equal((await mailpit.setChaosTriggers()).Sender.Probability, 0);
});
await refused("releaseMessage", "mailcheck sends no captured mail to the outside",
  () => mailpit.releaseMessage(ID, { To: ["a@example.com"] }));
await call("deleteMessagesBySearch", async () => {
  assert.equal(await mailpit.deleteMessagesBySearch({ query: "subject:attachment" }), "ok");
  assert.equal((await mailpit.listMessages()).total, 1);
});
await call("deleteMessages", async () => {
  assert.equal(await mailpit.deleteMessages({ IDs: [ID] }), "ok");
  assert.equal((await mailpit.listMessages()).total, 0);
  await mailpit.deleteMessages();
});

const own = Object.getOwnPropertyNames(MailpitClient.prototype);
finish(own.filter((name) => !["constructor", "request"].includes(name)));
