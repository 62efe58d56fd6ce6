/**
 * Service worker: show an offline page when the server cannot be reached, and open the page when a notification is clicked.
 *
 * It caches no answers of the server, so the cache never holds stale or secret data.
 */
const CACHE = 'bullpen-offline-1'
const FILES = ['/offline.html', '/offline.css']

self.addEventListener('install', (event) => {
  // Static files and API requests go directly to the network. They need not wait until this worker has started.
  event.addRoutes?.(['/api/*', '/assets/*'].map((pathname) => ({ condition: { urlPattern: new URLPattern({ pathname }) }, source: 'network' })))
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()))
})

self.addEventListener('activate', (event) => {
  const old = caches.keys().then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name))))
  const preload = self.registration.navigationPreload?.enable() // the page is requested while this worker starts
  event.waitUntil(Promise.all([old, preload]).then(() => self.clients.claim()))
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const { pathname } = new URL(request.url)
  if (request.mode === 'navigate') event.respondWith(loadPage(event).catch(() => caches.match('/offline.html')))
  else if (FILES.includes(pathname)) event.respondWith(fetch(request).catch(() => caches.match(pathname)))
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(showPage(`/${event.notification.data ?? ''}`))
})

async function loadPage(event) {
  return (await event.preloadResponse) ?? fetch(event.request)
}

async function showPage(address) {
  const [page] = await self.clients.matchAll({ type: 'window' })
  if (!page) return self.clients.openWindow(address)
  await page.focus()
  return page.navigate(address)
}
