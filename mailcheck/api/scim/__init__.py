"""The JSON of SCIM 2.0 (RFC 7643, RFC 7644), as Entra ID and Okta send and read it.

It is written here and not with scim2-models, which refuses three forms that Entra ID sends: a
value list that removes members, a new address in ``emails[type eq "work"].value``, and its own
schema of groups. It would also be the only user of pydantic in the daemon.
"""
