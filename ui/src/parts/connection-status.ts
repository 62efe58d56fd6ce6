/** Map the status of a connection to a colour and a label. */
import type { Status } from '../api/connection.ts'

export function connectionStatusOf(status: Status): { tone: 'good' | 'waiting' | 'bad'; label: string } {
  switch (status) {
    case 'open':
      return { tone: 'good', label: 'connected' }
    case 'connecting':
    case 'waiting':
      return { tone: 'waiting', label: 'reconnecting' }
    case 'closed':
      return { tone: 'bad', label: 'disconnected' }
  }
}
