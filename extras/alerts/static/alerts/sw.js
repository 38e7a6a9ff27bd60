// The site's service worker: shows alerts, and opens the page that each is about. It keeps no pages.
self.addEventListener("push", (event) => {
  let told = {};
  try {
    told = event.data?.json() ?? {};
  } catch {
    // Not of this site's making. Browsers demand that something is shown.
  }
  event.waitUntil(
    self.registration.showNotification(told.title ?? self.location.host, {
      body: told.body ?? "",
      // A message that is sent twice replaces the first.
      tag: told.tag,
      data: { url: told.url ?? "/" },
    }),
  );
});

async function show(url) {
  const target = new URL(url, self.location.origin);
  // No message leads away from this site.
  if (target.origin !== self.location.origin) target.href = self.location.origin;
  for (const page of await self.clients.matchAll({ type: "window" })) {
    if (page.url === target.href) return page.focus();
  }
  return self.clients.openWindow(target.href);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data.url));
});

// What the page kept when it subscribed (alerts.js): browsers do not always say which subscription has ended.
async function kept() {
  const found = await (await caches.open("push")).match("/push-subscription");
  return found?.json();
}

async function follow(event) {
  const known = await kept();
  const old = event.oldSubscription?.toJSON() ?? known?.subscription;
  if (!old) return;
  const options = event.oldSubscription?.options ?? { userVisibleOnly: true, applicationServerKey: known?.key };
  const subscription = event.newSubscription ?? (await self.registration.pushManager.subscribe(options));
  const reply = await fetch("/account/alerts/browser/moved/", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ old, new: subscription }),
  });
  if (!reply.ok) throw new Error(`the site did not take the new subscription: ${reply.status}`);
  const cache = await caches.open("push");
  await cache.put("/push-subscription", new Response(JSON.stringify({ subscription, key: known?.key })));
}

// The push service gave this browser another address: without this, alerts would go to the old one.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(follow(event)));
