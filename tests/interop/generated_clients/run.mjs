// Send the mail that sign_up.ts waits for.
import nodemailer from "nodemailer";
import { signUp } from "./sign_up.js";

const { SMTP_HOST: host, SMTP_PORT: port, MAIL: raw } = process.env;
const transport = nodemailer.createTransport({ host, port, ignoreTLS: true });
const send = (to) => transport.sendMail({ envelope: { from: "shop@example.com", to }, raw });
console.log(await signUp(send));
