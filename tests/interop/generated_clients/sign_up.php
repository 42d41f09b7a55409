<?php
// Wait for a sign-up mail with the client that openapi-generator generates for PHP.
require "GuzzleHttp/autoload.php";
spl_autoload_register(function ($name) {
    $path = __DIR__ . "/generated/lib/" . str_replace(["OpenAPI\\Client\\", "\\"], ["", "/"], $name) . ".php";
    if (is_file($path)) require $path;
});

$settings = (new OpenAPI\Client\Configuration())
    ->setHost(getenv("MAILCHECK_API"))->setAccessToken(getenv("MAILCHECK_API_KEY"));
$inbox = new OpenAPI\Client\Api\InboxApi(null, $settings);

$address = $inbox->getInboxAddress(tag: "php", unique: true);
$smtp = fsockopen(getenv("SMTP_HOST"), (int) getenv("SMTP_PORT"));
$lines = ["EHLO shop.example.com", "MAIL FROM:<shop@example.com>",
    "RCPT TO:<{$address->getAddress()}>", "DATA", getenv("MAIL") . "\r\n.", "QUIT"];
foreach ($lines as $line) {
    do $reply = fgets($smtp); while ($reply[3] === "-");
    if ($reply[0] > "3") throw new Exception($reply);
    fwrite($smtp, "$line\r\n");
}
stream_get_contents($smtp);
$mail = $inbox->waitForMessage(
    tag: $address->getTag(), after: $address->getCursor(), subject: "Welcome", timeout: 30);
$deleted = $inbox->deleteMessage($mail->getId());
echo $mail->getCodes()[0], " ", $mail->getLinks()[0], " ", $deleted->getSuccess() ? "true" : "false", "\n";
