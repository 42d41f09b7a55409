// Verifies a message of SNS, which it reads from stdin, with sns-validator, and prints the result.
// The certificate is at http and at a host of the test. The library accepts https only.
const http = require("http");
const https = require("https");
const path = require("path");

https.get = (url, done) => http.get(url.replace("https:", "http:"), done);
const MessageValidator = require(path.join(process.env.RECEIVERS, "node_modules", "sns-validator"));

let text = "";
process.stdin.on("data", (piece) => (text += piece));
process.stdin.on("end", () => {
    const message = JSON.parse(text);
    message.SigningCertURL = message.SigningCertURL.replace("http:", "https:");
    const validator = new MessageValidator(/^127\.0\.0\.1:\d+$/);
    validator.validate(message, (error) => console.log(error ? error.message : "valid"));
});
