"""Tests for codes that their sentence names: any format, names with digits, and discounts.

The cases are drawn with a fixed seed from sentences in several languages, as text and as HTML.
"""

import html
from collections.abc import Callable, Iterator
from random import Random

from mailcheck.checks.content.derive import derive_content
from tests.table import rows

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
CHARACTERS = LETTERS + "23456789"
LOWER = CHARACTERS.lower()
DIGITS = "0123456789"


def _codes(text: str, subject: str = "Hello", *, is_page: bool = False) -> tuple[str, ...]:
    kind = "html" if is_page else "plain"
    if is_page:
        text = "<p>" + html.escape(text).replace("\n", "<br>") + "</p>"
    head = f"Subject: {subject}\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n"
    return derive_content((head + text).encode()).codes


def _draw(random: Random, alphabet: str, *lengths: int) -> str:
    """Return groups of characters, among them at least one digit."""
    while True:
        groups = ("".join(random.choices(alphabet, k=length)) for length in lengths)
        code = "-".join(groups)
        if any(map(str.isdigit, code)):
            return code


def test_of_400_codes_of_four_characters_at_most_four_are_missed() -> None:
    """Letters alone are a code too, unless they are one of the words that mails write."""
    random = Random(58)
    codes = ["".join(random.choices(CHARACTERS, k=4)) for _ in range(400)]
    missed = [code for code in codes if _codes(f"Your verification code is {code}") != (code,)]
    assert len(missed) <= 4, missed


NAMING = """Your verification code is {c}
Your verification code is {c}. It expires in 10 minutes.
Your Acme sign-in code: {c}
Your verification code for Acme is {c}
Hi Sam,\\n\\nyour one-time password is {c}\\n\\nThe Acme team
Security code: {c}
Your code is {c}
Ihr Bestätigungscode lautet {c}.
Votre code de vérification est {c}.
Tu código de verificación es {c}
Il tuo codice di verifica è {c}.
Seu código de verificação é {c}
Je verificatiecode is {c}.
Twój kod weryfikacyjny to {c}
Din verifieringskod är {c}.
Ваш код подтверждения: {c}
Vash kod podtverzhdeniya: {c}
Doğrulama kodunuz: {c}
您的验证码是{c}，5分钟内有效。
認証コードは {c} です。
인증번호: {c}
{c} is your verification code
Use {c} as your verification code.""".replace("\\n", "\n").split("\n")


def _naming() -> Iterator[str]:
    sentence = ""
    for line in NAMING:
        sentence = f"{sentence}\n{line}" if sentence else line
        if "{c}" in sentence:
            yield sentence
            sentence = ""


FORMATS: dict[str, Callable[[Random], str]] = {
    "four characters": lambda random: _draw(random, CHARACTERS, 4),
    "a syllable and a digit": lambda random: (
        random.choice("BDFGLNPRT")
        + random.choice("AEIU")
        + random.choice("BDFGLNPRT")
        + random.choice("23456789")
    ),
    "pairs": lambda random: _draw(random, CHARACTERS, 2, 2, 2),
    "two pairs": lambda random: _draw(random, CHARACTERS, 2, 2),
    "five groups": lambda random: _draw(random, CHARACTERS, 5, 5, 5, 5, 5),
    "uneven groups": lambda random: _draw(random, CHARACTERS, 2, 6, 3),
    "twelve characters": lambda random: _draw(random, CHARACTERS, 12),
    "three characters": lambda random: _draw(random, CHARACTERS, 3),
    "twelve digits": lambda random: _draw(random, DIGITS, 12),
    "three digits": lambda random: _draw(random, DIGITS, 3),
    "lower case": lambda random: _draw(random, LOWER, 5) + random.choice(DIGITS),
}


@rows(*FORMATS)
def test_a_code_that_its_sentence_names_is_found_in_any_format(name: str) -> None:
    """A drawn code of each format is found in each sentence, and no other part of the mail is."""
    random = Random(name)
    for sentence in _naming():
        code = FORMATS[name](random)
        text = sentence.replace("{c}", code) + "\n\nRoom B12, 24 people, gate A7-22. Call 4ocean."
        assert _codes(text, is_page=random.random() < 0.5) == (code,), text


@rows(
    ("Your verification code is VtxO", "VtxO"),
    ("Your verification code is K7-9F-2Q", "K7-9F-2Q"),
    ("Your verification code is 12-34", "1234"),
    ("Your temporary login code: plush-tidal-bamboo-fern", "plush-tidal-bamboo-fern"),
    ("Your login code is CEWX, valid today.", "CEWX"),
    ("BEP2 is your login code", "BEP2"),
    ("Use the code CEWX to sign in", "CEWX"),
    ("Enter K7Q2 to sign in", "K7Q2"),
    ("Your OTP is BAFE.", "BAFE"),
)
def test_rarer_formats_of_codes(text: str, code: str) -> None:
    """Mixed case, short groups and drawn words are codes if the sentence names them."""
    assert _codes(text) == (code,)


WORDS = """
below here above ready valid attached enclosed inside invalid expired active void used
sent safe secret private confidential included required waiting correct wrong only still
being about shown printed displayed listed personal temporary unique new permanent
unchanged missing available pending updated blocked good next almost already always
important case-sensitive one-time-use up-to-date
"""
ORDINARY = (
    "Your code is {w}",
    "Your code is {w}.",
    "Your verification code is {w}.",
    "Your verification code is {w} for 10 minutes",
    "Your one-time password is {w}!",
    "Your verification code: {w}",
    "Hello,\n\nyour security code is {w}\n\nThe Acme team",
    "{w} is your verification code",
)
FOREIGN = {
    "Ihr Bestätigungscode ist {w}.": "unten hier ungültig abgelaufen beigefügt neu bereit nicht",
    "Votre code de vérification est {w}.": "ci-dessous valable prêt joint ici expiré secret",
    "Tu código de verificación es {w}": "este válido nuevo personal secreto correcto aquí",
    "Il tuo codice di verifica è {w}": "qui sotto valido scaduto pronto allegato nuovo",
    "Je verificatiecode is {w}": "hieronder geldig verlopen klaar hier nieuw vertrouwelijk",
    "Twój kod weryfikacyjny jest {w}": "gotowy poniżej wygasł nowy tutaj wysłany ważny",
    "Din verifieringskod är {w}": "nedan klar giltig här bifogad ny hemlig",
}


def test_an_ordinary_word_after_code_is_no_code() -> None:
    """400 drawn sentences with a word in lower case, with a capital, or in capitals."""
    random = Random(58)
    for _ in range(400):
        if random.random() < 0.75:
            sentence, word = random.choice(ORDINARY), random.choice(WORDS.split())
        else:
            sentence, words = random.choice([*FOREIGN.items()])
            word = random.choice(words.split())
        word = random.choice((str.lower, str.capitalize, str.upper))(word)
        text = sentence.replace("{w}", word)
        text = text.upper() if random.random() < 0.1 else text
        assert _codes(text, is_page=random.random() < 0.5) == (), text


NAMES = (
    "23andMe 98point6 4ocean 2captcha 7shifts 37signals 99designs 1Password 8x8 Office365 Xbox360 "
    "Web3Auth B2broker"
)


@rows(
    "482913 is your {} verification code",
    "482913 is your {} code",
    "{}: 482913 is your verification code",
    "[{}] Your verification code: 482913",
    "Your {} verification code is 482913",
    "Your verification code for {} is 482913",
    "Your code for {}: 482913",
    "Use 482913 to sign in to {}.",
    "Enter the {} verification code 482913",
    "Your login code is 482913\n\n{}\n",
    "The {} team\n\nYour login code: 482913",
    "Ihr {} Bestätigungscode lautet 482913",
    "482913 ist dein Code für {}",
    "Votre code {} est 482913",
    "482913 es tu código de {}",
    "{}: Ваш код подтверждения 482913",
)
def test_a_name_with_digits_is_no_code(sentence: str) -> None:
    """The name of a sender that begins or ends with digits is not a second code."""
    for name in NAMES.split():
        text = sentence.format(name)
        for is_page in (False, True):
            assert _codes(text, is_page=is_page) == ("482913",), text


@rows(
    "482913 is your 123RF verification code",
    "Your verification code for 123RF is 482913",
    "Your code for 123RF: 482913",
    "Open your 123RF account with the code 482913",
)
def test_a_name_in_capitals_is_no_code_where_a_sentence_has_a_name(text: str) -> None:
    """A name that looks like a code is known by its place in the sentence."""
    assert _codes(text) == ("482913",)


SUBJECTS = (
    "Welcome! Verify your email and get 10% off",
    "Confirm your email to get 10% off your first order",
    "Sign in for 20% off everything",
    "Your discount is waiting",
    "Ihr Gutschein: 15% Rabatt",
    "-10 % : notre remise",
    "Tu descuento te espera",
)


@rows(
    "Your verification code is 482913.",
    "Enter this code to confirm your email: 482913",
    "482913 is your login code",
    "Use 482913 to sign in",
    "Verification code\n\n482913\n",
    "Your verification code is 482913. Verify now and get 10% off!",
    "Use verification code 482913 to unlock 10% off.",
    "Here is your code: 482913. If you did not request this, ignore it.",
    "Ihr Bestätigungscode: 482913",
    "Code de vérification : 482913",
    "Tu código de verificación es 482913",
    "Ваш код подтверждения: 482913",
)
def test_a_discount_does_not_outweigh_a_code_for_signing_in(text: str) -> None:
    """A verification code stays one if the subject, or the same sentence, offers a discount."""
    for subject in SUBJECTS:
        for is_page in (False, True):
            assert _codes(text, subject, is_page=is_page) == ("482913",), subject


@rows(
    "Your code is SAVE10",
    "Use code WELCOME10 for 10% off",
    "Use code 482913 at checkout",
    "Your code for 10% off is 482913",
    "Your promo code is 482913",
)
def test_the_code_of_a_discount_is_none(text: str) -> None:
    """What a shop gives for its checkout is not a code for signing in."""
    for subject in SUBJECTS:
        assert _codes(text, subject) == (), subject


MANUAL = (
    "To finish registering click: app://register/12-345-678-9090/482913 or manually enter: {c}",
    "or enter manually: {c}",
    "Click the link or enter {c} manually.",
    "If the button does not work, enter it by hand: {c}",
    "or type in manually: {c}",
    "Or copy this manually: {c}",
    "Scan the QR code or enter {c} manually",
    "Manual entry: {c}",
    "oder manuell eingeben: {c}",
    "ou saisissez manuellement : {c}",
    "o ingresa manualmente: {c}",
    "или введите вручную: {c}",
    "of voer handmatig in: {c}",
    "lub wpisz ręcznie: {c}",
)
TRANSLITERATED = (
    "Parol dlya podtverzhdeniya: {c}. Perevod 800.00 RUB.",
    "Parol: {c}",
    "Kod dlya podtverzhdeniya: {c}",
    "Parol dlya oplaty: {c}. Summa 800.00 RUB",
    "Vash parol dlya vhoda v Bank: {c}",
    "Kod avtorizacii {c}. Nikomu ne soobshchayte.",
    "Parol {c}. Pokupka 1200 RUB. Karta *4829",
    "Parol podtverzhdeniya operacii: {c}",
    "Kod dlya podtverzhdeniya operacii {c}. Summa 500 rub",
    "Kod vosstanovleniya: {c}",
    "Vvedite kod {c} dlya podtverzhdeniya platezha",
    "{c} - vash kod podtverzhdeniya",
)


@rows(*MANUAL, *TRANSLITERATED)
def test_codes_to_type_by_hand_and_in_russian_in_latin_letters(sentence: str) -> None:
    """The code is found in the text and in the page, with four, six and eight digits."""
    random = Random(sentence)
    for length in (4, 6, 8):
        code = "".join(random.choices("123456789", k=length))
        assert _codes(sentence.replace("{c}", code), is_page=length == 6) == (code,)


def test_a_part_of_a_code_with_signs_is_none() -> None:
    """Signs that this search does not read do not leave a part of the code."""
    for code in ("HM2W+7BMQ", "PRU7#9YZQ", "V6NN*CSQ", "GU5U$WN6", "4829&3071"):
        assert _codes(f"Your verification code is {code}") == (), code
