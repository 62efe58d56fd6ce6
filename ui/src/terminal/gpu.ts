/** Draw a terminal with WebGL if there is a graphics card; otherwise, or if the context is lost, xterm draws with DOM elements. */
import type { Terminal } from '@xterm/xterm'

const EMULATED = /swiftshader|llvmpipe|software|basic render/i

/** Switch a terminal to WebGL if possible. */
export async function drawWithGpu(terminal: Terminal): Promise<void> {
  if (!hasGpu()) return
  const { WebglAddon } = await import('@xterm/addon-webgl')
  if (!terminal.element?.isConnected) return
  const addon = new WebglAddon()
  addon.onContextLoss(() => addon.dispose()) // browsers drop the oldest of many contexts, and contexts after a sleep
  try {
    terminal.loadAddon(addon)
  } catch (error) {
    console.info('This terminal is drawn without the graphics card.', error)
    addon.dispose()
  }
}

/** Return whether WebGL uses a graphics card. WebGL emulated by the processor is slower than DOM elements. */
function hasGpu(): boolean {
  const context = document.createElement('canvas').getContext('webgl2', { failIfMajorPerformanceCaveat: true })
  if (!context) return false
  const names = context.getExtension('WEBGL_debug_renderer_info')
  const card = names ? String(context.getParameter(names.UNMASKED_RENDERER_WEBGL)) : ''
  context.getExtension('WEBGL_lose_context')?.loseContext() // browsers limit the number of contexts
  return !EMULATED.test(card)
}
