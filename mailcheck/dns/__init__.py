"""DNS: questions over Twisted datagrams and TCP to the resolvers that the operator trusts.

From the outside in: `caching_resolver` (merges, remembers),
`resolver` (whose turn it is), `liveness` (whether anybody answers at all),
`lookup` (one question under way, TCP too), `resolution` (what to do next, pure),
`exchange` (datagrams), `wire_format` (bytes and values, pure), `servers`.
"""
