/**
 * Parse Markdown into a tree of allowed elements. Text of an agent is never parsed as HTML: raw HTML stays text, tags
 * and attributes come from the lists below, and no address is loaded or opened before the user has seen it.
 */
import MarkdownIt, { type Token } from 'markdown-it'
import { element, type Element, type Node } from './tree.ts'

/** A top-level block and the line at which it begins. */
export interface Block {
  readonly line: number
  readonly node: Node
}

const TAGS = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'blockquote', 'hr', 'br', 'strong', 'em', 's', 'code', 'table', 'thead', 'tbody', 'tr', 'th', 'td'])
const LINK_SCHEMES = /^(https?:\/\/|mailto:)/i
const TASK = /^\[([ xX])\] /

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false })
// A bare word with a dot is more often a file name than a web site.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
// Every link is parsed; `linkOrText` decides which links can be opened.
markdown.validateLink = () => true

/** Return the top-level blocks of a Markdown text. */
export function parse(text: string): Block[] {
  const builder = new TreeBuilder()
  for (const token of markdown.parse(text, {})) builder.take(token)
  return builder.blocks
}

/** Builds the tree from the tokens of markdown-it. */
class TreeBuilder {
  readonly blocks: Block[] = []
  readonly #open: { token: Token; children: Node[] }[] = []

  /** Add the next token of the parser to the tree: it opens or closes an element, or is a leaf. */
  take(token: Token): void {
    if (token.type === 'inline') return this.#takeAll(token.children ?? [])
    if (token.hidden) return // the paragraph of a tight list
    if (token.nesting === 1) this.#open.push({ token, children: [] })
    else if (token.nesting === -1) this.#close()
    else this.#add(leafNode(token), token)
  }

  #takeAll(tokens: readonly Token[]): void {
    for (const token of tokens) this.take(token)
  }

  #close(): void {
    const done = this.#open.pop()
    if (done) this.#add(containerNode(done.token, done.children), done.token)
  }

  #add(node: Node, token: Token): void {
    const parent = this.#open.at(-1)
    if (parent) parent.children.push(node)
    else this.blocks.push({ line: token.map?.[0] ?? 0, node })
  }
}

/** Return the node of a token with children; elements and links that are not allowed become text. */
function containerNode(token: Token, children: Node[]): Node {
  if (token.type === 'link_open') return linkOrText(attribute(token, 'href'), children)
  if (token.tag === 'table') return element('div', { class: 'table' }, [element('table', {}, children)])
  if (token.tag === 'li') return element('li', {}, withTask(children))
  return TAGS.has(token.tag) ? element(token.tag, attributes(token), children) : element('span', {}, children)
}

/** Return the node of a token without children. An image becomes a link to it. */
function leafNode(token: Token): Node {
  switch (token.type) {
    case 'text':
    case 'text_special':
      return token.content
    case 'softbreak':
      return '\n'
    case 'code_inline':
      return element('code', {}, [token.content])
    case 'fence':
    case 'code_block':
      return codeBlock(token.content, token.info.trim().split(/\s+/)[0] ?? '')
    case 'image': // never loaded: a request would reveal that the text was read
      return linkOrText(attribute(token, 'src'), [`🖼 ${token.content || 'image'}`])
    default:
      return TAGS.has(token.tag) ? element(token.tag) : token.content
  }
}

/** Return a code block with its language and a copy button. */
export function codeBlock(content: string, language: string): Element {
  const name = /^[\w+#.-]{1,32}$/.test(language) ? language : ''
  return element('figure', { class: 'code', 'data-language': name.toLowerCase() }, [
    element('figcaption', {}, [element('span', {}, [name]), element('button', { type: 'button', class: 'copy', 'aria-label': 'Copy code' }, ['Copy'])]),
    element('pre', { tabindex: '0' }, [element('code', {}, [content.replace(/\n$/, '')])]),
  ])
}

/** Return a link for web and mail addresses; anything else becomes text with the address as its tooltip. */
function linkOrText(href: string, children: Node[]): Element {
  if (!LINK_SCHEMES.test(href)) return element('span', { class: 'place', title: href }, children)
  return element('a', { href, title: href, rel: 'noopener noreferrer nofollow', target: '_blank' }, children)
}

/** Return the attributes that are kept: the start of a numbered list and the alignment of a table cell. */
function attributes(token: Token): Record<string, string> {
  const start = token.tag === 'ol' ? attribute(token, 'start') : ''
  if (start) return { start: String(Number(start) || 1) }
  const align = token.tag === 'td' || token.tag === 'th' ? /(right|center)/.exec(attribute(token, 'style'))?.[1] : undefined
  return align ? { class: align } : {}
}

function attribute(token: Token, name: string): string {
  return String(token.attrGet(name) ?? '')
}

/** Return the children of a list item with a checkbox symbol instead of `[ ]` or `[x]`. */
function withTask(children: readonly Node[]): readonly Node[] {
  const [first, ...rest] = children
  if (typeof first === 'string') {
    const done = TASK.exec(first)?.[1]
    return done === undefined ? children : [done === ' ' ? '☐ ' : '☑ ', first.slice(4), ...rest]
  }
  return first?.tag === 'p' ? [{ ...first, children: withTask(first.children) }, ...rest] : children
}
