"""The API of Mailosaur: servers are tags, and messages are those of the inbox.

A server is the eight characters that the tags of its mail begin with. It needs no set-up, since an
address in a subdomain of the inbox has them in its tag (`mailcheck.core.addresses`).
"""
