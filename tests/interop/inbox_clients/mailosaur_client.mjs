// Uses the inbox as tests with Mailosaur's client for Node.js do. Usage: node mailosaur_client.mjs COUNT.
// It prints the same as mailosaur_client.py.
import { createRequire } from "node:module";

const load = createRequire(`${process.env.CLIENTS}/package.json`);
const MailosaurClient = load("mailosaur");
const client = new MailosaurClient(process.env.MAILCHECK_API_KEY, `${process.env.MAILCHECK_HTTPS_URL}/mailosaur/`);

async function signUp(number) {
  const server = `node${String(number).padStart(4, "0")}`;
  const address = client.servers.generateEmailAddress(server);
  console.log(address);
  const began = Date.now();
  const message = await client.messages.get(server, { sentTo: address, subject: "Welcome" }, { timeout: 30_000 });
  const waited = (Date.now() - began) / 1000;
  const file = message.attachments.find((one) => one.fileName === "a.csv");
  const content = await client.files.getAttachment(file.id);
  const found = await client.messages.search(server, { body: "code is 482913" });
  const refused = await client.messages.forward(message.id, { to: "a@example.com", text: "x" }).then(
    () => "", (error) => error.message);
  await client.messages.del(message.id);
  const left = await client.messages.list(server);
  return {
    waited, code: message.html.codes[0].value, link: message.html.links[0].href, file: content.toString(),
    found: found.items.map((one) => one.subject), refused, left: left.items.length,
  };
}

const count = Number(process.argv[2]);
console.log(JSON.stringify(await Promise.all([...Array(count).keys()].map(signUp))));
