/** Save bytes as a file of the user. A link to the server would lack the secret that requests need. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000) // some browsers read it after the click
}
