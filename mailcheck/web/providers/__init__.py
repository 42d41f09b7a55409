"""The APIs of mail providers: mail that programs send over them is caught like any other.

Add a provider in three steps:

1. A module named after it: the request as a Struct, ``read`` functions that turn a body into
   `OutgoingMail`, ``answer`` functions, and one `Provider` with its routes, errors and the rows of
   the table in the documentation. Read functions are pure and run in a worker process.
2. Its line in ``catalogue.py``.
3. Tests like the other providers', and its SDKs in ``tests/interop/test_provider_sdks.py``.

``inbound/`` writes the requests with which providers bring received mail to an application.

``doors.py`` makes a door of each provider, with idempotency keys, faults and storing.
``web/site/application.py`` does the rest as for all doors. ``conversion.py`` turns requests into
mails with ``bodies.py``, which parses them, and ``mime.py``, which writes mails.
"""
