/** Browser notifications: whether the user turned them on, and how they are shown. */
import type { InboxItem } from '../api/types/inbox.ts'
import { KINDS } from '../inbox/item-text.ts'
import { formatRoute } from '../state/route.ts'
import { remembered } from '../state/remembered.ts'

export type Consent = NotificationPermission | 'unsupported'

const turnedOn = remembered('notifications', false)
let consent: Consent = $state('Notification' in window ? Notification.permission : 'unsupported')

export const notifications = {
  get consent(): Consent {
    return consent
  },
  get on(): boolean {
    return turnedOn.value && consent === 'granted'
  },
  /** Ask for permission. Browsers show the question only right after a click or key press. */
  async turnOn(): Promise<void> {
    consent = await Notification.requestPermission()
    turnedOn.value = consent === 'granted'
  },
  turnOff(): void {
    turnedOn.value = false
  },
}

/** Show a notification for an inbox item. Several tabs show only one, because they use the same tag. */
export function notify(item: InboxItem, open: () => void): void {
  const title = `${KINDS[item.kind].label}: ${item.sessionTitle}`
  const options = { body: item.text, tag: item.id, icon: '/icons/quiet.svg' }
  try {
    const shown = new Notification(title, options)
    shown.onclick = () => {
      window.focus()
      open()
      shown.close()
    }
  } catch {
    void notifyByWorker(title, { ...options, data: formatRoute({ view: 'session', sessionId: item.sessionId }) })
  }
}

/** Show a notification by the service worker: phones allow no other way. A touch opens the page again. */
async function notifyByWorker(title: string, options: NotificationOptions): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration()
  await registration?.showNotification(title, options)
}
