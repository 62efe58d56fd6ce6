/** Makes the page installable: its service worker, where the browser allows one (https or this machine). */

interface Types {
  createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): { createScriptURL(address: string): unknown }
}

/** The policy wants every script address to be named by a policy of ours. */
const addresses = (window as { trustedTypes?: Types }).trustedTypes?.createPolicy('bullpen-worker', { createScriptURL: () => '/worker.js' })

export async function installWorker(): Promise<void> {
  if (!('serviceWorker' in navigator) || !window.isSecureContext) return
  try {
    await navigator.serviceWorker.register((addresses?.createScriptURL('') ?? '/worker.js') as string, { scope: '/' })
  } catch (error) {
    console.warn('The page cannot be shown offline.', error)
  }
}
