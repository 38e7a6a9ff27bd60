// Subscribes this browser to alerts, after a click, and sends what it needs with the form.
(() => {
  const section = document.querySelector("[data-push]");
  if (!section) return;
  const form = section.querySelector("[data-push-form]");
  const button = section.querySelector("[data-push-on]");
  const said = section.querySelector("[data-push-said]");

  function say(what) {
    said.textContent = section.querySelector(`[data-push-text="${what}"]`).textContent;
    said.hidden = false;
  }

  function bytes(text) {
    const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  }

  function isSame(one, other) {
    return one.length === other.length && one.every((value, index) => value === other[index]);
  }

  async function subscription(key) {
    const worker = await navigator.serviceWorker.register("/sw.js", { scope: "/" });
    await navigator.serviceWorker.ready;
    const known = await worker.pushManager.getSubscription();
    // After the site got another key, the browser takes no messages for the old subscription.
    if (known && !isSame(new Uint8Array(known.options.applicationServerKey ?? []), key)) await known.unsubscribe();
    return worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  }

  async function turnOn() {
    button.disabled = true;
    try {
      say("asking");
      if ((await Notification.requestPermission()) !== "granted") return say("denied");
      const found = await subscription(bytes(section.dataset.pushKey));
      form.elements.subscription.value = JSON.stringify(found);
      // For the service worker, when the push service gives this browser another address.
      const kept = JSON.stringify({ subscription: found, key: section.dataset.pushKey });
      await (await caches.open("push")).put("/push-subscription", new Response(kept));
      said.hidden = true;
      form.submit();
    } catch {
      say("failed");
    } finally {
      button.disabled = false;
    }
  }

  if (!window.isSecureContext) {
    button.disabled = true;
    say("insecure");
  } else if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) {
    button.disabled = true;
    say("missing");
  } else {
    button.addEventListener("click", turnOn);
  }
})();
