// Set the theme before the page is drawn: light, dark, or that of the system.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
