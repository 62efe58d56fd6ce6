"""Measure the contrast of every visible text, also where axe-core cannot determine the background."""

from playwright.async_api import Page

MIN_CONTRAST = 4.5

# Below an open dialog or menu, text is veiled on purpose. Disabled controls and signs are exempt in WCAG.
_MEASURE = """(minimum) => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const cache = new Map()
  const rgba = (text) => {
    if (!cache.has(text)) {
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = text
      canvas.fillRect(0, 0, 1, 1)
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
      cache.set(text, [r, g, b, a / 255])
    }
    return cache.get(text)
  }
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1]
  const channel = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b)
  const ratio = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x)
    return (light + 0.05) / (dark + 0.05)
  }
  const backgroundOf = (element) => {
    const layers = []
    for (let each = element; each; each = each.parentElement) {
      const screen = each.matches('.xterm') && each.querySelector('.xterm-scrollable-element')
      for (const layer of screen ? [each, screen] : [each]) {
        const colour = rgba(getComputedStyle(layer).backgroundColor)
        if (colour[3]) layers.push(colour)
      }
      if (layers.at(-1)?.[3] === 1) break
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1])
  }
  const opacityOf = (element) => {
    let opacity = 1
    for (let each = element; each; each = each.parentElement) opacity *= getComputedStyle(each).opacity
    return opacity
  }
  const faults = []
  let measured = 0
  const measure = (element, colour, text) => {
    const background = backgroundOf(element)
    const [r, g, b, a] = rgba(colour)
    const found = ratio(over([r, g, b, a * opacityOf(element)], background), background)
    measured++
    const colours = `${colour} on ${background.map(Math.round).slice(0, 3)}`
    if (found < minimum) faults.push(`${found.toFixed(2)}: ${text.trim().slice(0, 60)} (${colours})`)
  }
  const root = [...document.querySelectorAll('[role=dialog], [role=menu]')].at(-1) ?? document.body
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  const exempt = ':disabled, [aria-disabled=true], [data-disabled], .spoken, option, script, style, noscript'
  const isExempt = (element) => element.closest(exempt)
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const { data, parentElement: element } = texts.currentNode
    if (!/[\\p{L}\\p{N}]/u.test(data) || isExempt(element) || !isShown(element)) continue
    measure(element, getComputedStyle(element).color, data)
  }
  for (const field of root.querySelectorAll('input, textarea, select')) {
    if (isExempt(field) || !isShown(field)) continue
    const { color } = getComputedStyle(field, field.placeholder && !field.value ? '::placeholder' : null)
    measure(field, color, `${field.tagName} ${field.placeholder ?? ''}`)
  }
  return [measured, [...new Set(faults)]]
}"""


async def low_contrasts(page: Page) -> list[str]:
    """Return each visible text whose contrast is too low, with its contrast."""
    measured, faults = await page.evaluate(_MEASURE, MIN_CONTRAST)
    assert measured, "no text was measured"
    found: list[str] = faults
    return found
