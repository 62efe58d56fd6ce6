/**
 * <bullpen-sheet>: a <style> that a policy without inline styles allows. Its text becomes a constructed
 * style sheet of the document for as long as the element is in it.
 */
class SheetElement extends HTMLElement {
  readonly #sheet = new CSSStyleSheet()

  override set textContent(css: string) {
    this.#sheet.replaceSync(css)
  }

  connectedCallback(): void {
    document.adoptedStyleSheets.push(this.#sheet)
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.#sheet)
  }
}

export function defineSheet(): void {
  if (!customElements.get('bullpen-sheet')) customElements.define('bullpen-sheet', SheetElement)
}
