// Sends five mails with the Node.js SDK of a provider, and prints what came of each as JSON.
// Usage: node send.mjs SDK, with MAILCHECK_URL and MAILCHECK_API_KEY.
import { createRequire } from "node:module";

// The SDKs are installed elsewhere, in the folder that SDKS names.
const load = createRequire(`${process.env.SDKS}/package.json`);
const sdk = process.argv[2];
const key = process.env.MAILCHECK_API_KEY;
const providers = `${process.env.MAILCHECK_URL}/providers`;
const from = "Shop <shop@example.com>";
const image = Buffer.from("89504e470d0a1a0a", "hex");
const file = Buffer.from("one\r\ntwo\0");
const html = '<p>Your code is <b>482913</b></p><img src="cid:logo">';
const to = (name) => `${name}.node-${sdk}@customer.example`;
const plain = (name) => ({ to: to(name), subject: `Mail ${name}`, text: "Your code is 482913" });
const base64 = (buffer) => buffer.toString("base64");

const sdks = {
  resend() {
    process.env.RESEND_BASE_URL = `${providers}/resend`;
    const { Resend } = load("resend");
    const resend = new Resend(key);
    const checked = async (sent) => {
      const { data, error } = await sent;
      if (error) throw Object.assign(new Error(error.message), { name: error.name, status: error.statusCode });
      return data;
    };
    return {
      send: (mail) => checked(resend.emails.send({ from, ...mail })),
      html: () =>
        checked(resend.emails.send({ from, ...plain("html"), html, replyTo: "help@example.com", attachments: [
          { filename: "a.bin", content: file },
          { filename: "l.png", content: base64(image), contentId: "logo" },
        ] })),
      batch: (mails) => checked(resend.batch.send(mails.map((mail) => ({ from, ...mail })))),
    };
  },
  postmark() {
    const { ServerClient } = load("postmark");
    const requestHost = `${providers.replace("http://", "")}/postmark`;
    const client = new ServerClient(key, { requestHost, useHttps: false });
    const one = (mail) => ({ From: from, To: mail.to, Subject: mail.subject, TextBody: mail.text });
    return {
      send: (mail) => client.sendEmail(one(mail)),
      html: () =>
        client.sendEmail({ ...one(plain("html")), HtmlBody: html, ReplyTo: "help@example.com", Attachments: [
          { Name: "a.bin", Content: base64(file), ContentType: "application/octet-stream" },
          { Name: "l.png", Content: base64(image), ContentType: "image/png", ContentID: "cid:logo" },
        ] }),
      batch: (mails) => client.sendEmailBatch(mails.map(one)),
    };
  },
  sendgrid() {
    const { Client } = load("@sendgrid/client");
    const { MailService } = load("@sendgrid/mail");
    const client = new Client(), mail = new MailService();
    client.setApiKey(key);
    client.setDefaultRequest("baseUrl", `${providers}/sendgrid/`);
    mail.setClient(client);
    return {
      send: (one) => mail.send({ from, ...one }),
      html: () =>
        mail.send({ from, ...plain("html"), html, replyTo: "help@example.com", attachments: [
          { filename: "a.bin", content: base64(file) },
          { filename: "l.png", content: base64(image), type: "image/png", disposition: "inline", content_id: "logo" },
        ] }),
      batch: (mails) => mail.send(mails.map((one) => ({ from, ...one }))),
    };
  },
  mailgun() {
    const Mailgun = load("mailgun.js").default ?? load("mailgun.js");
    const client = new Mailgun(load("form-data")).client({ username: "api", key, url: `${providers}/mailgun` });
    const send = (mail) => client.messages.create("example.com", { from, ...mail });
    return {
      send,
      html: () =>
        send({ ...plain("html"), html: html.replace("logo", "l.png"), "h:Reply-To": "help@example.com",
          attachment: [{ filename: "a.bin", data: file }], inline: [{ filename: "l.png", data: image }] }),
      batch: (mails) =>
        send({ to: mails.map((mail) => mail.to), subject: "Mail %recipient.name%", text: mails[0].text,
          "recipient-variables": JSON.stringify(Object.fromEntries(
            mails.map((mail) => [mail.to, { name: mail.subject.replace("Mail ", "") }]))) }),
    };
  },
  ses() {
    process.env.AWS_ENDPOINT_URL = `${providers}/ses`;
    const { SESv2Client, SendEmailCommand, SendBulkEmailCommand } = load("@aws-sdk/client-sesv2");
    const credentials = { accessKeyId: key, secretAccessKey: key };
    const client = new SESv2Client({ region: "eu-west-1", credentials, maxAttempts: 1 });
    const one = (mail, body, more) => ({
      FromEmailAddress: from,
      Destination: { ToAddresses: [mail.to] },
      Content: { Simple: { Subject: { Data: mail.subject }, Body: { Text: { Data: mail.text }, ...body }, ...more } },
    });
    return {
      send: (mail) => client.send(new SendEmailCommand(one(mail))),
      html: () =>
        client.send(new SendEmailCommand({ ReplyToAddresses: ["help@example.com"],
          ...one(plain("html"), { Html: { Data: html } }, { Attachments: [
            { FileName: "a.bin", RawContent: file },
            { FileName: "l.png", RawContent: image, ContentType: "image/png", ContentDisposition: "INLINE", ContentId: "logo" },
          ] }) })),
      batch: (mails) =>
        client.send(new SendBulkEmailCommand({
          FromEmailAddress: from,
          DefaultContent: { Template: { TemplateContent: { Subject: "Mail", Text: "Your code is 482913" }, TemplateData: "{}" } },
          BulkEmailEntries: mails.map((mail) => ({ Destination: { ToAddresses: [mail.to] } })),
        })),
    };
  },
  brevo() {
    const { BrevoClient } = load("@getbrevo/brevo");
    const client = new BrevoClient({ apiKey: key, baseUrl: `${providers}/brevo/v3`, maxRetries: 0 });
    const sender = { email: "shop@example.com", name: "Shop" };
    const send = (mail) => client.transactionalEmails.sendTransacEmail(mail);
    const one = (mail) => ({ sender, to: [{ email: mail.to }], subject: mail.subject, textContent: mail.text });
    return {
      send: (mail) => send(one(mail)),
      html: () =>
        send({ ...one(plain("html")), htmlContent: html, replyTo: { email: "help@example.com" },
          attachment: [{ name: "a.bin", content: base64(file) }] }),
      batch: (mails) =>
        send({ sender, subject: "Mail", textContent: mails[0].text,
          messageVersions: mails.map((mail) => ({ to: [{ email: mail.to }], subject: mail.subject })) }),
    };
  },
};

const outcome = async (send) => {
  try {
    await send();
    return "sent";
  } catch (error) {
    const status = error.statusCode ?? error.status ?? error.code ?? error.$metadata?.httpStatusCode;
    return { name: error.name, status, said: [error.message, error.details, JSON.stringify(error.response?.body)].join(" ") };
  }
};

const { send, html: sendHtml, batch } = sdks[sdk]();
console.log(JSON.stringify({
  plain: await outcome(() => send(plain("plain"))),
  html: await outcome(sendHtml),
  batch: await outcome(() => batch([plain("first"), plain("second")])),
  invalid: await outcome(() => send({ ...plain("x"), to: "x@-bad.example" })),
  busy: await outcome(() => send({ ...plain("x"), to: "x+fault.quota@customer.example" })),
  down: await outcome(() => send({ ...plain("x"), to: "x+fault.data-451@customer.example" })),
}));
