// Before anything is drawn: light, dark, or what the system has.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
