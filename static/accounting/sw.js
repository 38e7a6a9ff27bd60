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
