/** Settings of terminals, stored in this browser. */
import { remembered } from '../state/remembered.ts'

export const copyOnSelect = remembered('terminal.copyOnSelect', true)
