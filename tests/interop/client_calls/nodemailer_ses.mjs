// Sends mail with the SES transport of Nodemailer, and verifies the account.
import { assert, call, finish, received, require } from "./calls.mjs";

const { SESv2Client, SendEmailCommand } = require("@aws-sdk/client-sesv2");
const credentials = { accessKeyId: process.env.API_KEY, secretAccessKey: process.env.API_KEY };
const endpoint = `${process.env.RECORDER}/providers/ses`;
const sesClient = new SESv2Client({ region: "eu-west-1", credentials, endpoint, maxAttempts: 1 });
const transport = require("nodemailer").createTransport({ SES: { sesClient, SendEmailCommand } });
const to = "one.nodemailer@customer.example";

await call("verify", async () => {
  assert.equal(await transport.verify(), true);
  const query = new URLSearchParams({ to: "invalid@invalid" });
  const headers = { Authorization: `Bearer ${process.env.API_KEY}` };
  const answer = await fetch(`${process.env.RECORDER}/api/v1/inbox/messages?${query}`, { headers });
  assert.deepEqual((await answer.json()).messages, []);
});
await call("sendMail", async () => {
  const icalEvent = { method: "REQUEST", content: "BEGIN:VCALENDAR\r\nEND:VCALENDAR" };
  const info = await transport.sendMail({ from: "shop@example.com", to, subject: "one", text: "one", icalEvent });
  assert.equal((await received(to)).deliveryId, info.response);
});
finish(["verify", "sendMail"]);
