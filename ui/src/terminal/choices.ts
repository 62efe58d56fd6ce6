/** How a person wants terminals to behave; remembered in this browser. */
import { remembered } from '../state/remembered.ts'

export const copyOnSelect = remembered('terminal.copyOnSelect', true)
