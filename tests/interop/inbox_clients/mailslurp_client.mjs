// Uses the inbox as tests with MailSlurp's client for JavaScript do. Usage: node mailslurp_client.mjs COUNT.
// It prints the same as mailosaur_client.py.
import { createRequire } from "node:module";

const load = createRequire(`${process.env.CLIENTS}/package.json`);
const { MailSlurp } = load("mailslurp-client");
const client = new MailSlurp({
  apiKey: process.env.MAILCHECK_API_KEY, basePath: `${process.env.MAILCHECK_URL}/mailslurp`,
});

async function signUp() {
  const inbox = await client.createInbox();
  console.log(inbox.emailAddress);
  const began = Date.now();
  const message = await client.waitForLatestEmail(inbox.id, 30_000, true);
  const waited = (Date.now() - began) / 1000;
  const emailId = message.id;
  const codes = await client.emailController.getEmailCodes({ emailId });
  const links = await client.emailController.getEmailLinks({ emailId });
  const files = await client.emailController.getEmailAttachments({ emailId });
  const attachmentId = files.find((one) => one.name === "a.csv").id;
  const file = await client.emailController.downloadAttachmentBase64({ emailId, attachmentId });
  const found = await client.waitForMatchingEmails(
    { matches: [{ field: "SUBJECT", should: "CONTAIN", value: "welcome" }] }, 1, inbox.id, 1000, false);
  const refused = await client.inboxController.sendEmail(
    { inboxId: inbox.id, sendEmailOptions: { to: ["a@example.com"], body: "x" } }).then(
    () => "", (error) => error.text());
  await client.deleteEmail(emailId);
  const left = await client.inboxController.getInboxEmailCount({ inboxId: inbox.id });
  return {
    waited, code: codes.code, link: links.links[0], file: atob(file.base64FileContents),
    found: found.map((one) => one.subject), refused, left: left.totalElements,
  };
}

const count = Number(process.argv[2]);
console.log(JSON.stringify(await Promise.all([...Array(count).keys()].map(signUp))));
