"""The API of MailSlurp: an inbox there is a tag here, and its id is the tag."""
