/** The browser's own notifications: whether a person wants them here, and how one is shown. */
import type { InboxItem } from '../api/types/inbox.ts'
import { KINDS } from '../inbox/inbox.ts'
import { formatRoute } from '../state/route.ts'
import { remembered } from '../state/remembered.ts'

export type Consent = NotificationPermission | 'unsupported'

const wanted = remembered('notifications', false)
let consent: Consent = $state('Notification' in window ? Notification.permission : 'unsupported')

export const notifications = {
  get consent(): Consent {
    return consent
  },
  get on(): boolean {
    return wanted.value && consent === 'granted'
  },
  /** The browser asks only when a person has just pressed something. */
  async turnOn(): Promise<void> {
    consent = await Notification.requestPermission()
    wanted.value = consent === 'granted'
  },
  turnOff(): void {
    wanted.value = false
  },
}

/** One for a thing however many tabs there are: they share its tag. */
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

/** On a phone only the service worker may; it also opens the page again when it is touched. */
async function notifyByWorker(title: string, options: NotificationOptions): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration()
  await registration?.showNotification(title, options)
}
