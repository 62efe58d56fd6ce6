/**
 * The service worker: it shows a page of its own when the server cannot be reached, brings the page up when a notification
 * is touched, and nothing else. It keeps no answer of the server, so that nothing stale or secret lies in a cache.
 */
const CACHE = 'bullpen-offline-1'
const FILES = ['/offline.html', '/offline.css']

self.addEventListener('install', (event) => {
  // Neither the files of the page nor a last word of one that goes need wait for a worker that may be asleep.
  event.addRoutes?.(['/api/*', '/assets/*'].map((pathname) => ({ condition: { urlPattern: new URLPattern({ pathname }) }, source: 'network' })))
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()))
})

self.addEventListener('activate', (event) => {
  const old = caches.keys().then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name))))
  const early = self.registration.navigationPreload?.enable() // the page is asked for while we wake up
  event.waitUntil(Promise.all([old, early]).then(() => self.clients.claim()))
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const { pathname } = new URL(request.url)
  if (request.mode === 'navigate') event.respondWith(pageFrom(event).catch(() => caches.match('/offline.html')))
  else if (FILES.includes(pathname)) event.respondWith(fetch(request).catch(() => caches.match(pathname)))
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(showPage(`/${event.notification.data ?? ''}`))
})

async function pageFrom(event) {
  return (await event.preloadResponse) ?? fetch(event.request)
}

async function showPage(address) {
  const [page] = await self.clients.matchAll({ type: 'window' })
  if (!page) return self.clients.openWindow(address)
  await page.focus()
  return page.navigate(address)
}
