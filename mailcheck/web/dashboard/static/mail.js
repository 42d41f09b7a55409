// The frame of a mail: adjust its height, and preview phone widths and the dark theme.
"use strict";

// Whether wide mails are shrunk: as chosen last, or on screens of phones.
const FIT = "mailcheck-fit-to-width";
const remembered = () => { try { return localStorage.getItem(FIT); } catch { return null; } };
const remember = (isOn) => { try { localStorage.setItem(FIT, isOn); } catch { /* it is not kept */ } };

function prepareMail(root) {
  const frame = root.querySelector("iframe.mail-frame");
  const preview = root.querySelector("#preview");
  if (!frame) return;
  const shrink = preview.querySelector("#fit-mail");
  shrink.setAttribute("aria-pressed", remembered() ?? String(innerWidth < 600));
  const fit = () => {
    const shown = frame.contentDocument?.documentElement;
    if (!shown) return;
    const { scrollY } = window;
    shown.style.zoom = "";
    const isWide = shown.scrollWidth > frame.clientWidth;
    shrink.disabled = !isWide;
    if (isWide && shrink.getAttribute("aria-pressed") === "true") shown.style.zoom = frame.clientWidth / shown.scrollWidth;
    frame.style.height = "0"; // content with a height relative to the frame could not shrink otherwise
    frame.style.height = `${shown.scrollHeight}px`;
    window.scrollTo({ top: scrollY, behavior: "instant" });
  };
  const isLoaded = () => frame.contentDocument?.readyState === "complete" && frame.contentDocument.URL !== "about:blank";
  const watch = () => {
    fit();
    frame.parentElement.classList.remove("measuring");
    for (const image of frame.contentDocument?.images ?? []) image.addEventListener("load", fit);
  };
  frame.addEventListener("load", watch);
  if (isLoaded()) watch();
  else frame.parentElement.classList.add("measuring"); // what follows appears in its final place
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) fit();
    width = contentRect.width;
  }).observe(frame);

  preview.hidden = false;
  preview.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button === shrink) {
      const isOn = shrink.getAttribute("aria-pressed") !== "true";
      shrink.setAttribute("aria-pressed", String(isOn));
      remember(isOn);
    } else if (button.id === "dark-mail") {
      const isDark = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isDark));
      // The media queries of the mail evaluate the colour scheme of the frame.
      frame.style.colorScheme = isDark ? "dark" : "light";
      frame.contentDocument.documentElement.classList.toggle("dark", isDark);
    } else {
      for (const other of preview.querySelectorAll("[data-width]")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      frame.style.maxWidth = button.dataset.width && `${button.dataset.width}px`;
    }
    fit();
  });
}

prepareMail(document);
window.mailcheck.prepareMail = prepareMail;
