"""Starts the image that is named, sends it a mail, and prints what it lists."""

import smtplib
import ssl
import sys
from urllib.request import urlopen

from testcontainers.community.mailpit import MailpitContainer

MAIL = b"Subject: Welcome\r\n\r\nYour code is 482913\r\n"

# The key is the container's own, which it signs itself.
anyone = ssl.create_default_context()
anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE

with MailpitContainer(image=sys.argv[1]) as mailpit:
    host, port = mailpit.get_container_host_ip(), mailpit.get_exposed_smtp_port()
    with smtplib.SMTP(host, port, timeout=60) as smtp:
        smtp.starttls(context=anyone)
        smtp.login("any", "password")
        smtp.sendmail("shop@example.com", ["ann@example.com"], MAIL)
    with urlopen(f"{mailpit.get_base_api_url()}/api/v1/messages") as answer:
        print(answer.read().decode())
