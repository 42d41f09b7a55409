"""The requests with which mail providers bring received mail to an application.

Add a format in three steps:

1. Its value of `mailcheck.core.inbound.InboundFormat`.
2. A function that writes its request, in a module named after the provider. It is pure, takes any
   bytes as the mail, and runs in a worker process.
3. Its row in ``catalogue.py``: the statuses that the provider retries, its schedule and its limits,
   and what the reference page says about it.

``received.py`` reads a mail. The APIs from which an application gets what its request does not
have are those of the providers, in the modules around this package.
"""
