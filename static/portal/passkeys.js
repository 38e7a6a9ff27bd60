// Tells on the page that the browser gave no passkey; allauth's scripts would only write it to the console.
document.addEventListener("allauth.error", (event) => {
  const notice = document.querySelector("[data-passkey-error]");
  if (!notice) return;
  event.preventDefault();
  notice.hidden = false;
});
