/** Copies a text and says so on the button that was pressed. */
export async function copy(text: string, button: HTMLElement): Promise<void> {
  const before = button.textContent
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    button.textContent = 'Not allowed' // no focus, or plain http beyond this machine
  }
  setTimeout(() => (button.textContent = before), 1200)
}
