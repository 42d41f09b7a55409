"""The checks of the HTML of any mail: clients, accessibility, links. Run in child processes."""
