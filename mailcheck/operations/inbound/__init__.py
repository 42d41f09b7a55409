"""Mail into applications, in the formats of the providers that receive it for them."""
