"""Domain specs and the macros in them (RFC 7208 7)."""

import re

# macro-expand and macro-string of RFC 7208 7.1; alternatives begin differently: it is linear.
_MACRO = r"%[%_-]|%\{[slodiphcrtvSLODIPHCRTV][0-9]*[rR]?[.+,/_=-]*\}"
_MACRO_STRING = re.compile(rf"(?:[!-$&-~]|{_MACRO})*", re.ASCII)
_ENDS_IN_MACRO = re.compile(rf"(?:[!-$&-~]|{_MACRO})*(?:{_MACRO})", re.ASCII)
_EXP_ONLY_LETTER = re.compile(r"%\{[crtCRT]")
_ZERO_TRANSFORMER = re.compile(r"%\{[A-Za-z]0+[^0-9]")
# domain-end = "." toplabel [ "." ]; a toplabel is no number
_TOP_LABEL = re.compile(r"(?=[A-Za-z0-9-]*[A-Za-z-])[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")


def has_macros(text: str) -> bool:
    """Tell whether the text depends on the mail that is checked."""
    return "%" in text


def is_macro_string(text: str) -> bool:
    """Tell whether the text is what a modifier may have as its value (RFC 7208 6, 7.1)."""
    return _MACRO_STRING.fullmatch(text) is not None


def explain_bad_domain_spec(text: str) -> str | None:
    """Say in a few words why the text is no domain-spec, or nothing when it is one."""
    if not text:
        return "has no domain"
    if not is_macro_string(text):
        return "has a character or a macro that is not allowed"
    if _EXP_ONLY_LETTER.search(text) is not None:
        return "uses a macro that is allowed in explanations only"
    if _ZERO_TRANSFORMER.search(text) is not None:
        return "has a macro that keeps zero labels"
    if _ENDS_IN_MACRO.fullmatch(text) is not None:
        return None
    host, dot, top_label = text.removesuffix(".").rpartition(".")
    if not dot or not host or _TOP_LABEL.fullmatch(top_label) is None:
        return "has no full domain name"
    if not has_macros(text) and not all(host.split(".")):
        return "has nothing between two dots"
    return None
