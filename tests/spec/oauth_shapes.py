"""The answers of the authorization server (RFC 6749, 7009, 7591, 8414 and 9728)."""

from collections.abc import Mapping

from tests.spec.inbox_shapes import ERROR
from tests.spec.matching import Schema
from tests.spec.shapes import (
    COUNT,
    WORD,
    Bytes,
    Shape,
    array,
    record,
    shape,
)

_Bodies = Shape | Bytes | tuple[Shape | Bytes, ...]

_URL: Schema = {"type": "string", "pattern": "^https?://[^ ]+[^/ ]$"}
_WORDS = array(WORD, minItems=1)
_TRUE: Schema = {"const": True}

_SERVER = record(
    {
        "issuer": _URL,
        "authorization_endpoint": _URL,
        "token_endpoint": _URL,
        "revocation_endpoint": _URL,
        "scopes_supported": _WORDS,
        "response_types_supported": {"const": ["code"]},
        "response_modes_supported": {"const": ["query"]},
        "grant_types_supported": _WORDS,
        "token_endpoint_auth_methods_supported": _WORDS,
        "revocation_endpoint_auth_methods_supported": _WORDS,
        "code_challenge_methods_supported": {"const": ["S256"]},
        "authorization_response_iss_parameter_supported": _TRUE,
        "client_id_metadata_document_supported": {"type": "boolean"},
        "protected_resources": array(_URL, minItems=1),
        "service_documentation": _URL,
    },
    {"registration_endpoint": _URL},
)
_RESOURCE = record(
    {
        "resource": _URL,
        "authorization_servers": array(_URL, minItems=1),
        "scopes_supported": _WORDS,
        "bearer_methods_supported": {"const": ["header"]},
        "resource_name": WORD,
        "resource_documentation": _URL,
    }
)
_TOKENS = record(
    {
        "access_token": {"type": "string", "pattern": "^mca_[a-z2-7]{32}$"},
        "token_type": {"const": "Bearer"},
        "expires_in": {"type": "integer", "minimum": 1},
        "refresh_token": {"type": "string", "pattern": "^mcr_[a-z2-7]{32}$"},
        "scope": WORD,
    }
)
_CLIENT = record(
    {
        "client_id": WORD,
        "client_id_issued_at": COUNT,
        "client_name": WORD,
        "redirect_uris": _WORDS,
        "token_endpoint_auth_method": WORD,
        "grant_types": _WORDS,
        "response_types": {"const": ["code"]},
    },
    {"client_secret": WORD, "client_secret_expires_at": {"const": 0}},
)
_REFUSED = shape(record({"error": WORD, "error_description": WORD}))
_REFUSALS: Mapping[int, _Bodies] = dict.fromkeys((400, 401, 404, 413, 429, 503), _REFUSED)

OAUTH_PATHS = ("/token", "/register", "/revoke")
"""The endpoints whose errors have the shape that OAuth defines."""

OAUTH_ROUTES: Mapping[tuple[str, str], Mapping[int, _Bodies]] = {
    **{
        ("GET", f"/.well-known/{name}{more}"): bodies
        for name, bodies in (
            ("oauth-authorization-server", {200: shape(_SERVER), 404: ERROR}),
            ("oauth-protected-resource", {200: shape(_RESOURCE), 404: ERROR}),
            ("openid-configuration", {404: ERROR}),
        )
        for more in ("", "/{first}", "/{first}/{second}")
    },
    ("POST", "/token"): {200: shape(_TOKENS), **_REFUSALS},
    ("POST", "/register"): {201: shape(_CLIENT), **_REFUSALS},
    ("POST", "/revoke"): {200: shape(record({})), **_REFUSALS},
}
