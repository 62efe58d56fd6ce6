/** Copy a text to the clipboard and show the result on the button for a moment. */
export async function copy(text: string, button: HTMLElement): Promise<void> {
  const before = button.textContent
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    button.textContent = 'Not allowed' // the page has no focus, or it uses plain http on another machine
  }
  setTimeout(() => (button.textContent = before), 1200)
}
