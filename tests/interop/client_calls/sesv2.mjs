// Does the calls of the SDK of Amazon SES, version 2, for Node.js that send mail, and the questions of senders.
import { assert, call, finish, received, refused, require } from "./calls.mjs";

const ses = require("@aws-sdk/client-sesv2");
const credentials = { accessKeyId: process.env.API_KEY, secretAccessKey: process.env.API_KEY };
const endpoint = `${process.env.RECORDER}/providers/ses`;
const client = new ses.SESv2Client({ region: "eu-west-1", credentials, endpoint, maxAttempts: 1 });
const to = (name) => `${name}.ses-node@customer.example`;
const FromEmailAddress = "Shop <shop@example.com>";
const send = (name, input) => client.send(new ses[`${name}Command`](input));

await call("SendEmail (Simple)", async () => {
  const Attachments = [{ FileName: "a.ics", RawContent: Buffer.from("BEGIN"), ContentType: "text/calendar; method=REQUEST" }];
  const Simple = { Subject: { Data: "one" }, Body: { Text: { Data: "one" } }, Attachments };
  const answer = await send("SendEmail", { FromEmailAddress, Destination: { ToAddresses: [to("one")] }, Content: { Simple } });
  assert.equal((await received(to("one"))).deliveryId, answer.MessageId);
  assert.ok(answer.$metadata.requestId);
});
await call("SendEmail (Raw)", async () => {
  const Data = Buffer.from(`From: shop@example.com\r\nTo: ${to("two")}\r\nSubject: two\r\n\r\ntwo\r\n`);
  await send("SendEmail", { Content: { Raw: { Data } } });
  assert.equal((await received(to("two"))).subject, "two");
});
await call("SendBulkEmail", async () => {
  const Template = { TemplateName: "welcome", TemplateData: '{"a": 1}' };
  const BulkEmailEntries = ["three", "four"].map((name) => ({ Destination: { ToAddresses: [to(name)] } }));
  const answer = await send("SendBulkEmail", { FromEmailAddress, DefaultContent: { Template }, BulkEmailEntries });
  assert.deepEqual(answer.BulkEmailEntryResults.map((one) => one.Status), ["SUCCESS", "SUCCESS"]);
  assert.match((await received(to("four"))).text, /welcome/);
});
await call("GetAccount", async () => assert.equal((await send("GetAccount", {})).SendQuota.MaxSendRate, 14));
await call("ListEmailIdentities", async () =>
  assert.equal((await send("ListEmailIdentities", {})).EmailIdentities[0].VerificationStatus, "SUCCESS"),
);
await call("GetEmailIdentity", async () =>
  assert.ok((await send("GetEmailIdentity", { EmailIdentity: "shop@example.com" })).VerifiedForSendingStatus),
);
await call("CreateEmailIdentity", async () =>
  assert.equal((await send("CreateEmailIdentity", { EmailIdentity: "example.com" })).IdentityType, "DOMAIN"),
);
await call("ListConfigurationSets", async () =>
  assert.deepEqual((await send("ListConfigurationSets", {})).ConfigurationSets, []),
);
await call("ListEmailTemplates", async () => assert.deepEqual((await send("ListEmailTemplates", {})).TemplatesMetadata, []));
await call("ListSuppressedDestinations", async () =>
  assert.deepEqual((await send("ListSuppressedDestinations", {})).SuppressedDestinationSummaries, []),
);
await refused("SendCustomVerificationEmail", "is not a path of Amazon SES", () =>
  send("SendCustomVerificationEmail", { EmailAddress: to("five"), TemplateName: "welcome" }),
);
finish(["SendBulkEmail", "SendCustomVerificationEmail"]);
