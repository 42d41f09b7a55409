// Forms with data-passkey: asks the browser for a passkey, and submits its answer.
"use strict";

{
  const encode = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const decode = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  const withIds = (list) => (list || []).map((one) => ({ ...one, id: decode(one.id) }));

  const read = (options) => ({
    ...options,
    challenge: decode(options.challenge),
    ...(options.user && { user: { ...options.user, id: decode(options.user.id) } }),
    ...(options.excludeCredentials && { excludeCredentials: withIds(options.excludeCredentials) }),
    ...(options.allowCredentials && { allowCredentials: withIds(options.allowCredentials) }),
  });

  const write = (credential) => {
    const { response } = credential;
    const fields = { clientDataJSON: encode(response.clientDataJSON) };
    for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"])
      if (response[name]) fields[name] = encode(response[name]);
    return JSON.stringify({
      id: credential.id, rawId: encode(credential.rawId), type: credential.type,
      clientExtensionResults: {}, response: fields,
    });
  };

  const fetchOptions = async (form) => {
    const answer = await fetch(form.dataset.options, {
      method: "POST",
      headers: { "X-Form-Token": form.elements["form-token"].value, Accept: "application/json" },
    });
    if (answer.status === 403) throw new Error("Reload the page, and try again.");
    if (!answer.ok) throw new Error("The server did not answer. Reload the page and try again.");
    return answer.json();
  };

  const ask = async (form) => {
    const options = form.dataset.request ? JSON.parse(form.dataset.request) : await fetchOptions(form);
    const publicKey = read(options);
    const kind = form.dataset.passkey;
    const credential = await navigator.credentials[kind]({ publicKey });
    form.elements[form.dataset.answer || "credential"].value = write(credential);
    form.submit();
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    if (!window.PublicKeyCredential) continue;
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const problem = form.querySelector("[data-passkey-problem]");
      problem.hidden = true;
      ask(form).catch((error) => {
        problem.hidden = false;
        problem.textContent = error.name === "NotAllowedError"
          ? "The passkey was not used: the dialog was closed, or took too long."
          : error.name === "InvalidStateError"
            ? "This device has a passkey for your account already."
            : error.message;
      });
    });
  }
}
