"""The API of Mailosaur: servers are tags of the inbox.

A server is the first eight characters of the tags of its mail. It needs no set-up, since an
address in a subdomain of the inbox has them in its tag (`mailcheck.core.addresses`).
"""
