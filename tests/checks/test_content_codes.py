"""Tests for one-time codes."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.derive import derive_content
from mailcheck.core.content import Candidate, CandidateKind
from tests.table import rows


def _codes(text: str, subject: str = "Hello", kind: str = "plain") -> tuple[str, ...]:
    head = f"Subject: {subject}\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n"
    return derive_content((head + text).encode()).codes


def _candidates(text: str) -> dict[str, Candidate]:
    content = derive_content(b"Content-Type: text/plain; charset=utf-8\r\n\r\n" + text.encode())
    return {c.value: c for c in content.candidates if c.kind is CandidateKind.CODE}


@rows(
    ("4821", "4821"),
    ("0007", "0007"),
    ("000000", "000000"),
    ("48213071", "48213071"),
    ("482 130", "482130"),
    ("482-130", "482130"),
    ("4821 3071", "48213071"),
    ("12 34 56", "123456"),
    ("4 8 2 1 3 0", "482130"),
    ("1234-567890", "1234567890"),
    ("123 456 789", "123456789"),
    ("G-482130", "482130"),
    ("FB-48213", "48213"),
    ("DBS-482130", "482130"),
    ("G-1A2B3", "1A2B3"),
    ("ABCD-1234", "ABCD-1234"),
    ("A1B-2C3", "A1B-2C3"),
    ("A1B2C3", "A1B2C3"),
    ("jh7112", "jh7112"),
    ("xn7-p2q-88d", "xn7-p2q-88d"),
    ("K 4 T 9 2", "K4T92"),
    ("４８２１３０", "482130"),
    ("482\u00a0130", "482130"),
    ("482\u2011130", "482130"),
    ("482\u200b130", "482130"),
    ("٤٨٢١٣٠", "482130"),
    ("**482130**", "482130"),
    ("'482130'", "482130"),
    ("[482130]", "482130"),
    ("#482130", "482130"),
    ("482130.", "482130"),
    ("2031", "2031"),
)
def test_a_code_comes_back_as_one_types_it(written: str, code: str) -> None:
    """Blanks and hyphens between digits are removed, groups of letters keep them."""
    for text in (
        f"Your verification code is {written}",
        f"Verification code: {written}\n\nIt expires in 10 minutes.",
        f"Your verification code:\n\n{written}\n\nOrder 771820 of 2026-05-06",
    ):
        assert _codes(text) == (code,)


@rows(
    "Your order 482130 has shipped. Total $4821.30, 2 x 4821 EUR, 482130 points.",
    "Copyright 2019-2026. All rights reserved since 1998.",
    "Call +1 415 555 0148, (415) 555-0148 or 0800 482 1307 for a code.",
    "Never share your code. Paid by card ending in 4821, ****4821, •••• 4821.",
    "Codes are never sent to https://example.com/482130/?code=482130 or 482130@example.com.",
    "Version 4821.30, build 482130, 10.48.21.30, 2001:db8::4821, 48:21:30, 4821-03-07.",
    "Use code SAVE4821 at checkout for 20% off.",
    "Your promo code is 482130.",
    "Zip code 48213, area code 4821, error code 4821, QR code 482130, country code 4821.",
    "The code is #4A8213 on the color wheel: a color code.",
    "Booking code: QX7K2M. Flight LH 4821 departs at 10:30.",
    "We sent a code. On a scale from 1 2 3 4 5 6 7 8 9 10, how was it?",
    "10115 Berlin, Springfield, IL 62704. Your code is in the app.",
    # An unknown word without an owner makes a code another kind.
    "Date code: 2604418",
    "the lot code: 2604418",
    "The code agence : 482130",
    "店舗コード：482130",
    "Code: WELCOME",
    "Kode pos 48291",
    # Units, words in capitals, masked numbers and other numbers give no code.
    "Your order code: iOS17",
    "Your verification code works for 10Min after Step2",
    "Your code is in the app for iPhone15 and 5GHz",
    "Verification code\n\nVIEW\n",
    "Kod weryfikacyjny\n\nUWAGA\n\nNie udostępniaj go.",
    "Dein Code\n\nHINWEIS\n\nDer Code ist 10 Minuten gültig.",
    "Código de verificación\n\nAVISO\n\nNo lo comparta.",
    "Votre code de vérification\n\nBONJOUR\n",
    "Codice di verifica\n\nGRAZIE\n",
    "IMPORTANT\n\nYour security code settings have changed.",
    "Your password is about to expire. Reference 482913.",
    "Your password is your date of birth: see page 4829.",
    "Account XX4829: never share your OTP.",
    "Card ####4829: the code is never asked.",
    "A code was sent to (**) *****-4829.",
    "订单482913的验证码已发送",
    "482913元优惠码",
    "Vash nomer zakaza 482913",
    "Vash promokod 482913",
    "מספר ההזמנה שלך הוא 482913",
    "Invoice no. B-48291. Your code follows.",
)
def test_other_numbers_are_no_codes(text: str) -> None:
    """Years, prices, phones, cards, units, names and numbers of other kinds are no codes."""
    assert _codes(text) == ()


def test_a_mail_without_words_for_codes_has_no_code() -> None:
    """A number alone on its line is not enough."""
    assert _codes("Hello,\n\n482130\n\nBye") == ()
    assert _codes("Hello,\n\n482130\n\nBye", subject="Your sign-in code") == ("482130",)


BRANDS = """Telegram|Ticketmaster|Booking.com|T-Mobile|Notifications|Pinterest|Codecademy|LINE
Box|Ring|Track|Cardmarket|Orderly|Indeed|Callrail|Invoice Ninja|Text Now|Total Wine|acme|foo-app"""


@rows(
    "482130 is your {} login code.",
    "482130 is your {} code",
    "{}: 482130 is your verification code. Never share it.",
    "{}: 482130 is your security code",
    "Your {} code is 482130",
    "Your {} verification code: 482130",
    "Use 482130 to log in to {}.",
    "[{}] 482130 is your code",
)
def test_a_sender_may_be_called_like_another_number(sentence: str) -> None:
    """A code is found despite brands like labels and names in lower case."""
    for brand in BRANDS.replace("\n", "|").split("|"):
        assert _codes(sentence.format(brand)) == ("482130",), brand


@rows(
    ("Your acme code: 482913", "482913"),
    ("Your staging code 482913", "482913"),
    ("Uw inlog code: 482913", "482913"),
    ("Votre code adidas : 482913", "482913"),
    ("Dein adidas Code: 482913", "482913"),
    ("verification code: QGFDAE", "QGFDAE"),
    ("Enter the code WDJB-MJHT", "WDJB-MJHT"),
    ("Your code is W5N8", "W5N8"),
    ("Verification code: QWHZKTRVB", "QWHZKTRVB"),
    ("Use 003407 as your password", "003407"),
    ("VerifyCode:482913", "482913"),
    ("OTP密碼482913", "482913"),
    ("パスワード：482913", "482913"),
    ("Operacja nr 3, hasło do autoryzacji to: 48291304", "48291304"),
    ("Verify your email, or manually enter: 482913", "482913"),
    ("رمز التحقق الخاص بك هو: ٤٨٢٩١٣", "482913"),
    ("आपका ओटीपी ४८२९१३ है।", "482913"),
    ("รหัส OTP ของคุณคือ 482913 (Ref: AB4K)", "482913"),
    # The whole code is found, and no other part of the mail.
    # Mixed case under six characters that the mail calls a code.
    ("・認証コード：vM8xw\n\n有効期限：10分", "vM8xw"),
    ("Your code: x7Kp", "x7Kp"),
    # Four letters on their own line after the label.
    ("Verification code:\n\nQXZT\n\nIt expires soon.", "QXZT"),
    # Words for the purpose between the number and the word for the code.
    ("【哔哩哔哩】482913短信登录验证码，5分钟内有效", "482913"),
    ("482913登录验证码，请勿泄露", "482913"),
    ("482913手机快捷注册验证码", "482913"),
    ("482913 登錄驗證碼", "482913"),
    ("482913（重置密码验证码）", "482913"),
    # Passwords for one sign-in.
    ("Your password is Tx9kLm2q. Please change it.", "Tx9kLm2q"),
    ("Votre mot de passe est 482913", "482913"),
    ("Ваш пароль: 482913", "482913"),
    # Hebrew, and Russian in Latin letters.
    ("482913 הוא קוד האימות שלך", "482913"),
    ("להשלמת ההרשמה יש להקליד 482913", "482913"),
    ("הסיסמה שלך היא 482913", "482913"),
    ("Vash kod podtverzhdeniya: 482913", "482913"),
    ("Kod podtverzhdeniya 482913. Nikomu ego ne soobschayte", "482913"),
    ("Odnorazovyy parol 482913", "482913"),
    # A letter before digits belongs to them, unless it only names the sender.
    ("Your verification code is A-12345", "A-12345"),
    ("G-482913 is your verification code", "482913"),
    # A word after the digits because of a lost line break.
    ("If that was you, enter this code:268423If you were not, reset it.", "268423"),
    ("Your code is 482913This code expires in 10 minutes", "482913"),
    # Masked numbers beside the code.
    ("Dear Customer, 118273 is your OTP for a/c XX4829", "118273"),
    ("Code for account **4829: 118273", "118273"),
    ("您尾号4829的储蓄卡，验证码118273", "118273"),
    # Words in capitals beside the code.
    ("Código de verificação\n\n482913\n\nPRIVACIDADE", "482913"),
)
def test_codes_in_the_words_of_senders(text: str, code: str) -> None:
    """Codes are found without a brand, with words for passwords, in letters and other scripts."""
    assert _codes(text) == (code,)


@rows(
    "<style>.code{color:#482130;width:482130px}</style>{x}",
    '<p style="color:#482130" data-code="482130" title="code 482130">{x}</p>',
    "<!-- your code is 482130 -->{x}",
    "<script>code = 482130</script>{x}",
    '<div style="display:none">Your code is 482130</div>{x}',
    '<img alt="Your code is 482130" src="https://example.com/482130.png">{x}',
    '<a href="https://example.com/?code=482130">{x}</a>',
    "<title>Your code is 482130</title>{x}",
    "<p>Your code is &copy;<!--482130--></p>{x}",
)
def test_nothing_is_read_from_markup(markup: str) -> None:
    """Styles, attributes, comments, scripts, hidden text and URLs contain no codes."""
    assert _codes(markup.replace("{x}", "Your code"), kind="html") == ()


@rows(
    "<table><tr><td>4</td><td>8</td><td>2</td><td>1</td><td>3</td><td>0</td></tr></table>",
    "<table><tr><td>482</td><td>130</td></tr></table>",
    "<span>4</span><span>8</span><span>2</span><span>1</span><span>3</span><span>0</span>",
    "<div><p>4</p><p>8</p><p>2</p><p>1</p><p>3</p><p>0</p></div>",
    "<td><table><tr><td>4</td></tr></table></td>"
    + "".join(f"<td><table><tr><td>{digit}</td></tr></table></td>" for digit in "82130"),
    "<b>48<i>21</i>30</b>",
    "<code>482130</code>",
)
def test_digits_spread_over_elements_are_one_code(markup: str) -> None:
    """One digit in each cell, span or block makes one code."""
    assert _codes(f"<p>Your code is:</p>{markup}<p>Thanks</p>", kind="html") == ("482130",)


@rows(
    ("@example.com #482130", "482130"),
    ("@example.com #482130 @frame.example", "482130"),
    ("@example.com #a-B_9 trailing text", "a-B_9"),
    ("@sub.example.com #0", "0"),
)
def test_a_code_bound_to_a_domain_comes_first(last_line: str, code: str) -> None:
    """The domain-bound format of browsers comes before all others."""
    assert _codes(f"Your code is 771820.\n\n{last_line}\n\n")[0] == code


@rows("@example.com  #482130", " @example.com #482130", "@example.com 482130", "x @a.b #482130")
def test_a_line_that_breaks_the_format_is_not_bound(last_line: str) -> None:
    """There is exactly one blank between host and code, and no text before the host."""
    found = _candidates(f"Hello\n{last_line}")
    assert all("bound to a domain" not in r for c in found.values() for r in c.reasons)


def test_codes_are_ranked_and_at_most_five() -> None:
    """Several codes of one mail come best first, each once."""
    text = "Your recovery codes:\n" + "\n".join(f"KR4T-22Q{n}" for n in range(8))
    codes = _codes(text + "\nKR4T-22Q0")
    assert len(codes) == len(set(codes)) == 5


def test_every_number_is_explained() -> None:
    """Rejected candidates are included, and their reasons add up to the score."""
    found = _candidates("Your code is 482130. Order #771820 of 2026. Call 555 123 4567.")
    assert found["482130"].is_accepted
    assert not found["771820"].is_accepted
    assert any("labelled as something else" in reason for reason in found["771820"].reasons)
    for candidate in found.values():
        points = [int(reason.split(" ")[0]) for reason in candidate.reasons]
        assert candidate.score == sum(points)
        assert candidate.is_accepted == (candidate.score >= 4)


@rows(
    ("10115 Berlin, where your code is", "10115", "postcode"),
    ("Springfield, IL 62704 and a code", "62704", "postcode"),
    ("The code went to ••••4821", "4821", "masked"),
    ("The code costs $4821", "4821", "amount"),
    ("The code has 4821 points", "4821", "amount"),
    ("A code: it was May 4821", "4821", "date"),
    ("Codes since 2019", "2019", "date"),
    ("1 2 3 4 5: please rate the code", "12345", "counts up"),
    ("Acme Ltd, unit 4821, registered in England. Code", "4821", "fine print"),
    ("The code and 4821 55 9", "4821", "row of numbers"),
    ("The code and 482 130 555 12", "482", ""),
    ("A code, #4A82F3", "4A82F3", "colour"),
    ("The code, see no. 48213", "48213", "number sign"),
    ("The code agence : 482130", "482130", "another kind of code"),
    ("Here is a code WORDS too", "WORDS", "word of its sentence"),
    ("Join the meeting.\nMeeting ID: 1\nPasscode: 482130", "482130", "meeting"),
    ("Your flight, code 482130", "482130", "meeting"),
    ("482130 is your order number", "482130", "labelled"),
    ("482130 numaralı siparişiniz", "482130", "labelled"),
    ("The code file 482130.txt", "482130", "longer number"),
    ("The code +482130", "482130", "longer number"),
    ("Employee code: 482130", "482130", "labelled"),
    ("No codes, but 4821307712 too", "4821307712", "rarely have"),
    ("Codes of terminal W5N8", "W5N8", "rarely have"),
    ("Use code SAVE20 today", "SAVE20", "looks like a coupon"),
)
def test_each_objection_is_named(text: str, value: str, reason: str) -> None:
    """The reasons name each objection, and the number is rejected."""
    found = _candidates(text).get(value)
    if not reason:
        assert found is None
        return
    assert found is not None
    assert any(reason in given for given in found.reasons), found.reasons
    if reason not in ("number sign", "row of numbers"):
        assert not found.is_accepted


@rows(
    ("Your code is 482130", "482130", "is called a code"),
    ("Enter 482130 to sign in", "482130", "is to be typed"),
    ("Here comes your code. Enter 482130 now", "482130", "request to type it"),
    ("482130 Acme doğrulama kodunuzdur", "482130", "begins a sentence"),
    ("Your code\n\n482130", "482130", "alone on its line"),
    ("User\tCode\nabee\t482130", "482130", "column of codes"),
    ("Your code is 4 8 2 1", "4821", "gaps between its characters"),
    ("Your code is 482 130", "482130", "in groups"),
    ("ሰላም፣\n\n482130", "482130", "only separate number"),
    ("Your code: QGFDAE", "QGFDAE", "spell no word"),
)
def test_each_evidence_is_named(text: str, value: str, reason: str) -> None:
    """The reasons name each piece of evidence, and the code is accepted."""
    found = _candidates(text)[value]
    assert any(reason in given for given in found.reasons), found.reasons
    assert found.is_accepted


def test_text_html_and_subject_are_all_read() -> None:
    """A code is found in text, HTML and subject, and returned once."""
    raw = (
        "Subject: 482130 is your code\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
        "--b\r\n\r\nOpen this mail in a browser.\r\n"
        "--b\r\nContent-Type: text/html\r\n\r\n<p>Your code: <b>482 130</b></p>\r\n--b--"
    )
    assert derive_content(raw.encode()).codes == ("482130",)


def test_what_a_shop_calls_a_promotion_elsewhere_is_no_code() -> None:
    """If one place calls a value something else, it needs more evidence elsewhere."""
    text = f"Your code is HELLO2.\n\n{'And so on. ' * 20}\n\nUse discount code HELLO2."
    assert _codes(text) == ()


_LABELS = ["order", "invoice", "ticket", "tracking number", "customer number", "promo code"]


@given(
    st.sampled_from(_LABELS),
    st.integers(0, 99_999_999).map(str).filter(lambda n: len(n) >= 4),
    st.integers(0, 999_999).map("{:06d}".format),
)
def test_a_labelled_number_never_outranks_the_code(label: str, number: str, code: str) -> None:
    """A number that is called a code ranks before labelled numbers."""
    text = f"Your {label} {number} is on hold.\n\nYour verification code is {code}."
    expected = () if number == code else (code,)
    assert _codes(text) == expected or number == code


@given(st.text(max_size=200), st.sampled_from(["plain", "html"]))
def test_any_text_is_judged(text: str, kind: str) -> None:
    """The search accepts any text, and a code contains no white space."""
    content = derive_content(
        f"Subject: Your code\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n".encode()
        + text.encode("utf-8", "replace")
    )
    assert all(code and not any(map(str.isspace, code)) for code in content.codes)
