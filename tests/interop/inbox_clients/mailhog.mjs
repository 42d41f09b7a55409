// Waits with the client of MailHog for a mail to each recipient, reads and deletes it, and prints a row for each.

import { createRequire } from "node:module";

const require = createRequire(process.env.CLIENTS + "/");
const [url, ...recipients] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const mailhog = require("mailhog")({ host: hostname, port });

async function latestTo(to) {
  for (;;) {
    const message = await mailhog.latestTo(to);
    if (message) return message;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function partOf(message, type) {
  const nested = message.MIME.Parts.flatMap((one) => [one, ...(one.MIME?.Parts ?? [])]);
  const part = nested.find((one) => one.Headers["Content-Type"][0].startsWith(type));
  return mailhog.decode(part.Body, part.Headers["Content-Transfer-Encoding"][0]);
}

async function signUp(to) {
  const began = performance.now();
  const message = await latestTo(to);
  const waited = (performance.now() - began) / 1000;
  const found = await mailhog.search(to, "to");
  const [attachment] = message.attachments;
  const text = partOf(message, "text/plain");
  const refused = await mailhog.releaseMessage(message.ID, {});
  if (!refused.error.includes("sends no captured mail")) throw new Error(JSON.stringify(refused));
  await mailhog.deleteMessage(message.ID);
  const left = await mailhog.search(to, "to");
  return {
    to,
    waited,
    code: text.match(/\d{6}/)[0],
    link: partOf(message, "text/html").match(/href="([^"]+)"/)[1],
    file: Buffer.from(attachment.Body, "base64").toString("hex"),
    found: found.count,
    left: left.count,
  };
}

const rows = Promise.all(recipients.map(signUp));
console.log("waiting");
console.log(JSON.stringify(await rows));
