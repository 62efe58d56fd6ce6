/** Register the service worker, which makes the page installable, where the browser allows it (https or localhost). */

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): { createScriptURL(address: string): unknown }
}

/** The content security policy requires a trusted types policy for script addresses. */
const scriptPolicy = (window as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('bullpen-worker', { createScriptURL: () => '/worker.js' })

export async function registerServiceWorker(): Promise<void> {
  if (!('serviceWorker' in navigator) || !window.isSecureContext) return
  try {
    await navigator.serviceWorker.register((scriptPolicy?.createScriptURL('') ?? '/worker.js') as string, { scope: '/' })
  } catch (error) {
    console.warn('The service worker could not be registered; the page has no offline view.', error)
  }
}
