/**
 * Define <bullpen-sheet>, a replacement of <style> that a content security policy without inline styles allows. Its text
 * is a constructed style sheet of the document while the element is in the document.
 */
/** The implementation of <bullpen-sheet>. */
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
