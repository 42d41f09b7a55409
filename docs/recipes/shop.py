"""A small shop that sends mail: the program under test of the recipes beside it.

    SMTP_PORT=2525 flask --app shop run

It does not depend on mailcheck. It sends its mail to SMTP_HOST and SMTP_PORT.
"""

import os
import secrets
import smtplib
from email.message import EmailMessage
from html import escape

from flask import Flask, abort, request, url_for

app = Flask(__name__)
codes: dict[str, str] = {}  # codes of unconfirmed customers by address
tokens: dict[str, str] = {}  # addresses by token
customers: set[str] = set()

FORM = """
<!doctype html><title>Shop</title>
<form method="post" action="/sign-up">
  <label>Email <input name="email" type="email" required></label>
  <button>Sign up</button>
</form>
<form method="post" action="/order">
  <label>Order for <input name="email" type="email" required></label>
  <button>Order</button>
</form>
<form method="post" action="/reset">
  <label>Account <input name="email" type="email" required></label>
  <button>Forgot password</button>
</form>
"""

CODE_FORM = """
<!doctype html><title>Check your mail</title>
<p>We have sent you a mail.</p>
<form method="post" action="/code">
  <input type="hidden" name="email" value="{email}">
  <label>Code <input name="code" inputmode="numeric"></label>
  <button>Confirm</button>
</form>
<form method="post" action="/sign-up">
  <input type="hidden" name="email" value="{email}">
  <button>Send it again</button>
</form>
"""


def send(email: str, subject: str, text: str, html: str = "", invoice: str = "", **fields: str):
    """Send a mail; ``fields`` are further header fields, with _ for -."""
    mail = EmailMessage()
    mail["From"] = "Shop <shop@example.com>"
    mail["To"] = email
    mail["Subject"] = subject
    for name, value in fields.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html")
    if invoice:
        mail.add_attachment(invoice, filename="invoice.txt")
    host, port = os.environ.get("SMTP_HOST", "127.0.0.1"), int(os.environ.get("SMTP_PORT", "2525"))
    with smtplib.SMTP(host, port, timeout=30) as smtp:
        smtp.send_message(mail)


@app.get("/")
def home():
    return FORM


@app.post("/sign-up")
def sign_up():
    """Send a code and a link, and revoke earlier ones."""
    email = request.form["email"]
    for token in [token for token, owner in tokens.items() if owner == email]:
        del tokens[token]
    token = secrets.token_urlsafe(16)
    code = codes[email] = f"{secrets.randbelow(900_000) + 100_000}"
    tokens[token] = email
    link = url_for("confirm", token=token, _external=True)
    send(
        email,
        "Confirm your address",
        f"Your verification code is {code}\n\nOr confirm your address here: {link}\n",
        f"<p>Your verification code is</p><h1>{code}</h1>"
        f'<p><a href="{link}">Confirm your address</a></p>',
    )
    return CODE_FORM.format(email=escape(email))


@app.post("/code")
def code():
    email = request.form["email"]
    if not secrets.compare_digest(codes.get(email, ""), request.form["code"]):
        abort(400, "This is not the code of the newest mail.")
    return welcome(email)


@app.get("/confirm")
def confirm():
    email = tokens.get(request.args["token"])
    if email is None:
        abort(400, "This link is no longer valid.")
    return welcome(email)


def welcome(email: str) -> str:
    customers.add(email)
    codes.pop(email, None)
    return f"<!doctype html><title>Welcome</title><h1>Welcome, {escape(email)}</h1>"


@app.post("/reset")
def reset():
    """Send a mail to customers only; the answer is the same for others."""
    email = request.form["email"]
    if email in customers:
        token = secrets.token_urlsafe(16)
        tokens[token] = email
        link = url_for("confirm", token=token, _external=True)
        send(email, "Reset your password", f"Choose a new password here: {link}\n")
    return "<p>If there is an account, we have sent a mail.</p>"


@app.post("/order")
def order():
    """Send two mails: a confirmation with an invoice, and a notice of shipment."""
    email = request.form["email"]
    number = secrets.randbelow(90_000) + 10_000
    send(email, f"Your order {number}", "Thank you.\n", invoice=f"Order {number}: 12.50 EUR\n")
    send(email, f"Order {number} is on its way", "It arrives tomorrow.\n", X_Order=str(number))
    return f"<p>Order {number}</p>"
