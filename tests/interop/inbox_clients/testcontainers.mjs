// Starts the image that is named, sends it a mail, and prints what it lists.

import { createRequire } from "node:module";
import nodemailer from "nodemailer";

const require = createRequire(process.env.CLIENTS + "/");
const { GenericContainer, Wait } = require("testcontainers");

const mailpit = await new GenericContainer(process.argv[2])
  .withExposedPorts(1025, 8025)
  .withWaitStrategy(Wait.forHttp("/readyz", 8025))
  .start();
try {
  const host = mailpit.getHost();
  await nodemailer.createTransport({ host, port: mailpit.getMappedPort(1025) }).sendMail({
    from: "shop@example.com",
    to: "ann@example.com",
    subject: "Welcome",
    text: "Your code is 482913",
  });
  const answer = await fetch(`http://${host}:${mailpit.getMappedPort(8025)}/api/v1/messages`);
  console.log(await answer.text());
} finally {
  await mailpit.stop();
}
