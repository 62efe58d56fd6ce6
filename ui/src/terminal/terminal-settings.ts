/** A setting of terminals, stored in this browser: whether selected text is copied to the clipboard. */
import { remembered } from '../state/remembered.ts'

export const copyOnSelect = remembered('terminal.copyOnSelect', true)
