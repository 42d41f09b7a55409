"""DNS: questions over Twisted datagrams and TCP to the resolvers an operator trusts.

From the wire inwards: `wire_format` (bytes, pure), `positive_answers`
(dnspython, pure), `servers` (which resolvers), `exchange` (datagrams),
`stream` (TCP), `resolution` (what to do next, pure), `resolver` (drives it),
`cache` (pure), `caching_resolver` (remembers and merges).
"""
