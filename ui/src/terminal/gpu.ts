/** Draws a terminal with the graphics card, where there is one; elsewhere, and when it goes, the page's elements do. */
import type { Terminal } from '@xterm/xterm'

const EMULATED = /swiftshader|llvmpipe|software|basic render/i

export async function drawWithGpu(terminal: Terminal): Promise<void> {
  if (!hasGpu()) return
  const { WebglAddon } = await import('@xterm/addon-webgl')
  if (!terminal.element?.isConnected) return
  const addon = new WebglAddon()
  addon.onContextLoss(() => addon.dispose()) // browsers take it away from the oldest of many, and after sleep
  try {
    terminal.loadAddon(addon)
  } catch (error) {
    console.info('This terminal is drawn without the graphics card.', error)
    addon.dispose()
  }
}

/** WebGL emulated by the processor is slower than elements are. */
function hasGpu(): boolean {
  const context = document.createElement('canvas').getContext('webgl2', { failIfMajorPerformanceCaveat: true })
  if (!context) return false
  const names = context.getExtension('WEBGL_debug_renderer_info')
  const card = names ? String(context.getParameter(names.UNMASKED_RENDERER_WEBGL)) : ''
  context.getExtension('WEBGL_lose_context')?.loseContext() // a browser has only so many
  return !EMULATED.test(card)
}
