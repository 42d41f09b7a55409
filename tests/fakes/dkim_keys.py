"""Public keys in Base64, as in DKIM records. Their private keys are not stored anywhere."""

RSA_512 = (
    "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKwcHiHtc3kjt7yfvzuEehicFPKflxFdZySySu2qj/LWmr0gT3EuU7gBQR"
    "wekTY1TKj9olZrLx4J1m5uhURnIJUCAwEAAQ=="
)
"""An RSA key of 512 bits."""
RSA_1024 = (
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDafhoVjDVzN5MELSx7Sldk9JhF4qPuyomcS2Fpb9yX6qz59c6gEw"
    "eO/yrgQp6bZX07u234fp9PwPjJdX3f4+DZ09xQuIF03cSDRrcUanwRxax1XznAKpWyXzaaHHiK7THitb8JaTVDQXX9"
    "OqeBjIVy5XMrJtiSrJYHyh4RmO6nRwIDAQAB"
)
RSA_2048 = (
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtu79dZIHn3cBRoQOymWBdXS5ZJhIiF5qR2AdPbnmbErFvm"
    "iYeTerR3INSPA2vgT7vgUiIswtvSsWuCNnAgC7PfYgRP2St9urNB2xUKWNTg7reDzoNTFjC2q1liurGuuxqYhv2ilM"
    "Q/2ZqvgeYlsRiBCFW0k5xaxbuk4NdbcExDuKy922QkS5sL6uJoLwANi2lC82teYnzE4dOAyfwx+sOKE0OKaG8FdS/d"
    "6ZEeso+isEBK5jfoGYJk82SobNEIc4U+nAie8PxRZZY+GEuebKWs5Udv84hAGXHgu7rlk0aMWN9xALzFoiSQPuYHJy"
    "d8WrMPNh87HSPqoX4PDrFwcd3QIDAQAB"
)
RSA_2048_BARE = (
    "MIIBCgKCAQEAtu79dZIHn3cBRoQOymWBdXS5ZJhIiF5qR2AdPbnmbErFvmiYeTerR3INSPA2vgT7vgUiIswtvSsWuC"
    "NnAgC7PfYgRP2St9urNB2xUKWNTg7reDzoNTFjC2q1liurGuuxqYhv2ilMQ/2ZqvgeYlsRiBCFW0k5xaxbuk4NdbcE"
    "xDuKy922QkS5sL6uJoLwANi2lC82teYnzE4dOAyfwx+sOKE0OKaG8FdS/d6ZEeso+isEBK5jfoGYJk82SobNEIc4U+"
    "nAie8PxRZZY+GEuebKWs5Udv84hAGXHgu7rlk0aMWN9xALzFoiSQPuYHJyd8WrMPNh87HSPqoX4PDrFwcd3QIDAQAB"
)
"""The same key without a wrapper (PKCS #1)."""
ED25519 = "UH6ASM076kraxcMm5h+o/JtRuG/I5BjBOfT0BHtYM/A="
ED25519_WRAPPED = "MCowBQYDK2VwAyEAUH6ASM076kraxcMm5h+o/JtRuG/I5BjBOfT0BHtYM/A="
"""The same key in the form that must not be published."""
EC_P256 = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1NuuKR8llMiDvqYfniOVcf9OyiXGYZXH1rcnDz4LE7CmXslwOpMAXY"
    "Ng0A8Cm0UDUyhdPR6PbVTCJ7T95UEQKA=="
)
"""A key type that DKIM does not have."""
